"""Groups the operations of one event loop into write batches, so that requests that arrive together share a transaction.

There is no timer. The collector submits a batch when the loop has nothing else to do: requests that have arrived are worked on first. A
single operation waits for some empty rounds of the loop, microseconds. While one batch is being committed, the next one fills.
Out of scope: commits (`writer`).
"""

# A transaction costs some 240 us of CPU however small it is, and its thread takes the interpreter away from the loop in the middle of
# look-ups. With 32 clients, waiting for a quiet loop raised the mean batch from 12 to 32 operations: a metered request cost a quarter less.

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from account_store.errors import UnavailableError
from account_store.ledger.writer import LARGEST_BATCH

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from account_store.ledger.operations import Charge, Operation
    from account_store.ledger.writer import Writer

    ResultCallback = Callable[[Charge | Exception], None]
    Pending = tuple[Operation, ResultCallback]

log = logging.getLogger("account_store")

QUIET_ROUNDS = 3
"""Rounds of the loop without a new operation after which the loop counts as idle: a request that has arrived needs two."""
LONGEST_SECONDS = 0.004
"""Time after which a batch is submitted although the loop is busy."""


class BatchCollector:
    """The collector of one event loop; call it from that loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer) -> None:
        """Submit batches to `writer`."""
        self.loop = loop
        self._writer = writer
        self._pending: list[Pending] = []
        self._is_busy = False
        """A batch is being committed, or the collector looks for a quiet moment."""

    def add(self, operation: Operation, on_result: ResultCallback) -> None:
        """Add `operation` to the next batch; `on_result` is called in the loop after the commit."""
        self._pending.append((operation, on_result))
        if not self._is_busy:
            self._start_looking()

    def _start_looking(self) -> None:
        self._is_busy = True
        # `call_soon` runs after every callback that is ready now: each round lets requests that have arrived reach their charge.
        self.loop.call_soon(self._submit_when_quiet, 0, 0, time.monotonic() + LONGEST_SECONDS)

    def _submit_when_quiet(self, last_count: int, quiet_rounds: int, until: float) -> None:
        count = len(self._pending)
        quiet_rounds = quiet_rounds + 1 if count == last_count else 0
        if quiet_rounds < QUIET_ROUNDS and count < LARGEST_BATCH and time.monotonic() < until:
            self.loop.call_soon(self._submit_when_quiet, count, quiet_rounds, until)
            return
        # `_is_busy` stays set until the results arrive: operations that come meanwhile form the next batch.
        batch, self._pending = self._pending, []
        try:
            self._writer.submit([operation for operation, _ in batch], lambda results: self._receive(batch, results))
        # The store is closed, or no thread could start. Without an answer the callers would wait for ever.
        except UnavailableError as error:
            self._deliver(batch, [error] * len(batch))

    def _receive(self, batch: list[Pending], results: Sequence[Charge | Exception]) -> None:
        """Pass the results on to the loop. Called by the writer's thread."""
        try:
            self.loop.call_soon_threadsafe(self._deliver, batch, results)
        # A closed loop refuses callbacks: nobody waits for these results any more, but the charges are committed.
        except RuntimeError:
            log.warning("%d charges were booked for an event loop that is gone", len(batch))

    def _deliver(self, batch: list[Pending], results: Sequence[Charge | Exception]) -> None:
        for (_, on_result), result in zip(batch, results, strict=True):
            try:
                on_result(result)
            except Exception:  # the other callers of the batch still get their results
                log.exception("the result of a charge could not be delivered")
        self._is_busy = False
        if self._pending:
            self._start_looking()
