"""Add examples to the description: to parameters, bodies, answers, events, and each field of them.

Answers come from sample_answers.json, which `python -m tests.contract.sample_recording` records from the catalog of the contract tests.
Fields get the first value that an answer shows for them. Out of scope: the shapes themselves (description.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from account_store.webhooks.event_types import (
    CATALOG_PUBLISHED,
    JOB_FINISHED,
    PING,
    STATUS_CHANGED,
    SUGGESTION_DECIDED,
    TRACK_ENDED,
    TRACK_STARTED,
)
from catalog_api.problems import CODES
from catalog_api.reference.sample_requests import CSV, JSON, PARAMETER_VALUES, SAMPLE_REQUESTS, SMALL_CATALOG, SampleRequest, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SAMPLE_ANSWERS = Path(__file__).with_name("sample_answers.json")
_NOON = "2026-11-21T12:00:05Z"
_STREAM = {"id": SMALL_CATALOG["stream_id"], "name": "Radio Amber"}
_TRACK = {"id": "1", "title": "Midnight Running", "isrc": "GBAYE2600100", "artist": "The Velvet Foxes", "duration": 179}
_AIRING = {"stream": _STREAM, "airing_id": "812", "track": _TRACK, "started_at": _NOON, "confidence": 0.93}
EVENT_SAMPLES: Mapping[str, Mapping[str, Any]] = {
    TRACK_STARTED: _AIRING,
    TRACK_ENDED: {**_AIRING, "ended_at": "2026-11-21T12:03:04Z", "duration_seconds": 179},
    STATUS_CHANGED: {
        "stream": _STREAM,
        "runtime_status": "reconnecting",
        "previous_runtime_status": "running",
        "status": "active",
        "last_error": "connection refused by 93.184.215.14:8000",
    },
    CATALOG_PUBLISHED: {"build": "20261121T030000Z", "created_at": "2026-11-21T03:41:10Z"},
    SUGGESTION_DECIDED: {
        "id": 1,
        "status": "approved",
        "track_id": 1,
        "field": "genre",
        "value": "Deep House",
        "created_at": "2026-11-20T09:15:00Z",
    },
    JOB_FINISHED: {
        "id": SMALL_CATALOG["job_id"],
        "status": "succeeded",
        "rows": 1,
        "rows_done": 1,
        "rows_matched": 1,
        "credits_charged": 1,
        "error": None,
        "created_at": "2026-11-21T12:00:00Z",
    },
    PING: {"webhook_id": SMALL_CATALOG["webhook_id"], "requested_at": _NOON},
}
"""The `data` of a message of each type."""

_RARE_VALUES: Mapping[str, Any] = {
    "*.next_cursor": PARAMETER_VALUES["cursor"],
    "*.alternatives": [33, 31],
    "*.message": "The credits of this month are used up: 1 row was skipped.",
    "ArtistRef.credited_as": "Viktor's Reels",
    "TrackArtist.credited_as": "Viktor & The Reels",
    "RecognitionResult.speed": 1.02,
    "RecognitionResult.pitch": 1.02,
    "Identified.reason": "not_found",
    "Identified.timeline": [{"start_seconds": 0.0, "end_seconds": 17.1, "track": None}],
    "TimelineEntry.start_seconds": 17.1,
    "TimelineEntry.end_seconds": 57.0,
    "Stream.unresolved": "radio.example.org does not resolve",
    "Stream.last_error": "connection refused by 93.184.215.14:8000",
    "Stream.last_error_at": _NOON,
    "Stream.last_recognized_at": _NOON,
    "Stream.stopped_at": _NOON,
    "Stream.audio_format": "mp3 128 kbit/s",
    "SourceValues.version": "Radio Edit",
    "SourceValues.release": "Night Trains",
    "SourceValues.label": "Amber Records",
    "Job.url": "https://example.org/codes.csv",
    "Job.error": "row 7: the column isrc is empty",
    "Webhook.disabled_reason": "failing",
    "Webhook.disabled_at": _NOON,
    "Webhook.failing_since": _NOON,
    "Webhook.previous_secret_until": _NOON,
    "WebhookDelivery.next_attempt_at": _NOON,
    "WebhookDelivery.finished_at": _NOON,
    "WebhookDelivery.last_status_code": 503,
    "WebhookDelivery.last_error": "the receiver answered 503",
    "WebhookAttempt.attempted_at": _NOON,
    "WebhookAttempt.duration_ms": 41,
    "WebhookAttempt.status_code": 204,
    "WebhookAttempt.error": "the receiver answered 503",
    "WebhookAttempt.response_excerpt": "try later",
    "Problem.errors": [{"in": "query", "name": "limit", "message": "must be a whole number from 1 to 100, got '0'"}],
    "ReportGap.started_at": _NOON,
    "ReportGap.ended_at": "2026-11-21T12:03:04Z",
    "ReportGap.cause": "source",
    "ReportGap.detail": "connection refused by 93.184.215.14:8000",
    "FieldProvenance.agreed": 3,
    "ReleaseTrack.track_number": 4,
    "Release.catalog_number": "BD-014",
    "FieldProvenance.source": "store_a",
    "FieldProvenance.external_id": "5000001",
    "FieldProvenance.reason": "most platforms agree",
    "Change.new_id": 1,
    "FinishedJob.error": "row 7: the column isrc is empty",
    "Genre.parent": "House",
    "ParameterProblem.in": "query",
    "ParameterProblem.name": "limit",
    "NowPlaying.started_at": _NOON,
    "AiredTrack.genre": ["House"],
    "AiredTrack.subgenre": ["Deep House"],
    "AiringSegment.kind": "talk",
    "AiringSegment.started_at": _NOON,
    "AiringSegment.ended_at": "2026-11-21T12:03:04Z",
    "AiringSegment.duration_seconds": 179,
}
"""Examples of fields that the recorded answers leave out or show as null, by type and field."""
_SPECIAL_HEADERS = {
    "X-Request-Id": "6bda9972742aebf2-1",
    "RateLimit-Policy": '"plan";q=40;w=2',
    "RateLimit": '"plan";r=39;t=1',
    "X-Credits-Used": "1",
    "X-Credits-Remaining": "49999",
    "X-Catalog-Build": "20261121T030000Z",
    "ETag": '"ae42f455fb4f470d1c18de52"',
    "Content-Encoding": "zstd",
    "Cache-Control": "private, no-cache",
    "Content-Location": "/v1/tracks/1",
    "Retry-After": "2",
}
_TEXT_BODIES = {
    CSV: "isrc\nGBAYE2600100\n",
    "application/x-ndjson": '"GBAYE2600100"\n',
}
_BINARY = "(the bytes of the file)"
_SHOWN_ITEMS = 3
"""Items of a list in the example of a field."""


def read_sample_answers() -> dict[str, list[Any]]:
    """Return the recorded answers by operation, one for each of its sample requests: JSON, or the text of a file."""
    answers: dict[str, list[Any]] = json.loads(SAMPLE_ANSWERS.read_text(encoding="utf-8")) if SAMPLE_ANSWERS.exists() else {}
    return answers


def add_examples(document: dict[str, Any]) -> None:
    """Add examples to every part of the document that carries a value."""
    schemas = document["components"]["schemas"]
    answers = read_sample_answers()
    for name, header in document["components"]["headers"].items():
        header["example"] = _SPECIAL_HEADERS[name]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _add_to_operation(operation, path, answers.get(operation["operationId"], []), schemas)
    for event_type, message in document["webhooks"].items():
        content = message["post"]["requestBody"]["content"][JSON]
        content["example"] = {"type": event_type, "timestamp": _NOON, "data": EVENT_SAMPLES[event_type]}
        _add_to_fields(content["schema"], content["example"], schemas)
    for place, value in _RARE_VALUES.items():
        name, _, member = place.partition(".")
        for one in _list_subtypes(name, schemas):
            if member in schemas[one].get("properties", {}):
                schemas[one]["properties"][member].setdefault("examples", [value])


def _list_subtypes(name: str, schemas: Mapping[str, Any]) -> list[str]:
    """Return the type and those that have all its members: wire types inherit, which the description does not show. `*` means all types."""
    if name == "*":
        return list(schemas)
    members = set(schemas.get(name, {}).get("properties", ()))
    return [one for one, schema in schemas.items() if members and members <= set(schema.get("properties", ()))]


def _add_to_operation(operation: dict[str, Any], path: str, answers: list[Any], schemas: dict[str, Any]) -> None:
    requests = [one.fill(SMALL_CATALOG) for one in SAMPLE_REQUESTS.get(operation["operationId"], ())]
    sent: dict[str, Any] = {}
    for request in reversed(requests):
        sent |= {**request.query, **request.path}
    for parameter in operation["parameters"]:
        parameter["example"] = _find_parameter_example(parameter, sent)
    if "requestBody" in operation:
        _add_to_body(operation["requestBody"]["content"], requests, schemas)
    _add_to_answer(operation["responses"]["200"].get("content", {}), answers, schemas)
    for response in operation["responses"].values():
        _add_to_problem(response, path, schemas)


def _add_to_answer(content: dict[str, Any], answers: list[Any], schemas: dict[str, Any]) -> None:
    shown = [answer for answer in answers if not isinstance(answer, str)]
    texts = [answer for answer in answers if isinstance(answer, str)]
    for media_type, described in content.items():
        if media_type != JSON:
            described["example"] = texts[0] if texts and media_type == CSV else _TEXT_BODIES.get(media_type, _BINARY)
        elif shown:
            described["examples"] = _build_named_examples(shown)
            for answer in shown:
                _add_to_fields(described["schema"], answer, schemas)


def _add_to_problem(response: dict[str, Any], path: str, schemas: dict[str, Any]) -> None:
    if "x-codes" not in response:
        return
    [described] = response["content"].values()
    described["examples"] = {code: {"value": build_problem_example(code, path)} for code in response["x-codes"]}
    for example in described["examples"].values():
        _add_to_fields(described["schema"], example["value"], schemas)


def _find_parameter_example(parameter: Mapping[str, Any], sent: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    name, schema = parameter["name"], parameter["schema"]
    if name in sent:
        return sent[name]
    if "enum" in schema and PARAMETER_VALUES.get(name) not in schema["enum"]:
        return schema["enum"][0]
    if name in PARAMETER_VALUES:
        return fill(PARAMETER_VALUES[name], SMALL_CATALOG)
    return next(iter(schema.get("examples", [schema.get("default")])))


def _add_to_body(content: dict[str, Any], requests: list[SampleRequest], schemas: dict[str, Any]) -> None:
    for media_type, described in content.items():
        if media_type != JSON:
            texts = [request.text for request in requests if request.media_type == media_type and request.text]
            described["example"] = texts[0] if texts else _TEXT_BODIES.get(media_type, _BINARY)
            continue
        bodies = [request.body for request in requests if request.body is not None]
        described["examples"] = _build_named_examples(bodies)
        for body in bodies:
            _add_to_fields(described["schema"], body, schemas)
        for name, schema in _list_properties(described["schema"]):
            # A member that no sample sends keeps its default or its first choice.
            fallback = PARAMETER_VALUES.get(name, schema.get("default", schema.get("enum", [None])[0]))
            schema.setdefault("examples", [fill(fallback, SMALL_CATALOG)])


def _list_properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in schema.get("oneOf", [schema]):
        yield from one.get("properties", {}).items()


def _build_named_examples(values: list[Any]) -> dict[str, Any]:
    return {f"sample{number or ''}": {"value": value} for number, value in enumerate(values)}


def build_problem_example(code: str, path: str) -> dict[str, Any]:
    """Return an error document of this code."""
    kind = CODES[code]
    problem = {"type": f"/v1/errors#{code}", "title": kind.title, "status": kind.status, "detail": kind.advice, "instance": path}
    problem |= {"code": code, "request_id": _SPECIAL_HEADERS["X-Request-Id"]}
    if code == "quota_exceeded":
        problem |= {"credits_required": 1, "credits_remaining": 0, "resets_at": "2026-12-01T00:00:00Z"}
    return problem


def _add_to_fields(schema: dict[str, Any], value: Any, schemas: dict[str, Any]) -> None:  # noqa: ANN401 - JSON
    """Give each field below the schema that has no example yet the one that the value shows."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if _may_hold(one, value):
            _add_to_fields(one, value, schemas)
    if isinstance(value, dict):
        for name, member in schema.get("properties", {}).items():
            if value.get(name) is not None and value[name] != []:
                if not _is_of_objects(member):
                    member.setdefault("examples", [value[name][:_SHOWN_ITEMS] if isinstance(value[name], list) else value[name]])
                _add_to_fields(member, value[name], schemas)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            _add_to_fields(schema["items"], item, schemas)


def _may_hold(schema: Mapping[str, Any], value: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether an alternative may be the one of the value, by its kind and by its choices."""
    choices = schema.get("properties", {}).get("input_type", {}).get("enum")
    if choices is not None:
        return isinstance(value, dict) and value.get("input_type") in choices
    kinds: dict[str, type] = {"object": dict, "array": list, "string": str, "null": type(None), "integer": int, "number": float}
    kind = schema.get("type", "object")
    return isinstance(value, kinds.get(kind, object) if isinstance(kind, str) else object)


def _is_of_objects(schema: Mapping[str, Any]) -> bool:
    """Return whether the values are objects of a named type, whose own fields have examples."""
    parts = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
    return any("$ref" in part for part in parts)
