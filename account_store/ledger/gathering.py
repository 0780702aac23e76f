"""Gathers the orders of one event loop, so that requests that are there at the same time share a transaction.

There is no timer. Orders are handed over together when the loop has nothing else to do: requests that have arrived are worked on first. A
lone order waits for some empty rounds of the loop, microseconds. While one batch is being booked the next one gathers. A transaction costs
some 240 us of CPU however small it is, and a thread that books beside a busy loop takes the interpreter away from it in the middle of every
lookup: at 32 clients batches grow from 12 to 32 and a metered request costs a quarter less. What must not live here: booking (`writer`).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from account_store.errors import UnavailableError
from account_store.ledger.writer import LARGEST_BATCH

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from account_store.ledger.orders import Charge, Order
    from account_store.ledger.writer import Writer

    Hear = Callable[[Charge | Exception], None]
    Waiting = tuple[Order, Hear]

log = logging.getLogger("account_store")

QUIET_ROUNDS = 3
"""Rounds of the loop without a new order after which it counts as having nothing else to do: a request that has arrived needs two."""
LONGEST_SECONDS = 0.004
"""After which orders are handed over though the loop is busy."""


class Gathering:
    """Of one loop; called on that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer) -> None:
        """`writer` books what is gathered."""
        self.loop = loop
        self._writer = writer
        self._waiting: list[Waiting] = []
        self._is_busy = False
        """Either looking for a quiet moment or being booked."""

    def book(self, order: Order, hear: Hear) -> None:
        """Have `order` booked with the others that come now; `hear` is called in the loop, when it is on disk."""
        self._waiting.append((order, hear))
        if not self._is_busy:
            self._look_from_now()

    def _look_from_now(self) -> None:
        self._is_busy = True
        self.loop.call_soon(self._look, 0, 0, time.monotonic() + LONGEST_SECONDS)

    def _look(self, seen: int, quiet_rounds: int, until: float) -> None:
        count = len(self._waiting)
        quiet_rounds = quiet_rounds + 1 if count == seen else 0
        if quiet_rounds < QUIET_ROUNDS and count < LARGEST_BATCH and time.monotonic() < until:
            self.loop.call_soon(self._look, count, quiet_rounds, until)
            return
        batch, self._waiting = self._waiting, []
        try:
            self._writer.submit([order for order, _ in batch], lambda answers: self._tell(batch, answers))
        except UnavailableError as error:
            self._answer(batch, [error] * len(batch))

    def _tell(self, batch: list[Waiting], answers: Sequence[Charge | Exception]) -> None:
        """Called by the writer's thread."""
        try:
            self.loop.call_soon_threadsafe(self._answer, batch, answers)
        except RuntimeError:  # the loop was closed: nobody waits any more
            log.warning("%d charges were booked for an event loop that is gone", len(batch))

    def _answer(self, batch: list[Waiting], answers: Sequence[Charge | Exception]) -> None:
        for (_, hear), answer in zip(batch, answers, strict=True):
            try:
                hear(answer)
            except Exception:
                log.exception("a charge could not be told")  # the others must hear of theirs
        self._is_busy = False
        if self._waiting:
            self._look_from_now()
