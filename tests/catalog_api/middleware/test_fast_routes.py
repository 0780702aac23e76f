"""Tests that the fast path answers as the framework does for every path, and that the busiest routes are on it."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from account_store import Accounts, api_keys
from account_store.plans import Terms
from catalog_api.middleware.request_tracking import RequestTracking
from catalog_api.server.request_statistics import RequestStatistics
from tests.catalog_api.in_process import answering, asked, published
from tests.catalog_store.catalog_tables import isrc

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
        fast = check._app
        for method in ("GET", "POST", "DELETE"):
            for path in PATHS:
                short = await answered(app, method, path, key)
                check._app = fast._routes
                long = await answered(RequestTracking(check, RequestStatistics(), app._log), method, path, key)
                check._app = fast
                answers[method, path] = (short, long)
        assert {"/v1/tracks/isrc/{isrc:str}", "/v1/tracks/{id:str}", "/v1/tracks/search", "/v1/tracks/links"} <= fast.paths
    return answers


def test_fast_routes_and_framework_answer_alike(tmp_path: Path) -> None:
    answers = asyncio.run(both_ways(tmp_path, published(tmp_path)))
    assert {request: short for request, (short, _) in answers.items()} == {request: long for request, (_, long) in answers.items()}
    assert {short[0] for short, _ in answers.values()} >= {200, 400, 404, 405}


Sent = tuple[str, tuple[tuple[bytes, bytes], ...]]
SENT: tuple[Sent, ...] = (
    *((path, ()) for path in PATHS),
    (f"/v1/tracks/isrc/{isrc(1)}?include=isrcs,links", ()),
    (f"/v1/tracks/isrc/{isrc(1)}?include=provenance", ()),
    (f"/v1/tracks/isrc/{isrc(1)}?include=nothing", ()),
    (f"/v1/tracks/isrc/{isrc(1)}?unknown=1", ((b"prefer", b"handling=strict"),)),
    (f"/v1/tracks/isrc/{isrc(2)}", ((b"if-none-match", b"*"),)),
    (f"/v1/tracks/isrc/{isrc(2)}", ((b"if-none-match", b'"another"'),)),
    (f"/v1/tracks/isrc/{isrc(2)}", ((b"x-request-id", b"mine"),)),
    (f"/v1/tracks/isrc/{isrc(99)}", ()),
    ("/v1/tracks/search?artist=a&title=b", ()),
    ("/v1/tracks/search?artist=a&title=b&cursor=none", ()),
    ("/v1/tracks/search?artist=a", ()),
    ("/v1/tracks/browse?limit=2", ()),
)
Response = tuple[int, bytes, list[bytes], list[tuple[str, str, int, int, int]]]


def record(app: Any, answer: tuple[dict[str, Any], bytes], before: list[Any]) -> Response:  # noqa: ANN401 - our application
    """Return the status, body and header names, and the counts since `before`."""
    head, body = answer
    rows = [(row.route, row.method, row.status, row.requests, row.credits) for row in app._statistics._rows.values()]
    counted = [row for row in rows if row not in before]
    same = [(*row[:3], 1, row[4] - sum(old[4] for old in before if old[:3] == row[:3])) for row in counted]
    return head["status"], OF_THE_REQUEST.sub(b"", body), sorted(name for name, _ in head["headers"]), same


async def short_and_long(place: Path, key: str) -> dict[Sent, tuple[Response, Response]]:
    answers = {}
    async with answering(place, key) as app:
        check = app._app
        fast = check._app
        for sent in SENT:
            path, headers = sent
            ways = []
            for way in (fast, fast._routes):
                check._app = way
                rows = [(row.route, row.method, row.status, row.requests, row.credits) for row in app._statistics._rows.values()]
                ways.append(record(app, await asked(app, "GET", path, key, headers), rows))
            answers[sent] = ways[0], ways[1]
    return answers


def test_fast_routes_and_framework_count_and_charge_alike(tmp_path: Path) -> None:
    answers = asyncio.run(short_and_long(tmp_path, published(tmp_path)))
    assert {sent: short for sent, (short, _) in answers.items()} == {sent: long for sent, (_, long) in answers.items()}
    assert {short[0] for short, _ in answers.values()} == {200, 304, 400, 404, 405}


async def refusals(place: Path, key: str) -> list[tuple[int, bytes]]:
    """Return the answers to a lookup while the credits end, and under a key that another process revoked."""
    path = f"/v1/tracks/isrc/{isrc(1)}"
    said: list[tuple[int, bytes]] = []
    async with answering(place, key) as app:
        keys = app._app._keys
        service = app._app._app._routes.state.service
        small = service.accounts.create("small", "custom", Terms(2, Decimal(1), 1000))
        for sent in (service.accounts.keys.create(small.account_id).key,) * 3:
            head, body = await asked(app, "GET", path, sent)
            said.append((head["status"], body))
        await asked(app, "GET", "/v1/usage", key)  # is remembered from now on
        elsewhere = Accounts.open(f"sqlite:///{place}/accounts.db")
        elsewhere.keys.revoke(keys.find_cached_caller(key).key_id)
        elsewhere.close()
        head, body = await asked(app, "GET", path, key)
        said.append((head["status"], body))
    return said


def test_lookups_end_with_credits_and_with_keys_revoked_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "KEY_CACHE_SECONDS", 1000.0)
    granted, again, refused, revoked = asyncio.run(refusals(tmp_path, published(tmp_path)))
    assert (granted[0], again[0], refused[0], revoked[0]) == (200, 200, 429, 401)
    assert b'"quota_exceeded"' in refused[1]
    assert b'"invalid_api_key"' in revoked[1]
