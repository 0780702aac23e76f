"""Share the event loop between long questions and everything else: a few milliseconds of long work, then a few rounds for the rest.

asyncio runs everything that is ready in one round of its loop. Of fifty searches that arrive together, the first would be answered with the
last. Out of scope: the work (metering.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# One search a round costs a fifth more CPU than slices of 5 ms, in small transactions of the ledger.
SLICE_SECONDS = 0.005
"""Longest slice of long work. The rounds for other requests between two slices last no longer."""
# One round is too short for the rest: libuv accepts one connection a round, so the last of fifty new clients waited for a quarter of a
# second.
QUIET_ROUNDS = 4
"""Rounds without new long work after which the waiting work runs; each takes less than 10 us. Data on a connection needs one round, a new
connection two, a batch of credits three (account_store/ledger/batch_collector.py)."""


class TimeSlices:
    """The waiting long work of one event loop, first in, first out."""

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def schedule(self, work: Callable[[], None]) -> None:
        """Call `work`, which must not wait for anything, when it is its turn."""
        self._waiting.append(work)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run_slice)

    async def run(self, work: Callable[[], T]) -> T:
        """Return or raise what `work` returns or raises when it is its turn."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def run_one() -> None:
            # A client that left is not worth a search.
            if done.cancelled():
                return
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                done.set_exception(error)

        self.schedule(run_one)
        return await done

    def _run_slice(self) -> None:
        until = time.perf_counter() + SLICE_SECONDS
        try:
            while self._waiting and time.perf_counter() < until:
                self._waiting.popleft()()
        finally:
            # In `finally`: work that raises must not leave the rest waiting for a slice that nobody schedules.
            self._is_scheduled = bool(self._waiting)
            if self._is_scheduled:
                asyncio.get_running_loop().call_soon(self._let_others_run, 0, 0, time.perf_counter() + SLICE_SECONDS)

    def _let_others_run(self, seen: int, quiet_rounds: int, until: float) -> None:
        """Let the loop go round until no new long work comes."""
        count = len(self._waiting)
        quiet_rounds = quiet_rounds + 1 if count == seen else 0
        # The time bounds the rounds: clients that keep sending must not hold up the waiting work.
        if quiet_rounds < QUIET_ROUNDS and time.perf_counter() < until:
            asyncio.get_running_loop().call_soon(self._let_others_run, count, quiet_rounds, until)
        else:
            self._run_slice()
