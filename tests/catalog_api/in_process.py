"""The application in the test's own process: called as ASGI, with its inner parts accessible."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from account_store.accounts import Accounts
from catalog_api.app import build_app
from catalog_api.server.request_statistics import RequestStatistics
from catalog_api.settings import ApiSettings
from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES
from tests.catalog_store.catalog_tables import make_tables
from tests.migrated_databases import make_migrated_file
from tests.waiting import until_in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def published(place: Path) -> str:
    """Publish a catalog of thirty tracks in `place`, create an account store with one account, and return the account's key."""
    shutil.copytree(_publish_first(), place / "catalog", symlinks=True)
    accounts = Accounts.open(make_migrated_file(place))
    key = accounts.keys.create(accounts.create("tester", "scale").account_id).key
    accounts.close()
    return key


@cache
def _publish_first() -> Path:
    """Return the root of a catalog for tests to copy, because publishing takes 0.7 CPU seconds."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    publish_as(place, "first")
    return place / "catalog"


def publish_as(place: Path, snapshot_id: str) -> None:
    """Publish the thirty tracks as the catalog's next snapshot."""
    made = make_tables(place / "tables" / snapshot_id, 30)
    tables = {table.name: made[table.name] for table in CATALOG_TABLES}
    publish(tables, place / "catalog", snapshot_id=snapshot_id, next_ids={"recording": 1000, "artist": 50})


@asynccontextmanager
async def answering(place: Path, key: str, **settings: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - members of ApiSettings
    """Yield the ready application over the catalog that `published` made, and shut it down afterwards."""
    settings = {"catalog": place / "catalog", "accounts_url": f"sqlite:///{place}/accounts.db", "dashboard": False, **settings}
    settings.setdefault("jobs_folder", place / "jobs")
    app: Any = build_app(ApiSettings(**settings), RequestStatistics())
    events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    messages: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, events.get, messages.put))
    await events.put({"type": "lifespan.startup"})
    assert (await messages.get())["type"] == "lifespan.startup.complete"

    async def is_ready() -> bool:
        return bool((await asked(app, "GET", "/readyz", key))[0]["status"] == 200)

    await until_in_loop(is_ready, "the application")
    yield app
    await events.put({"type": "lifespan.shutdown"})
    await lifespan


Headers = Sequence[tuple[bytes, bytes]]


async def asked(
    app: Any,  # noqa: ANN401 - any ASGI application
    method: str,
    path: str,
    key: str,
    headers: Headers = (),
    body: bytes = b"",
) -> tuple[dict[str, Any], bytes]:
    """Send a request; return the message that begins the answer, and its body.

    `path` is percent-encoded, and may end with a query.
    """
    said: list[dict[str, Any]] = []

    request = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, object]:
        return next(request, None) or await asyncio.Future()  # a caller who stays connected sends nothing more

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    await app(_scope(method, path, key, headers), receive, send)
    head, *parts = said
    return head, b"".join(part.get("body", b"") for part in parts)


def _scope(method: str, path: str, key: str, headers: Headers) -> dict[str, Any]:
    path, _, query = path.partition("?")
    facts: dict[str, Any] = {"method": method, "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode("latin-1")}
    facts["headers"] = [(b"x-api-key", key.encode()), *headers]
    where = {"http_version": "1.1", "scheme": "http", "server": ("localhost", 1), "client": ("localhost", 2), "root_path": ""}
    return {"type": "http", "asgi": {"version": "3.0"}, "state": {}, **where, **facts}
