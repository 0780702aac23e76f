"""Requests that show the rows of the contract from outside, and what their answers must be. contract_check.py sends them.

A row may have several requests; all must be answered as expected. Values in braces are those that `find_values` reads from the catalog
itself. A row without a request here cannot be shown by one: its tests do (scripts/contract_page.py lists them). Out of scope: printing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from catalog_api.reference.sample_requests import FINGERPRINT

LIVE, FREE, TEST, NARROW, NONE = "live", "free", "test", "narrow", "none"
"""Keys: of a paying plan, of the free plan, of the test mode, with the scope `read` alone; and no key."""
Values = dict[str, Any]
Expectation = Callable[[httpx.Response, Values], bool]
TRACK_MEMBERS = {"id", "title", "releases", "artists", "isrc", "duration", "genre", "subgenre"}
_MAINS = 25
_PRIVATE = "http://10.0.0.1/live"


@dataclass(frozen=True)
class Probe:
    """One request and the answer that the row promises: a status, the code of a problem, and what `holds` says of the rest."""

    row: str
    method: str
    path: str
    status: int = 200
    code: str = ""
    holds: Expectation = lambda _answer, _values: True
    key: str = LIVE
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content: bytes = b""
    media_type: str = ""

    def send(self, client: httpx.Client, values: Values, key: str) -> httpx.Response:
        """Send the request with the values in their places."""
        headers = {name: _fill(text, values) for name, text in self.headers.items()} | ({"x-api-key": key} if key else {})
        path = _fill(self.path, values)
        if self.content or self.media_type:
            return client.request(self.method, path, headers={**headers, "content-type": self.media_type}, content=self.content)
        return client.request(self.method, path, headers=headers, json=_fill(self.body, values) if self.body is not None else None)

    def find_fault(self, answer: httpx.Response, values: Values) -> str:
        """Return how the answer differs from the promise; empty when it holds."""
        if answer.status_code != self.status:
            return f"expected {self.status}"
        if self.code and answer.json().get("code") != self.code:
            return f"expected the code {self.code}"
        return "" if self.holds(answer, values) else "the answer differs"


def find_values(client: httpx.Client, key: str) -> Values:
    """Read values for the requests from the catalog: a track with code, work and links, through browsing. LookupError: there is none."""
    headers = {"x-api-key": key}

    def read(path: str) -> Any:  # noqa: ANN401 - JSON
        return client.get(path, headers=headers).raise_for_status().json()

    for genre in [one["name"] for one in read("/v1/genres")["genres"] if one["type"] == "main"]:
        page = client.get("/v1/tracks/browse", params={"genre": genre, "limit": 50}, headers=headers).raise_for_status().json()
        for track in page["results"]:
            works = client.get(f"/v1/tracks/iswc?id={track['id']}", headers=headers)
            if not track["isrc"] or not track["releases"] or works.status_code != httpx.codes.OK or not works.json()["iswcs"]:
                continue
            links = read(f"/v1/tracks/links?id={track['id']}")["links"]
            release = track["releases"][0]
            if links and release["label"]:
                return {
                    "id": track["id"],
                    "title": track["title"],
                    "artist": track["artists"][0]["name"],
                    "artist_id": track["artists"][0]["id"],
                    "isrc": track["isrc"],
                    "spelled_isrc": f"{track['isrc'][:2]}-{track['isrc'][2:5]}-{track['isrc'][5:7]}-{track['isrc'][7:]}".lower(),
                    "iswc": works.json()["iswcs"][0]["iswc"],
                    "release_id": release["id"],
                    "label_id": release["label"]["id"],
                    "genre": genre,
                    "genres": {one["name"] for one in read("/v1/genres")["genres"]},
                    "etag": client.get(f"/v1/tracks/{track['id']}", headers=headers).headers["etag"],
                    "once": f"contract-{datetime.now(UTC).timestamp()}",
                }
    raise LookupError("no track of the catalog has a code, a work, a label and a link; use another catalog")


def _fill(value: Any, values: Values) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _fill(one, values) for name, one in value.items()}
    if isinstance(value, list):
        return [_fill(one, values) for one in value]
    if not isinstance(value, str):
        return value
    if value[:1] == "{" and value[1:-1] in values:
        return values[value[1:-1]]
    for name, one in values.items():
        value = value.replace(f"{{{name}}}", str(httpx.QueryParams({"": str(one)}))[1:] if "?" in value else str(one))
    return value


def _has_header(name: str) -> Expectation:
    return lambda answer, _: name in answer.headers


def _results(answer: httpx.Response) -> list[Any]:
    found: list[Any] = answer.json()["results"]
    return found


def _is_sorted(values: list[Any]) -> bool:
    return values == sorted(values, reverse=True)


def _finds(answer: httpx.Response, values: Values) -> bool:
    return values["id"] in [one["id"] for one in _results(answer)]


_SEARCH = "/v1/tracks/search?artist={artist}&title={title}"
_IDENTIFY, _RESOLVE = "/v1/tracks/identify", "/v1/tracks/resolve"

PROBES = [
    Probe("A1", "GET", "/v1/nothing", 404, "not_found"),
    Probe("A1", "DELETE", "/v1/genres", 405, holds=_has_header("allow")),
    Probe("A1", "GET", "/v1/openapi.json", holds=lambda answer, _: answer.json()["openapi"].startswith("3.1"), key=NONE),
    Probe("A2", "GET", "/v1/usage", holds=lambda answer, _: answer.headers["content-type"] == "application/json; charset=utf-8"),
    Probe("A2", "POST", _RESOLVE, 415, content=b"x", media_type="text/plain"),
    Probe(
        "A2", "GET", "/v1/genres", headers={"accept-encoding": "gzip"}, holds=lambda answer, _: answer.headers["content-encoding"] == "gzip"
    ),
    Probe("A3", "GET", "/v1/usage", 401, "missing_api_key", key=NONE),
    Probe("A3", "GET", "/v1/usage?x-api-key=mc_unknown", 401, key=NONE),
    Probe("A4", "GET", "/v1/tracks/browse?limit=0", 403, key=FREE),
    Probe("A4", "GET", "/v1/tracks/{id}", key=FREE),
    Probe(
        "A5",
        "GET",
        "/v1/tracks/search",
        400,
        holds=lambda answer, _: {one["name"] for one in answer.json()["errors"]} == {"artist", "title"},
    ),
    Probe("A5", "GET", "/v1/errors", holds=_has_header("x-request-id"), key=NONE),
    Probe("A6", "GET", "/v1/tracks/9223372036854775807", 404, "not_found"),
    Probe("A6", "GET", "/v1/tracks/x", 400, "invalid_parameter"),
    Probe("A7", "GET", f"{_SEARCH}&limit=0", 400),
    Probe("A7", "GET", f"{_SEARCH}&nonsense=1"),
    Probe("A7", "GET", f"{_SEARCH}&nonsense=1", 400, headers={"prefer": "handling=strict"}),
    Probe("A8", "GET", "/v1/tracks/x", 401, key=NONE),
    Probe("A8", "GET", "/v1/tracks/browse?limit=0", 403, key=FREE),
    Probe("A9", "GET", "/v1/tracks/{id}", holds=_has_header("ratelimit-policy")),
    Probe("A10", "GET", "/v1/tracks/{id}", holds=lambda answer, _: answer.headers["x-credits-used"] == "1"),
    Probe("A10", "GET", "/v1/usage", holds=lambda answer, _: answer.json()["credits_used"] > 0),
    Probe("A13", "PUT", "/v1/tracks/{id}", 405),
    Probe("A14", "GET", "/v1/usage", holds=lambda answer, _: answer.json()["resets_at"].endswith("Z")),
    Probe("A14", "GET", "/v1/releases/{release_id}", holds=lambda answer, _: len(answer.json()["release_date"] or "2026-01-01") == 10),  # noqa: PLR2004
    Probe(
        "A15",
        "GET",
        "/v1/usage",
        headers={"origin": "https://example.org"},
        holds=lambda answer, _: "x-request-id" in answer.headers and not any(name.startswith("access-control") for name in answer.headers),
    ),
    Probe("A16", "GET", "/v1/tracks/{id}", 304, headers={"if-none-match": "{etag}", "accept-encoding": "identity"}),
    Probe("A16", "GET", "/v1/tracks/{id}", holds=_has_header("x-catalog-build")),
    Probe("A17", "GET", "/v1/changelog", key=NONE),
    Probe("A18", "GET", "/v1/streams", 403, "scope_required", key=NARROW),
    Probe("A18", "GET", "/v1/tracks/{id}", key=NARROW),
    Probe("A19", "GET", "/v1/audit", holds=lambda answer, _: any(one["action"] == "key.created" for one in _results(answer))),
    Probe("A20", "GET", "/v1/tracks/1", holds=lambda answer, _: answer.json()["title"] == "First Light", key=TEST),
    Probe("A20", "POST", "/v1/webhooks", 403, "live_key_required", key=TEST, body={"url": "https://example.org/hook"}),
    Probe("B1", "GET", "/v1/tracks/{id}", holds=lambda answer, _: set(answer.json()) == TRACK_MEMBERS),
    Probe("B2", "GET", "/v1/tracks/{id}?include=isrcs", holds=lambda answer, _: answer.json()["isrc"] in str(answer.json()["isrcs"])),
    Probe("B3", "GET", "/v1/tracks/{id}", holds=lambda answer, _: isinstance(answer.json()["duration"], int | None)),
    Probe(
        "B4",
        "GET",
        "/v1/tracks/{id}",
        holds=lambda answer, values: {*answer.json()["genre"], *answer.json()["subgenre"]} <= values["genres"],
    ),
    Probe(
        "B5",
        "GET",
        "/v1/tracks/{id}",
        holds=lambda answer, _: {"id", "title", "artist", "label", "release_date"} <= set(answer.json()["releases"][0]),
    ),
    Probe("B6", "GET", "/v1/tracks/{id}", holds=lambda answer, _: any(one["is_primary"] for one in answer.json()["artists"])),
    Probe("B7", "GET", "/v1/tracks/isrc/{spelled_isrc}", holds=lambda answer, values: answer.json()["id"] == values["id"]),
    Probe("B9", "GET", "/v1/tracks/iswc?isrc={isrc}", holds=lambda answer, values: values["iswc"] in str(answer.json()["iswcs"])),
    Probe(
        "B10",
        "POST",
        _RESOLVE,
        body={"input_type": "isrc", "items": ["{isrc}"]},
        holds=lambda answer, values: _results(answer)[0]["track"]["id"] == values["id"],
    ),
    Probe(
        "B12",
        "GET",
        "/v1/tracks/links?id={id}",
        holds=lambda answer, _: all(one["url"].startswith("http") for one in answer.json()["links"]),
    ),
    Probe("B13", "GET", "/v1/tracks/iswc?id={id}", holds=lambda answer, values: answer.json()["sonovault_id"] == values["id"]),
    Probe("B14", "GET", "/v1/genres", holds=lambda answer, _: sum(one["type"] == "main" for one in answer.json()["genres"]) == _MAINS),
    Probe("B15", "GET", "/v1/releases/new?limit=1", holds=lambda answer, _: all("track_count" in one for one in _results(answer))),
    Probe("B16", "GET", "/v1/tracks/7", key=TEST, holds=lambda answer, _: answer.headers["content-location"] == "/v1/tracks/1"),
    Probe(
        "B17",
        "GET",
        "/v1/tracks/{id}?as_of=1999-01-01T00:00:00Z",
        410,
        "build_not_kept",
        holds=lambda answer, _: bool(answer.json()["builds"]),
    ),
    Probe("C1", "GET", "/v1/tracks/search?q={title}", 400),
    Probe("C2", "GET", f"{_SEARCH}&cursor=nonsense", 400, "invalid_cursor"),
    Probe("C3", "GET", "/v1/tracks/search?artist=xqzvw&title=qqzzxxwwvv", holds=lambda answer, _: _results(answer) == []),
    Probe("C4", "GET", f"{_SEARCH}&limit=50", holds=lambda answer, _: _is_sorted([one["match"]["score"] for one in _results(answer)])),
    Probe("C5", "GET", "/v1/tracks/search?artist={artist}&title={title}%20(Remastered)", holds=_finds),
    Probe("C7", "GET", "/v1/tracks/search?artist={artist}&title=x{title}", holds=_finds),
    Probe("C8", "GET", "/v1/tracks/isrc/{isrc}", holds=lambda answer, values: answer.json()["id"] == values["id"]),
    Probe("C9", "GET", "/v1/tracks/{id}", holds=lambda answer, values: answer.json()["title"] == values["title"]),
    Probe("C9", "GET", "/v1/tracks/isrc", 404),
    Probe("C10", "GET", "/v1/tracks/iswc?id={id}&isrc={isrc}", 400),
    Probe("C11", "GET", "/v1/tracks/iswc/{iswc}?limit=200", holds=lambda answer, values: f'"sonovault_id":{values["id"]},' in answer.text),
    Probe("C12", "GET", "/v1/tracks/links", 400),
    Probe("C12", "GET", "/v1/tracks/links?isrc={isrc}", holds=lambda answer, values: answer.json()["track_id"] == values["id"]),
    Probe("C13", "GET", "/v1/tracks/links?streamsvc_a_id=nonsense", 400),
    Probe(
        "D1",
        "POST",
        _RESOLVE,
        400,
        body={"input_type": "isrc", "items": ["{isrc}", 5]},
        holds=lambda answer, _: "[1]" in str(answer.json()["errors"]),
    ),
    Probe("D1", "POST", _RESOLVE, 400, body={"input_type": "isrc", "items": []}),
    Probe(
        "D2",
        "POST",
        _RESOLVE,
        body={"input_type": "isrc", "items": ["{isrc}", "nonsense"]},
        holds=lambda answer, _: [one["status"] for one in _results(answer)] == ["matched", "not_found"],
    ),
    Probe(
        "D3",
        "POST",
        _RESOLVE,
        body={"input_type": "isrc", "items": ["{isrc}"] * 3},
        holds=lambda answer, _: answer.headers["x-credits-used"] == "3",
    ),
    Probe("D4", "POST", _RESOLVE, headers={"idempotency-key": "{once}"}, body={"input_type": "isrc", "items": ["{isrc}"]}),
    Probe("D4", "POST", _RESOLVE, 409, headers={"idempotency-key": "{once}"}, body={"input_type": "isrc", "items": ["nonsense"]}),
    Probe(
        "D5",
        "POST",
        "/v1/jobs/resolve?input_type=isrc",
        content=b"isrc\nGBAYE2600100\n",
        media_type="text/csv",
        holds=lambda answer, _: "id" in answer.json(),
    ),
    Probe("E1", "POST", _IDENTIFY, 400, body={"fingerprint": [1.5]}),
    Probe("E2", "POST", _IDENTIFY, 415, content=b"not audio at all", media_type="application/octet-stream"),
    Probe("E3", "POST", _IDENTIFY, body={"fingerprint": FINGERPRINT}, holds=lambda answer, _: answer.json()["credits_charged"] == 10),  # noqa: PLR2004
    Probe("E4", "POST", _IDENTIFY, body={"fingerprint": FINGERPRINT}, holds=lambda answer, _: isinstance(answer.json()["matched"], bool)),
    Probe("F1", "GET", "/v1/genres", holds=lambda answer, values: values["genre"] in answer.text),
    Probe(
        "F2",
        "GET",
        "/v1/tracks/browse?genre={genre}&limit=100",
        holds=lambda answer, _: _is_sorted([one["releases"][0]["release_date"] or "" for one in _results(answer) if one["releases"]]),
    ),
    Probe(
        "F4",
        "GET",
        "/v1/releases/new?limit=100",
        holds=lambda answer, _: all(one["release_date"] <= str(datetime.now(UTC).date()) for one in _results(answer)),
    ),
    Probe("F5", "GET", "/v1/artists/{artist_id}", holds=lambda answer, values: answer.json()["id"] == values["artist_id"]),
    Probe("F5", "GET", "/v1/labels/{label_id}/releases", holds=lambda answer, _: bool(_results(answer))),
    Probe(
        "F5",
        "GET",
        "/v1/artists?name={artist}",
        holds=lambda answer, values: values["artist_id"] in [one["id"] for one in _results(answer)],
    ),
    Probe("F6", "GET", "/v1/suggestions"),
    Probe("G1", "POST", "/v1/streams", 403, key=FREE, body={"url": _PRIVATE, "name": "x"}),
    Probe("G3", "GET", "/v1/streams"),
    Probe("G3", "GET", "/v1/streams/01a21a9d-c322-738b-ad95-5aff0a88349d", 404),
    Probe("G7", "GET", "/v1/streams/report?from=2026-01-01&until=2026-12-31", 400),
    Probe("G7", "GET", "/v1/streams/report?from=2026-11-01&until=2026-11-02", headers={"accept": "text/csv"}),
    Probe("G8", "POST", "/v1/webhooks", 400, body={"url": "https://10.0.0.1/hook"}),
    Probe("G9", "GET", "/v1/streams", holds=lambda answer, _: answer.headers.get("x-credits-used", "0") == "0"),
]
