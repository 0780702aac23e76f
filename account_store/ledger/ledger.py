"""The credit ledger as the API sees it: charge, release, reserve and settle, each committed to disk before it answers.

    charge = await ledger.charge(caller, 100, partial=True, idempotency_key=key, request_hash=digest)
    if charge.granted < 100: ...                      # rows beyond charge.granted are skipped
    await ledger.release(charge)                      # a 304 or a 5xx costs nothing: give it back

    reservation = await ledger.reserve(caller, 10 + megabytes)
    if reservation is None: ...                       # too few credits: nothing was taken
    charge = await ledger.settle(reservation, 12)     # 0 gives all of it back

Every method has a twin `<name>_now` that blocks, for commands and threads. UnavailableError: the database did not answer.
"""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from account_store.ledger.gathering import Gathering
from account_store.ledger.orders import Charge, Kind, Order, Reservation
from account_store.ledger.reservations import return_lapsed
from account_store.ledger.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import URL, Engine

    from account_store.api_keys import Caller
    from account_store.clock import Clock


class Ledger:
    """One per process. Its writer thread starts with the first order."""

    def __init__(self, url: URL, engine: Engine, clock: Clock) -> None:
        """`url` is opened once more, raw, by the writer; `engine` serves what is not urgent."""
        self._engine = engine
        self._clock = clock
        self._writer = Writer(url, clock, self.sweep)
        self._gathering: Gathering | None = None
        """Of the event loop that asked last: a process has one; others, of tests, get theirs anew."""

    def close(self) -> None:
        """Book what waits and stop the writer."""
        self._writer.close()

    def sweep(self) -> int:
        """Give back reservations whose holder died, forget stored answers past their time; how many were given back. Blocks.

        The writer does this every few minutes; a command does it for a store that no server uses.
        """
        return return_lapsed(self._engine, self._clock())

    def charge(
        self, caller: Caller, price: int, *, partial: bool = False, idempotency_key: str | None = None, request_hash: str = ""
    ) -> asyncio.Future[Charge]:
        """Take `price` credits (>= 0), all or none; `partial`: what is left of the month when it is less. 0 only tells what is left.

        Under an `idempotency_key` (<= 255 characters, of this account) the same request is charged once in 24 hours, whatever crashed
        in between; IdempotencyKeyReusedError when `request_hash` is another than the first time.
        """
        return self._ask(_charge(caller, price, partial, idempotency_key, request_hash))

    def charge_now(
        self, caller: Caller, price: int, *, partial: bool = False, idempotency_key: str | None = None, request_hash: str = ""
    ) -> Charge:
        """As `charge`, blocking."""
        return self._ask_now(_charge(caller, price, partial, idempotency_key, request_hash))

    async def release(self, charge: Charge) -> Charge:
        """Give all of a charge back, to the month it was taken from. Once per charge; not for one under an idempotency key."""
        return await self._ask(_refund(charge))

    def release_now(self, charge: Charge) -> Charge:
        """As `release`, blocking."""
        return self._ask_now(_refund(charge))

    async def reserve(
        self, caller: Caller, price: int, *, idempotency_key: str | None = None, request_hash: str = ""
    ) -> Reservation | None:
        """Set `price` credits aside; None when the month has fewer left. Not settled within RESERVATION_SECONDS, it is given back.

        Under an `idempotency_key` that was charged before nothing is set aside, and settling takes nothing (`charge.is_replay`);
        IdempotencyKeyReusedError as in `charge`. The key counts as charged once it is settled.
        """
        order = _reserve(caller, price, idempotency_key, request_hash)
        return _reservation(order, await self._ask(order))

    def reserve_now(self, caller: Caller, price: int, *, idempotency_key: str | None = None, request_hash: str = "") -> Reservation | None:
        """As `reserve`, blocking."""
        order = _reserve(caller, price, idempotency_key, request_hash)
        return _reservation(order, self._ask_now(order))

    async def settle(self, reservation: Reservation, price: int) -> Charge:
        """Charge `price` credits for what was reserved, at most the reservation, and give the rest back; 0 releases it all.

        Of several requests under one idempotency key the first to be settled is charged; the others get `is_replay` and their credits back.
        """
        return reservation.charge if reservation.charge.is_replay else await self._ask(_settle(reservation, price))

    def settle_now(self, reservation: Reservation, price: int) -> Charge:
        """As `settle`, blocking."""
        return reservation.charge if reservation.charge.is_replay else self._ask_now(_settle(reservation, price))

    def _ask(self, order: Order) -> asyncio.Future[Charge]:
        gathering = self._here()
        answer: asyncio.Future[Charge] = gathering.loop.create_future()
        gathering.book(order, partial(_resolve, answer))
        return answer

    def _here(self) -> Gathering:
        loop = asyncio.get_running_loop()
        gathering = self._gathering
        if gathering is None or gathering.loop is not loop:
            gathering = self._gathering = Gathering(loop, self._writer)
        return gathering

    def _ask_now(self, order: Order) -> Charge:
        waiting: Future[Charge] = Future()

        def tell(answers: Sequence[Charge | Exception]) -> None:
            (answer,) = answers
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)

        self._writer.submit([order], tell)
        return waiting.result()


def _resolve(answer: asyncio.Future[Charge], outcome: Charge | Exception) -> None:
    if answer.done():  # its request went away
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _charge(caller: Caller, price: int, is_partial: bool, idempotency_key: str | None, request_hash: str) -> Order:  # noqa: FBT001
    return Order(
        Kind.CHARGE, caller.account_id, caller.key_id, _counted(price), caller.plan.credits, is_partial, idempotency_key, request_hash
    )


def _refund(charge: Charge) -> Order:
    return Order(Kind.REFUND, charge.account_id, charge.key_id, charge.granted, charge.allowed, day=charge.day)


def _reserve(caller: Caller, price: int, idempotency_key: str | None, request_hash: str) -> Order:
    if price < 1:
        raise ValueError(f"{price} credits cannot be reserved")
    order = _charge(caller, price, False, idempotency_key, request_hash)
    order.kind, order.reservation_id = Kind.RESERVE, uuid.uuid4().hex
    return order


def _reservation(order: Order, charge: Charge) -> Reservation | None:
    if charge.granted < order.credits and not charge.is_replay:
        return None
    return Reservation(order.reservation_id, charge, order.idempotency_key, order.request_hash)


def _settle(reservation: Reservation, price: int) -> Order:
    held = reservation.charge
    if not 0 <= price <= held.granted:
        raise ValueError(f"{price} credits cannot be settled from a reservation of {held.granted}")
    return Order(
        Kind.SETTLE,
        held.account_id,
        held.key_id,
        price,
        held.allowed,
        idempotency_key=reservation.idempotency_key,
        request_hash=reservation.request_hash,
        reservation_id=reservation.reservation_id,
        day=held.day,
    )


def _counted(price: int) -> int:
    if price < 0:
        raise ValueError(f"{price} credits cannot be charged; release gives credits back")
    return price
