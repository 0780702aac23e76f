"""Tests that names of aired recordings are loaded before a report asks, over the first snapshot and over each that follows."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from account_store.accounts import Accounts
from account_store.errors import UnavailableError
from account_store.streams.report import Airplay
from account_store.streams.stream_tables import stream
from catalog_api.airplay import name_preload, stream_sheets, track_names
from tests.account_store.streams.airwaves import air, track
from tests.catalog_api.in_process import answering, asked, publish_as, published
from tests.waiting import until_in_loop

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pytest

    from catalog_store.reader import Catalog

TODAY = datetime.now(UTC).date()
REPORT = f"/v1/streams/report?from={TODAY - timedelta(days=30)}&until={TODAY}"
AIRED = {1, 2, 3}


class Lookups:
    """The lookups, by snapshot."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, int]] = []
        asked_of = track_names.read_bodies

        def noted(catalog: Catalog, recording_ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
            self.made += [(catalog.snapshot_id, one) for one in recording_ids]
            return asked_of(catalog, recording_ids)

        monkeypatch.setattr(track_names, "read_bodies", noted)
        # A process keeps the names that it has read: another test may have read some of these.
        monkeypatch.setattr(stream_sheets, "_NAMES", track_names.NameCache())

    async def of(self, snapshot_id: str, count: int) -> set[int]:
        """Wait until so many names of a snapshot are loaded, and return them."""

        def found() -> set[int]:
            return {number for name, number in self.made if name == snapshot_id}

        await until_in_loop(lambda: len(found()) >= count, f"{count} lookups")
        return found()


def aired(place: Path) -> str:
    """Publish a catalog and return the key of an account. AIRED aired on its two streams, and one recording too long ago for any report."""
    key = published(place)
    accounts = Accounts.open(f"sqlite:///{place}/accounts.db")
    caller, now = accounts.keys.find_caller(key), datetime.now(UTC)
    assert caller is not None
    streams = [accounts.streams.create(caller.account_id, f"https://radio.example.org/{n}", "Radio").stream_id for n in range(2)]
    with accounts.engine.begin() as connection:
        connection.execute(stream.update().values(created_at=now - timedelta(days=300)))
    air(accounts, streams[0], track(9), now - timedelta(days=200), 100)
    for number, on in ((1, 0), (2, 0), (1, 1), (3, 1)):
        air(accounts, streams[on], track(number), now - timedelta(days=9 - number), 100)
    accounts.close()
    return key


async def reported(app: Any, key: str) -> set[str]:  # noqa: ANN401 - any ASGI application
    head, body = await asked(app, "GET", REPORT, key)
    assert head["status"] == 200
    return {row["title"] for one in json.loads(body)["report"]["streams"] for row in one["summary"]}


def test_worker_preloads_names_before_it_accepts_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, lookups = aired(tmp_path), Lookups(monkeypatch)

    async def run() -> set[str]:
        async with answering(tmp_path, key) as app:
            assert await lookups.of("first", 3) == AIRED, "once each, and nothing that is too old for a report"
            lookups.made.clear()
            return await reported(app, key)

    titles = asyncio.run(run())
    assert len(titles) == 3
    assert lookups.made == [], "the report had nothing to look up"


def test_names_of_a_new_snapshot_are_preloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, lookups = aired(tmp_path), Lookups(monkeypatch)

    async def run() -> None:
        async with answering(tmp_path, key) as app:
            publish_as(tmp_path, "second")
            assert await lookups.of("second", 3) == AIRED
            lookups.made.clear()
            assert len(await reported(app, key)) == 3
            assert lookups.made == []

    asyncio.run(run())


def test_preload_stops_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, lookups = aired(tmp_path), Lookups(monkeypatch)
    monkeypatch.setattr(name_preload, "_MOST_PRELOADED", 2)

    async def run() -> set[str]:
        async with answering(tmp_path, key) as app:
            assert await lookups.of("first", 2) == {1, 2}
            return await reported(app, key)

    assert len(asyncio.run(run())) == 3, "what was not learnt is looked up by the report"


def test_worker_starts_when_the_database_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, lookups = aired(tmp_path), Lookups(monkeypatch)

    def broken(_airplay: Airplay, _days: int) -> Iterator[Any]:
        raise UnavailableError("The database does not answer.")

    monkeypatch.setattr(Airplay, "iterate_recordings", broken)

    async def run() -> set[str]:
        async with answering(tmp_path, key) as app:
            assert lookups.made == []
            return await reported(app, key)

    assert len(asyncio.run(run())) == 3
