"""The short way answers as the framework's way does, whatever the path; the routes that are asked most are on it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from account_store.accounts import Accounts
from catalog_api.app import build_app
from catalog_api.front import Front
from catalog_api.settings import ApiSettings
from catalog_api.traffic import Traffic
from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES
from tests.catalog_store.catalog_tables import isrc, make_tables

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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("express")
    made = make_tables(place / "tables", 30)
    tables = {table.name: made[table.name] for table in CATALOG_TABLES}
    publish(tables, place / "catalog", snapshot_id="first", next_ids={"recording": 1000, "artist": 50})
    return place


async def asked(app: Any, method: str, path: str, key: str) -> Answered:  # noqa: ANN401 - any ASGI application
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    facts = {"method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [(b"x-api-key", key.encode())]}
    where = {"http_version": "1.1", "scheme": "http", "server": ("localhost", 1), "client": ("localhost", 2), "root_path": ""}
    await app({"type": "http", "asgi": {"version": "3.0"}, "state": {}, **where, **facts}, receive, send)
    head, *parts = said
    names = frozenset(name.decode().lower() for name, _ in head["headers"])
    return head["status"], OF_THE_REQUEST.sub(b"", b"".join(part.get("body", b"") for part in parts)), names


async def both_ways(place: Path, key: str) -> dict[tuple[str, str], tuple[Answered, Answered]]:
    app: Any = build_app(ApiSettings(catalog=place / "catalog", accounts_url=f"sqlite:///{place}/accounts.db", dashboard=False), Traffic())
    check = app._app
    lane = check._app
    events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    told: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, events.get, told.put))
    await events.put({"type": "lifespan.startup"})
    assert (await told.get())["type"] == "lifespan.startup.complete"
    for _ in range(500):
        if (await asked(app, "GET", "/readyz", key))[0] == 200:
            break
        await asyncio.sleep(0.02)
    answers = {}
    for method in ("GET", "POST", "DELETE"):
        for path in PATHS:
            short = await asked(app, method, path, key)
            check._app = lane._routes
            long = await asked(Front(check, Traffic()), method, path, key)
            check._app = lane
            answers[method, path] = (short, long)
    assert {"/v1/tracks/isrc/{isrc:str}", "/v1/tracks/{id:str}", "/v1/tracks/search", "/v1/tracks/links"} <= lane.paths
    await events.put({"type": "lifespan.shutdown"})
    await lifespan
    return answers


def test_both_ways_answer_alike(place: Path) -> None:
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    key = accounts.keys.create(accounts.create("tester", "scale").account_id).key
    accounts.close()
    answers = asyncio.run(both_ways(place, key))
    assert {request: short for request, (short, _) in answers.items()} == {request: long for request, (_, long) in answers.items()}
    assert {short[0] for short, _ in answers.values()} >= {200, 400, 404, 405}
