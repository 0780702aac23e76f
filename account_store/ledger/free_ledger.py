"""The ledger of test keys: it grants everything and charges nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from account_store.clock import format_day
from account_store.ledger.ledger import Ledger

if TYPE_CHECKING:
    from account_store.clock import Clock
    from account_store.ledger.operations import Charge, Operation


class FreeLedger(Ledger):
    """A ledger without a database. Its charges are `is_free`."""

    def __init__(self, clock: Clock) -> None:
        """Tell the day by `clock`."""
        self._clock = clock

    def close(self) -> None:
        """Do nothing: nothing waits."""

    def sweep(self) -> int:
        """Return 0: there are no reservations."""
        return 0

    def _apply(self, operation: Operation) -> asyncio.Future[Charge]:
        future: asyncio.Future[Charge] = asyncio.get_running_loop().create_future()
        operation.day = operation.day or format_day(self._clock())
        future.set_result(operation.build_charge(operation.credits, 0)._replace(is_free=True))
        return future
