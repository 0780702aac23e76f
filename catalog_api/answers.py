"""How an answer is written: JSON with its charset, tracks passed through as they were stored."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response
from litestar.openapi.datastructures import ResponseSpec

from catalog_api.problems import ApiError
from catalog_api.wire import Problem
from catalog_store.reader import Catalog

JSON = "application/json; charset=utf-8"


def answer(body: msgspec.Struct | bytes, headers: dict[str, str] | None = None) -> Response[bytes]:
    """A 200 with a struct, or with JSON that is encoded already."""
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Response(encoded, media_type=JSON, headers=headers or {})


def documented(data: type[msgspec.Struct], *failures: int) -> dict[int, ResponseSpec]:
    """The responses of a handler for the OpenAPI document: its data, and the problems it can answer."""
    described: dict[int, ResponseSpec] = {200: ResponseSpec(data_container=data, description="The answer.", generate_examples=False)}
    for status in (401, *failures):
        described[status] = ResponseSpec(
            data_container=Problem, description="A problem.", media_type="application/problem+json", generate_examples=False
        )
    return described


def track_answer(catalog: Catalog, track_id: int) -> Response[bytes]:
    """The track, or the survivor it was merged into (named in Content-Location); ApiError `not_found`."""
    survivor, body = find_track(catalog, track_id)
    headers = {"Content-Location": f"/v1/tracks/{survivor}"} if survivor != track_id else None
    return answer(body, headers)


def find_track(catalog: Catalog, track_id: int) -> tuple[int, bytes]:
    """The id that the track has now and its stored JSON."""
    survivor = catalog.resolve_id(track_id)
    body = None if survivor is None else catalog.track_body(survivor)
    if survivor is None or body is None:
        raise ApiError("not_found", f"There is no track {track_id}.")
    return survivor, body


def stored_track(body: bytes) -> dict[str, Any]:
    """A stored track, decoded."""
    decoded: dict[str, Any] = msgspec.json.decode(body)
    return decoded
