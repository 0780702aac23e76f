"""The short way answers as the framework's way does, whatever the path; the routes that are asked most are on it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from catalog_api.front import Front
from catalog_api.traffic import Traffic
from tests.catalog_api.in_process import answering, asked, published
from tests.catalog_store.catalog_tables import isrc

if TYPE_CHECKING:
    from pathlib import Path

PATHS = (
    f"/v1/tracks/isrc/{isrc(1)}", f"/v1/tracks/isrc/{isrc(1).lower()}", "/v1/tracks/isrc/none", "/v1/tracks/isrc/", "/v1/tracks/isrc",
    "/v1/tracks/isrc//", f"/v1/tracks/isrc/{isrc(1)}/", f"/v1/tracks//isrc/{isrc(1)}", f"/v1/tracks/isrc/{isrc(1)}/more",
    "/v1/tracks/1", "/v1/tracks/x", "/v1/tracks/", "/v1/tracks", "/v1/tracks/resolve", "/v1/tracks/search", "/v1/tracks/links",
    "/v1/genres", "/v1/genres/", "/v1/artists/1", "/v1/artists/1/releases", "/v1/labels/1", "/v1/nothing",
    "/", "", "/v1/tracks/isrc/ä", "/v1/tracks/{id}",
    "/V1/genres", "/v1/tracks/browse", "/v1/usage", "/v1/errors", "/healthz", "/v1/tracks/iswc/T0345246801",
)  # fmt: skip
OF_THE_REQUEST = re.compile(rb'"request_id":"[^"]*"|"credits_used":[0-9]+|"credits_remaining":[0-9]+|"days":.*')
Answered = tuple[int, bytes, frozenset[str]]


async def answered(app: Any, method: str, path: str, key: str) -> Answered:  # noqa: ANN401 - any ASGI application
    head, body = await asked(app, method, path, key)
    return head["status"], OF_THE_REQUEST.sub(b"", body), frozenset(name.decode().lower() for name, _ in head["headers"])


async def both_ways(place: Path, key: str) -> dict[tuple[str, str], tuple[Answered, Answered]]:
    answers = {}
    async with answering(place, key) as app:
        check = app._app
        lane = check._app
        for method in ("GET", "POST", "DELETE"):
            for path in PATHS:
                short = await answered(app, method, path, key)
                check._app = lane._routes
                long = await answered(Front(check, Traffic()), method, path, key)
                check._app = lane
                answers[method, path] = (short, long)
        assert {"/v1/tracks/isrc/{isrc:str}", "/v1/tracks/{id:str}", "/v1/tracks/search", "/v1/tracks/links"} <= lane.paths
    return answers


def test_both_ways_answer_alike(tmp_path: Path) -> None:
    answers = asyncio.run(both_ways(tmp_path, published(tmp_path)))
    assert {request: short for request, (short, _) in answers.items()} == {request: long for request, (_, long) in answers.items()}
    assert {short[0] for short, _ in answers.values()} >= {200, 400, 404, 405}
