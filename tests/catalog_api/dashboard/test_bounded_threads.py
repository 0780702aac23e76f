"""Bounds and deadlines of blocking work in threads of the dashboard."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest

from catalog_api.dashboard.bounded_threads import BoundedThreads, BusyError, TooSlowError
from tests.waiting import PATIENCE_SECONDS


def test_overdue_work_raises_and_keeps_its_place_until_it_ends() -> None:
    may_end = threading.Event()

    async def scene(pool: BoundedThreads) -> None:
        with pytest.raises(TooSlowError):
            await pool.run(may_end.wait, PATIENCE_SECONDS)
        with pytest.raises(BusyError):
            await pool.run(int)
        may_end.set()
        pool._seconds = PATIENCE_SECONDS
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    assert await pool.run(int, "7") == 7
                except BusyError:
                    await asyncio.sleep(0.01)
                else:
                    return

    with closing(BoundedThreads("test", threads=1, waiting=0, seconds=0.05)) as pool:
        asyncio.run(scene(pool))


def test_job_that_waits_too_long_is_never_started() -> None:
    may_end, begun = threading.Event(), threading.Event()

    async def scene(pool: BoundedThreads) -> None:
        first = asyncio.create_task(pool.run(may_end.wait, PATIENCE_SECONDS))
        await asyncio.sleep(0)
        with pytest.raises(TooSlowError):
            await pool.run(begun.set)
        may_end.set()
        with pytest.raises(TooSlowError):
            await first
        await asyncio.sleep(0.05)

    with closing(BoundedThreads("test", threads=1, waiting=1, seconds=0.05)) as pool:
        asyncio.run(scene(pool))
    assert not begun.is_set()


def test_errors_of_the_work_are_raised_unchanged_even_timeouts() -> None:
    def fails() -> None:
        raise TimeoutError("of a database")

    with (
        closing(BoundedThreads("test", threads=1, waiting=0, seconds=PATIENCE_SECONDS)) as pool,
        pytest.raises(TimeoutError, match="of a database"),
    ):
        asyncio.run(pool.run(fails))
