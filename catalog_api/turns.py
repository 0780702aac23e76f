"""Turns of long questions in the event loop: after some milliseconds of them everybody else has a round.

asyncio does all that is ready in one round of its loop. Fifty searches that came together would be worked on, then booked, then answered:
the first with the last. One a round costs a fifth more in small transactions of the ledger. What must not live here: what takes turns
(metering.py).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ROUND_SECONDS = 0.005
"""Of long questions, after which the loop goes round."""


class Turns:
    """Of one event loop. First come, first served."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_round_due = False

    def take(self, work: Callable[[], None]) -> None:
        """Have `work`, which waits for nothing, called when it is its turn."""
        self._waiting.append(work)
        self._go_on()

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

    def _go_on(self) -> None:
        if self._waiting and not self._is_round_due:
            self._is_round_due = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        until = time.perf_counter() + ROUND_SECONDS
        self._is_round_due = False
        try:
            while self._waiting and time.perf_counter() < until:
                self._waiting.popleft()()
        finally:
            self._go_on()
