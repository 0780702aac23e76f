"""Sample requests of every operation. The description, the reference page and the tests use the same ones.

A value `$name` stands for a value of the catalog (`SMALL_CATALOG`, or the live catalog: live_samples.py) or for an id that an earlier
sample request made. Out of scope: answers, which sample_answers.json holds as the catalog of the contract tests gave them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Any
from urllib.parse import quote, urlencode

CSV, UPLOAD, JSON = "text/csv", "application/octet-stream", "application/json"

SMALL_CATALOG: Mapping[str, Any] = {
    "track_id": 1,
    "title": "Midnight Running",
    "artist": "The Velvet Foxes",
    "isrc": "GBAYE2600100",
    "iswc": "T0345246801",
    "release_id": 2,
    "release_title": "Night Trains and Harbours",
    "barcode": "05099902894225",
    "artist_id": 1,
    "label_id": 2,
    "label": "Blue Door",
    "genre_id": 30,
    "genre": "House",
    "year": 2021,
    "streamsvc_a_id": "aB00000000000000000001",
    "streamsvc_b_id": "1440000001",
    "streamsvc_c_id": "990001",
    "store_a_id": "5000001",
    "catalog_a_id": "7001",
    "catalog_b_id": "00000001-1111-4222-8333-444455556666",
    "url": "https://open.example.com/track/1",
    "artist_source_id": "artist0000000000000001",
    "build": "first",
    "stream_id": "9b2f6a52-4f0e-4d0a-9c1e-0f7f4c2f6f10",
    "webhook_id": "3e1f4b9c-9a43-4d0b-8a55-6a4e3a4f7b21",
    "delivery_id": 1,
    "job_id": "01a21a9d-c322-738b-ad95-5aff0a88349d",
}
"""Values of the catalog of the contract tests, and ids of an account there."""

FINGERPRINT = (
    "AQAAZIutKYzA5GRQSD9-8HzwZ8QTNPmHcLOhMmGI6NHhTwryB8kS60fXoMnTon_Qn8GUKSeeIx2F5EsGXskmWM-KyzL6gwlzpP-C5D9-TFHOoM"
    "4xSz_-XPD84EmMPEqP85Cy09CS4znicwounjjxY0p3hDoTJMd3lNIUNMty4Z_gPniqlAhzD8kuXHnxpDHx4zki3Uei5DiPK-qCMtHBnEJ2BUm_"
    "Et1DoYnIEGwy7OiXUXAfwb-M-mQR_tDS88iv4dGJS3yCOrzgD_5R68jzITkcZVLxkET8Q1-QM2jQ46dx5sL_IP-RPDkAQZFCRBjAiDBQESeAUY"
    "AAaIAihACgABAEOUCoEQYQI40ABilHCDGGEMSIYgAShIAAEiCFlDGKAQIkJoIEBQAATBDBAAAEEOSoQVgQoBAhwggihGGAQA"
)
"""Compressed Chromaprint of 15 seconds of a recording of that catalog, as `fpcalc` prints it."""


@dataclass(frozen=True, kw_only=True)
class SampleRequest:
    """The parts of a request that differ from operation to operation. `file` names the local file that an upload sends."""

    path: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    text: str | None = None
    file: str | None = None
    media_type: str = JSON
    accept: str | None = None
    idempotency_key: str | None = None

    def fill(self, values: Mapping[str, Any]) -> SampleRequest:
        """Return the request with these values in place of their names."""
        return SampleRequest(
            path=fill(self.path, values),
            query=fill(self.query, values),
            body=fill(self.body, values),
            text=fill(self.text, values),
            file=self.file,
            media_type=self.media_type,
            accept=self.accept,
            idempotency_key=self.idempotency_key,
        )

    def build_target(self, path_template: str) -> str:
        """Return path and query of a filled request."""
        path = path_template.format(**{name: quote(str(value), safe="$") for name, value in self.path.items()})
        return path + (f"?{urlencode(self.query, quote_via=quote)}" if self.query else "")

    @property
    def has_body(self) -> bool:
        """Return whether the request sends a body."""
        return self.body is not None or self.text is not None or self.file is not None


def fill(value: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Replace names by their values, at any depth. A text that is one name becomes the value with its type; unknown names stay."""
    if isinstance(value, Mapping):
        return {name: fill(one, values) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, values) for one in value]
    if isinstance(value, str):
        return values[value[1:]] if value[:1] == "$" and value[1:] in values else Template(value).safe_substitute(values)
    return value


def find_names(value: Any) -> set[str]:  # noqa: ANN401 - JSON
    """Return the names of values that occur, at any depth."""
    if isinstance(value, Mapping):
        return {name for one in value.values() for name in find_names(one)}
    if isinstance(value, list):
        return {name for one in value for name in find_names(one)}
    return set(Template(value).get_identifiers()) if isinstance(value, str) else set()


_STREAM, _WEBHOOK, _JOB = {"id": "$stream_id"}, {"id": "$webhook_id"}, {"id": "$job_id"}
_DELIVERY = {**_WEBHOOK, "delivery_id": "$delivery_id"}
_NAMES = [{"artist": "$artist", "title": "$title"}]
STREAM_URL, HOOK_URL, ROWS_URL = "https://radio.example.org/live.mp3", "https://example.org/hook", "https://example.org/codes.csv"

SAMPLE_REQUESTS: Mapping[str, tuple[SampleRequest, ...]] = {
    "search": (SampleRequest(query={"artist": "$artist", "title": "$title", "limit": 1}),),
    "track_by_isrc": (SampleRequest(path={"isrc": "$isrc"}),),
    "track_by_id": (
        SampleRequest(path={"id": "$track_id"}),
        SampleRequest(path={"id": "$track_id"}, query={"include": "isrcs,links,provenance"}),
    ),
    "links": (SampleRequest(query={"id": "$track_id"}), SampleRequest(query={"catalog_a_id": "$catalog_a_id"})),
    "iswcs_of_track": (SampleRequest(query={"id": "$track_id"}),),
    "tracks_of_iswc": (SampleRequest(path={"iswc": "$iswc"}, query={"limit": 2}),),
    "resolve": (
        SampleRequest(body={"input_type": "isrc", "items": ["$isrc", "unknown"]}, idempotency_key="import-1"),
        SampleRequest(body={"input_type": "track_name", "items": _NAMES}),
    ),
    "identify": (
        SampleRequest(file="clip.wav", media_type=UPLOAD),
        SampleRequest(body={"fingerprint": FINGERPRINT, "fingerprint_duration": 15}),
    ),
    "browse": (SampleRequest(query={"genre": "$genre", "year": "$year", "limit": 1}),),
    "new_releases": (SampleRequest(query={"limit": 1}),),
    "releases": (SampleRequest(query={"barcode": "$barcode"}),),
    "resolve_releases": (
        SampleRequest(body={"input_type": "barcode", "items": ["$barcode"]}, idempotency_key="import-2"),
        SampleRequest(body={"input_type": "id", "items": ["$release_id"]}),
        SampleRequest(body={"input_type": "release_name", "items": [{"artist": "$artist", "title": "$release_title"}]}),
    ),
    "release": (SampleRequest(path={"id": "$release_id"}),),
    "artists": (SampleRequest(query={"name": "$artist"}),),
    "resolve_artists": (
        SampleRequest(body={"input_type": "artist_name", "items": ["$artist"]}, idempotency_key="import-3"),
        SampleRequest(body={"input_type": "id", "items": ["$artist_id"]}),
        SampleRequest(body={"input_type": "streamsvc_a_id", "items": ["$artist_source_id"]}),
    ),
    "artist": (SampleRequest(path={"id": "$artist_id"}),),
    "artist_releases": (SampleRequest(path={"id": "$artist_id"}, query={"limit": 1}),),
    "labels": (SampleRequest(query={"name": "$label"}),),
    "label": (SampleRequest(path={"id": "$label_id"}),),
    "label_releases": (SampleRequest(path={"id": "$label_id"}, query={"limit": 1}),),
    "genres": (SampleRequest(),),
    "create_job": (
        SampleRequest(query={"input_type": "isrc"}, text="isrc\n$isrc\n", media_type=CSV, idempotency_key="import-4"),
        SampleRequest(query={"input_type": "isrc", "format": "csv"}, body={"url": ROWS_URL}),
    ),
    "jobs": (SampleRequest(query={"limit": 10}),),
    "job": (SampleRequest(path=_JOB),),
    "job_result": (SampleRequest(path=_JOB),),
    "cancel_job": (SampleRequest(path=_JOB),),
    "suggest": (
        SampleRequest(
            path={"id": "$track_id"},
            body={"field": "genre", "value": "Deep House", "note": "as on the sleeve", "source_url": "https://example.org/sleeve"},
        ),
    ),
    "suggestions_of_track": (SampleRequest(path={"id": "$track_id"}),),
    "suggestions": (SampleRequest(query={"limit": 10}),),
    "create_stream": (
        SampleRequest(
            body={"url": STREAM_URL, "name": "Radio Amber", "detection_mode": "balanced", "linger_seconds": 30}, idempotency_key="stream-1"
        ),
    ),
    "streams": (SampleRequest(query={"limit": 10}),),
    "stream": (SampleRequest(path=_STREAM),),
    "change_stream": (SampleRequest(path=_STREAM, body={"name": "Radio Amber FM", "detection_mode": "strict"}),),
    "stream_history": (SampleRequest(path=_STREAM, query={"limit": 2, "include": "segments"}),),
    "report": (SampleRequest(query={"from": "2026-11-01", "until": "2026-11-30", "timezone": "Europe/Berlin"}),),
    "stop_stream": (SampleRequest(path=_STREAM),),
    "create_webhook": (
        SampleRequest(body={"url": HOOK_URL, "event_types": ["job.finished", "catalog.published"], "description": "nightly"}),
    ),
    "webhooks": (SampleRequest(),),
    "webhook": (SampleRequest(path=_WEBHOOK),),
    "change_webhook": (SampleRequest(path=_WEBHOOK, body={"event_types": ["job.finished"], "status": "enabled"}),),
    "ping_webhook": (SampleRequest(path=_WEBHOOK),),
    "webhook_deliveries": (SampleRequest(path=_WEBHOOK, query={"limit": 10}),),
    "webhook_delivery": (SampleRequest(path=_DELIVERY),),
    "replay_webhook_delivery": (SampleRequest(path=_DELIVERY),),
    "replay_webhook": (SampleRequest(path=_WEBHOOK, body={"since": "2026-11-20T00:00:00Z"}),),
    "rotate_webhook_secret": (SampleRequest(path=_WEBHOOK, body={"overlap_hours": 24}),),
    "delete_webhook": (SampleRequest(path=_WEBHOOK),),
    "changes": (SampleRequest(query={"since": "$build"}),),
    "isrc_conflicts": (SampleRequest(query={"limit": 1}),),
    "usage": (SampleRequest(),),
    "audit": (SampleRequest(query={"limit": 2}),),
}
"""By operation, in an order in which they succeed one after the other. The first one of each is printed on the reference page."""

MADE_IDS: Mapping[str, tuple[str, str]] = {
    "create_job": ("job_id", "id"),
    "create_stream": ("stream_id", "id"),
    "create_webhook": ("webhook_id", "id"),
    "ping_webhook": ("delivery_id", "id"),
}
"""By operation, the value that its answer gives to later requests, and the member that holds it."""

PARAMETER_VALUES: Mapping[str, Any] = {
    "cursor": "AZ8wxGQu7g4A3kPp",
    "min_class": "fuzzy",
    "limit": 20,
    "include": "isrcs,links",
    "isrc": "$isrc",
    "genreId": "$genre_id",
    "labelId": "$label_id",
    "label": "$label",
    "artistId": "$artist_id",
    "artist": "$artist",
    "randomize": False,
    "url": "$url",
    "kind": "tracks",
    "format": "csv",
    "result_format": "csv",
    "mode": "track",
    "description": "nightly",
    "status": "failed",
    "since": "$build",
    "until": "$build",
    "as_of": "$build",
    "If-None-Match": '"ae42f455fb4f470d1c18de52"',
    "Idempotency-Key": "import-1",
    **{
        f"{platform}_id": f"${platform}_id"
        for platform in ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b")
    },
}
"""Examples of parameters that the printed request does not send, by name."""
