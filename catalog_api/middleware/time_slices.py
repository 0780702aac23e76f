"""Turns of long questions in the event loop: after some milliseconds of them everybody else has a round.

asyncio does all that is ready in one round of its loop. Fifty searches that came together would be worked on, then booked, then answered:
the first with the last. One a round costs a fifth more in small transactions of the ledger. And everybody else needs more than one round:
the loop takes in one connection a round (libuv), and credits are booked when some rounds brought nothing new. What must not live here:
what takes turns (metering.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

TURN_SECONDS = 0.005
"""Of long questions, after which the loop goes round; and how long it may go round at most before the next."""
QUIET_ROUNDS = 4
"""Rounds of the loop that bring no further long question: then it is the turn of those that wait. Less than 10 us each; what has arrived
on a connection needs one, a new connection two, a batch of credits three (account_store/ledger/batch_collector.py)."""


class Turns:
    """Of one event loop. First come, first served."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def take(self, work: Callable[[], None]) -> None:
        """Have `work`, which waits for nothing, called when it is its turn."""
        self._waiting.append(work)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    async def taken(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises when it is its turn."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def turn() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                done.set_exception(error)

        self.take(turn)
        return await done

    def _turn(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while self._waiting and time.perf_counter() < until:
                self._waiting.popleft()()
        finally:
            self._is_due = bool(self._waiting)
            if self._is_due:
                asyncio.get_running_loop().call_soon(self._look, 0, 0, time.perf_counter() + TURN_SECONDS)

    def _look(self, seen: int, quiet_rounds: int, until: float) -> None:
        """Let everybody else go on until nobody new comes."""
        count = len(self._waiting)
        quiet_rounds = quiet_rounds + 1 if count == seen else 0
        if quiet_rounds < QUIET_ROUNDS and time.perf_counter() < until:
            asyncio.get_running_loop().call_soon(self._look, count, quiet_rounds, until)
        else:
            self._turn()
