"""Fuzz targets of requests to `/v1`: bodies of all operations that take one, and heads with paths, queries and header fields.

An answer must match the description of the operation (service.judge). Bytes that no HTTP parser lets through are not asked.
Out of scope: cursors that have the right seal (cursors.py).
"""

from __future__ import annotations

import hashlib
import re
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
import numpy as np

from audio_recognition.chromaprint.compressed import encode
from catalog_api.route_declaration import ROUTE, build_path_template
from catalog_api.routes import ROUTES
from tests.contract.awkward import BARCODE, isrc
from tests.fuzz import Target, chosen
from tests.fuzz.service import JSON, OPERATIONS, described, judge, operation_at, service

if TYPE_CHECKING:
    from collections.abc import Iterator

BODIES: dict[str, list[object]] = {
    "resolve": [
        {"input_type": "isrc", "items": [isrc(1), "x"]},
        {"input_type": "track_name", "items": [{"artist": "Daft Trunk", "title": "Glass City"}]},
        {"input_type": "catalog_b_id", "items": ["00000000-0000-4000-8000-0000000000ff"]},
    ],
    "resolve_artists": [{"input_type": "id", "items": [1, 901]}, {"input_type": "artist_name", "items": ["Meridian"]}],
    "resolve_releases": [
        {"input_type": "barcode", "items": [BARCODE, "x"]},
        {"input_type": "release_name", "items": [{"artist": "DJ Salt", "title": "Daily"}]},
    ],
    "create_job": [{"url": "http://93.184.215.14/rows.csv"}],
    "identify": [
        {"fingerprint": encode(np.arange(50, dtype=np.uint32)), "fingerprint_duration": 180},
        {"fingerprint": [*range(-30, 30)], "fingerprint_duration": None},
    ],
    "suggest": [{"field": "genre", "value": "Acid House", "note": "as on the sleeve", "source_url": "https://label.example/1"}],
    "create_stream": [{"url": "http://93.184.215.14:8000/live.mp3", "name": "Amber"}, {"url": "https://radio.example/", "name": "x"}],
    "create_webhook": [
        {"url": "https://93.184.215.14/hook", "event_types": ["stream.track_started"], "description": "ours"},
        {"url": "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/", "event_types": None},
    ],
    "change_stream": [{"url": "https://example.org/new", "name": "Radio", "detection_mode": "strict", "linger_seconds": 60}, {}],
    "change_webhook": [{"url": "https://example.org/hook", "status": "disabled", "description": ""}, {}],
    "rotate_webhook_secret": [{"overlap_hours": 24}, {}],
    "replay_webhook": [{"since": "2026-11-21T12:00:00Z"}, {"since": "2026-11-21t12:00:00.5+01:00"}],
}
"""Valid bodies of every operation that takes JSON. Each is answered 200."""
QUERIES = {"create_job": "?input_type=isrc&format=csv"}
"""Queries that operations with a body need."""
HEADS = (
    f"GET /v1/tracks/isrc/{isrc(1)}?include=isrcs,links",
    "GET /v1/tracks/search?artist=Daft+Trunk&title=Glass%20City&limit=2",
    "GET /v1/tracks/1?include=provenance\nif-none-match: *",
    "GET /v1/tracks/links?url=https%3A%2F%2Fstreamsvc-a.example%2Ftrack%2F1",
    "GET /v1/tracks/links?catalog_b_id=00000000-0000-4000-8000-0000000000ff",
    "GET /v1/tracks/iswc?id=1",
    "GET /v1/tracks/iswc/T-034.524.680-1?limit=200",
    "GET /v1/tracks/browse?genre=house&genreId=1&year=2021&labelId=1&label=Amber+Records&artistId=1&artist=x&randomize=true&limit=100",
    "GET /v1/releases/new?limit=100\nprefer: handling=strict",
    "GET /v1/artists?name=Velvet%20Foxes&limit=1",
    "GET /v1/artists/1/releases",
    "GET /v1/labels/2/releases?cursor=AQgR1auF",
    "GET /v1/releases/902",
    f"GET /v1/releases?barcode={BARCODE}&limit=1",
    "GET /v1/tracks/1/suggestions",
    "GET /v1/streams/report?from=2026-10-01&until=2026-11-30&timezone=Europe/Berlin\naccept: text/csv",
    "GET /v1/streams/report?from=2026-10-01&until=2026-10-01\naccept: application/vnd.apache.parquet;q=0.5, */*;q=0.1",
    "GET /v1/streams/{stream}/history",
    "GET /v1/webhooks/{webhook}/deliveries?status=pending",
    "GET /v1/webhooks/{webhook}/deliveries/1",
    "POST /v1/webhooks/{webhook}/deliveries/1/replay",
    "POST /v1/webhooks/{webhook}/ping",
    "POST /v1/webhooks/{webhook}/rotate",
    "POST /v1/tracks/identify\ncontent-type: application/octet-stream\ncontent-encoding: gzip\nidempotency-key: k",
    "POST /v1/tracks/resolve\ncontent-type: application/json; charset=utf-16",
    "POST /v1/jobs/resolve?input_type=isrc&kind=tracks&result_format=parquet\ncontent-type: text/csv",
    "GET /v1/jobs",
    "DELETE /v1/jobs/01a21a9d-c322-738b-ad95-5aff0a88349d",
    "DELETE /v1/webhooks/{webhook}",
    "DELETE /v1/streams/{stream}",
    f"GET /v1/conflicts/isrc?isrc={isrc(1)}&limit=1",
    "HEAD /v1/changes?since=first&limit=1000\nx-request-id: a-b",
    "OPTIONS /v1/usage",
    "GET /v1/openapi.json",
)
_OTHER_PATHS = {path for handler in ROUTES if ROUTE not in handler.opt for path in handler.paths}
"""Paths of the documentation and of the health checks."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_NOT_IN_TARGETS = re.compile(rb"[^!-\"$-~]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_FRAMING = {b"content-length", b"transfer-encoding"}
"""Events that the server sends after the request."""


def ask_with_body(content: bytes) -> None:
    """A line `<operation> [strict] [key]`, then the body; with `strict` unknown members are wrong, with `key` it comes under a key."""
    line, _, body = content.partition(b"\n")
    first, *wishes = line.split(b" ")
    name = chosen(first, BODIES)
    operation = OPERATIONS[name]
    headers = [*JSON, *([(b"prefer", b"handling=strict")] if b"strict" in wishes else [])]
    if b"key" in wishes:
        headers.append((b"idempotency-key", hashlib.sha256(content).hexdigest().encode()))
    is_of_webhook = operation.path.startswith("/v1/webhooks/")
    with service().own_webhook() if is_of_webhook else nullcontext("") as webhook_id:
        path = service().fill(build_path_template(operation.path), webhook_id=webhook_id)
        answer = service().ask(operation.method, path + QUERIES.get(name, ""), headers, body)
        judge(answer, operation)
    if answer.status == 200 and name in {"create_stream", "create_webhook", "create_job"}:
        service().ask("DELETE", f"{path.removesuffix('/resolve')}/{answer.json()['id']}")


def ask_with_head(content: bytes) -> None:
    """A line `<method> <path and query>`, then header fields. `{webhook}` and `{stream}` stand for ids of the account's."""
    first, *rest = content.split(b"\n")
    verb, _, target = _NOT_IN_TARGETS.sub(lambda found: b"%%%02x" % found[0][0], first).decode().partition("%20")
    method, target = verb if verb in _METHODS else "GET", target if target.startswith("/") else f"/{target}"
    fields = [field.groups() for field in map(_FIELD.fullmatch, rest) if field]
    headers = [(name.lower(), value) for name, value in fields if name.lower() not in _FRAMING]
    with service().own_webhook() if "{webhook}" in target else nullcontext("") as webhook_id:
        target = target.replace("{webhook}", webhook_id).replace("{stream}", service().stream_id)
        path = unquote(target.partition("?")[0])
        operation = operation_at("GET" if method == "HEAD" else method, path)
        also = (200,) if operation is None and path.rstrip("/") in _OTHER_PATHS else ()
        answer = service().ask(method, target, headers)
    judge(answer, operation, *also)


def _bodies() -> list[bytes]:
    plain = [name.encode() + b"\n" + msgspec.json.encode(body) for name, bodies in BODIES.items() for body in bodies]
    return [*plain, *(body.replace(b"\n", b" strict key\n", 1) for body in plain)]


def _heads() -> list[bytes]:
    return [head.encode() for head in HEADS]


@cache
def _names() -> tuple[bytes, ...]:
    """Return the names and choices in the description."""
    found = {one for operation in OPERATIONS.values() for one in _find_names(described(operation))}
    return tuple(sorted(one.encode() for one in found if one.isascii() and 1 < len(one) < 40))


def _find_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (one for one in schema.get("enum", ()) if isinstance(one, str))
        yield from (name for name in [schema.get("name")] if isinstance(name, str))
        schema = list(schema.values())
    if isinstance(schema, list):
        for one in schema:
            yield from _find_names(one)


def _body_words() -> list[bytes]:
    return [*_names(), *(name.encode() for name in BODIES), b" strict", b" key", b"null", b"true", b"1e308", b'"\\ud800"', b"\\u0000"]


def _head_words() -> list[bytes]:
    paths = [build_path_template(route.path).encode() for route in OPERATIONS.values()]
    headers = [
        b"\nprefer: handling=strict",
        b"\nif-none-match: *",
        b"\naccept: ",
        b"\nidempotency-key: ",
        b"\ncontent-type: application/json",
    ]
    return [*_names(), *paths, *headers, b"%00", b"%ff", b"%2f", b"%3f", b"&", b"=", b"{webhook}", b"{stream}"]


TARGETS = (Target("request_bodies", ask_with_body, _bodies, _body_words), Target("request_heads", ask_with_head, _heads, _head_words))
