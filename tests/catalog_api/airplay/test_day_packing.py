"""Tests that a server packs days of airings that were written while no server ran, before it takes requests."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from account_store.accounts import Accounts
from account_store.streams.stream_tables import airplay_day, stream
from tests.account_store.streams.airwaves import air, track
from tests.catalog_api.in_process import answering, published

if TYPE_CHECKING:
    from pathlib import Path


async def started(place: Path, key: str) -> None:
    async with answering(place, key):
        pass


def test_server_packs_remaining_days_before_it_accepts_requests(tmp_path: Path) -> None:
    key = published(tmp_path)
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    began = datetime.now(UTC) - timedelta(days=40)
    caller = accounts.keys.find_caller(key)
    assert caller is not None
    one = accounts.streams.create(caller.account_id, "https://radio.example.org/live", "Radio").stream_id
    with accounts.engine.begin() as connection:
        connection.execute(stream.update().values(created_at=began))
    for day in range(40):
        air(accounts, one, track(1), began + timedelta(days=day, minutes=1), 100)
    packed_days = select(func.count()).select_from(airplay_day)
    with accounts.engine.connect() as connection:
        assert connection.scalar(packed_days) == 0
    asyncio.run(started(tmp_path, key))
    with accounts.engine.connect() as connection:
        assert connection.scalar(packed_days) == 39, "but yesterday and today, which may still change"
    accounts.close()
