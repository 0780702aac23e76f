"""The credit ledger as the API sees it: charge, release, reserve and settle, each committed to disk before it returns.

    charge = await ledger.charge(caller, 100, partial=True, idempotency_key=key, request_hash=digest)
    if charge.granted < 100: ...                      # rows beyond charge.granted are skipped
    await ledger.release(charge)                      # a 304 or a 5xx costs nothing: give it back

    reservation = await ledger.reserve(caller, 10 + megabytes)
    if reservation is None: ...                       # too few credits: nothing was taken
    charge = await ledger.settle(reservation, 12)     # 0 gives all of it back

Call it from an event loop. UnavailableError: the database did not answer, or the writer ended.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import TYPE_CHECKING

from account_store.ledger.batch_collector import BatchCollector
from account_store.ledger.operations import Charge, Kind, Operation, Reservation
from account_store.ledger.reservations import expire_reservations
from account_store.ledger.writer import Writer

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

    from account_store.api_keys import Caller
    from account_store.clock import Clock


class Ledger:
    """The ledger of one process. Its writer thread starts with the first operation."""

    def __init__(self, url: URL, engine: Engine, clock: Clock) -> None:
        """Give `url` to the writer, which opens it without SQLAlchemy; `engine` serves what is not urgent."""
        self._engine = engine
        self._clock = clock
        self._writer = Writer(url, clock, self.sweep)
        self._collector: BatchCollector | None = None
        """The collector of the event loop that asked last. A process has one loop; tests run several, also at the same time."""

    def close(self) -> None:
        """Commit everything that waits and stop the writer."""
        self._writer.close()

    def sweep(self) -> int:
        """Give expired reservations back, delete expired idempotency keys; return the number of reservations given back. Blocks.

        The writer does this every few minutes; a command does it for a store that no server uses.
        """
        return expire_reservations(self._engine, self._clock())

    def charge(
        self, caller: Caller, price: int, *, partial: bool = False, idempotency_key: str | None = None, request_hash: str = ""
    ) -> asyncio.Future[Charge]:
        """Take `price` credits (>= 0), all or none; with `partial` the rest of the month when that is less. 0 only reads what is left.

        Under an `idempotency_key` (<= 255 characters, of this account) the same request is charged once in 24 hours, whatever crashed
        in between. IdempotencyKeyReusedError: `request_hash` differs from the first time.
        """
        # The future itself, no coroutine around it: every metered request charges, and each call on that path costs CPU.
        return self._apply(_build_charge(caller, price, partial, idempotency_key, request_hash))

    async def release(self, charge: Charge) -> Charge:
        """Give all of a charge back to its month. Call it once per charge; not for a charge under an idempotency key."""
        # A charge under a key is recorded with its grant. After a refund a repeated request would still count as paid.
        return await self._apply(_build_refund(charge))

    async def reserve(
        self, caller: Caller, price: int, *, idempotency_key: str | None = None, request_hash: str = ""
    ) -> Reservation | None:
        """Set `price` credits aside; return None when the month has fewer left. A reservation expires after RESERVATION_SECONDS.

        Under an `idempotency_key` that was charged before, nothing is set aside and settling takes nothing (`charge.is_replay`).
        The key counts as charged once it is settled. IdempotencyKeyReusedError: see `charge`.
        """
        operation = _build_reserve(caller, price, idempotency_key, request_hash)
        return _build_reservation(operation, await self._apply(operation))

    async def settle(self, reservation: Reservation, price: int) -> Charge:
        """Charge `price` credits of a reservation, at most all of it, and give the rest back; 0 releases it.

        Only the first of several requests under one idempotency key is charged. The others get `is_replay` and their credits back.
        """
        # A replay has set nothing aside (see `reserve`), so there is nothing to settle.
        return reservation.charge if reservation.charge.is_replay else await self._apply(_build_settle(reservation, price))

    def _apply(self, operation: Operation) -> asyncio.Future[Charge]:
        collector = self._get_collector()
        future: asyncio.Future[Charge] = collector.loop.create_future()
        collector.add(operation, partial(_resolve, future))
        return future

    def _get_collector(self) -> BatchCollector:
        # A collector belongs to one loop: its callbacks are scheduled there.
        loop = asyncio.get_running_loop()
        collector = self._collector
        if collector is None or collector.loop is not loop:
            collector = self._collector = BatchCollector(loop, self._writer)
        return collector


def _resolve(future: asyncio.Future[Charge], result: Charge | Exception) -> None:
    # A client that went away cancelled its future; setting a result on it would raise.
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _build_charge(caller: Caller, price: int, is_partial: bool, idempotency_key: str | None, request_hash: str) -> Operation:  # noqa: FBT001
    return Operation(
        Kind.CHARGE,
        caller.account_id,
        caller.key_id,
        _require_nonnegative(price),
        caller.plan.credits,
        is_partial,
        idempotency_key,
        request_hash,
    )


def _build_refund(charge: Charge) -> Operation:
    # The refund carries the day of its charge: credits go back to that month, even when the next one has begun.
    return Operation(Kind.REFUND, charge.account_id, charge.key_id, charge.granted, charge.allowed, day=charge.day)


def _build_reserve(caller: Caller, price: int, idempotency_key: str | None, request_hash: str) -> Operation:
    if price < 1:
        raise ValueError(f"{price} credits cannot be reserved; a reservation has at least 1")
    operation = _build_charge(caller, price, False, idempotency_key, request_hash)
    operation.kind, operation.reservation_id = Kind.RESERVE, uuid.uuid4().hex
    return operation


def _build_reservation(operation: Operation, charge: Charge) -> Reservation | None:
    if charge.granted < operation.credits and not charge.is_replay:
        return None
    return Reservation(operation.reservation_id, charge, operation.idempotency_key, operation.request_hash)


def _build_settle(reservation: Reservation, price: int) -> Operation:
    reserved = reservation.charge
    if not 0 <= price <= reserved.granted:
        raise ValueError(f"{price} credits cannot be settled from a reservation of {reserved.granted}; settle 0 to {reserved.granted}")
    return Operation(
        Kind.SETTLE,
        reserved.account_id,
        reserved.key_id,
        price,
        reserved.allowed,
        idempotency_key=reservation.idempotency_key,
        request_hash=reservation.request_hash,
        reservation_id=reservation.reservation_id,
        day=reserved.day,
    )


def _require_nonnegative(price: int) -> int:
    if price < 0:
        raise ValueError(f"{price} credits cannot be charged; release gives credits back")
    return price
