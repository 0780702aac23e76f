"""Books a batch of orders: the common case in a statement or two for the whole batch, the rest one by one under the account's lock.

Most batches are plain charges of accounts that have credits left: their sums per account and month are added where they fit. Orders of an
account whose sum does not fit, and those that need a look first (idempotency keys, reservations), are decided in order of arrival
while the row of their account's month is locked. Both ways hold `used <= allowed` in the database itself, whatever other processes do.

What must not live here: what differs between the databases (`sqlite_books`, `postgresql_books`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from account_store.clock import day_of
from account_store.errors import IdempotencyKeyReusedError, KeyRevokedError
from account_store.ledger.orders import Charge, Kind, Order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

REPLAY_SECONDS = 24 * 60 * 60
"""How long an idempotency key is remembered (contract D4)."""

Month = tuple[int, str]
"""Account id and month: one row of `credit_month`, the unit of locking."""
MonthSum = tuple[int, str, int, int]
"""Account id, month, credits to add, credits allowed."""
DaySum = tuple[int, str, int, int, int]
"""Account id, day, key id, credits to add, requests to add."""
_PLAIN = (Kind.CHARGE, Kind.REFUND)
_TAKING = (Kind.CHARGE, Kind.RESERVE)
"""Orders that a revoked key may not give; what it has begun may be settled."""
_LASTING = (Kind.CHARGE, Kind.SETTLE)
"""Orders whose credits nobody gives back by himself: a reservation lapses. Under an idempotency key the repeat finds them paid."""


@dataclass(slots=True)
class _Balance:
    used: int
    allowed: int
    before: int


class InDoubtError(Exception):
    """The database did not answer a commit: whether it holds is seen later, by `Books.has_committed`."""

    def __init__(self, transaction: str) -> None:
        """`transaction` as the database names it."""
        super().__init__(f"no answer to the commit of transaction {transaction}")
        self.transaction = transaction
        self.taken: list[Order] = []
        """Return the order that gives back what this one took, if it holds: callers were told that nothing was charged."""


class Books(ABC):
    """A connection that books; used by one thread."""

    commits_plain_first = False
    """Whether plain charges are committed before the others are decided."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""

    @abstractmethod
    def batch(self) -> AbstractContextManager[object]:
        """Around everything of one batch."""

    @abstractmethod
    def careful(self) -> AbstractContextManager[object]:
        """Around what is decided under locks."""

    @abstractmethod
    def add(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        """Add to all months that have room, and to the days of these; what is used of each month that had. Takes locks in their order."""

    @abstractmethod
    def run(self, statement: str, values: dict[str, Any] | Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """One statement of this module (`:name` parameters), or the same for several rows; what it returned."""

    @abstractmethod
    def revoked(self, key_ids: list[int], moment: str) -> set[int]:
        """Which of the keys were revoked at `moment` (`2026-11-21 18:00:00`, UTC), asked of the database in this batch."""

    def has_committed(self, transaction: str) -> bool | None:  # noqa: ARG002 - of those whose commits can be in doubt
        """Whether a transaction that was in doubt holds; None while that is still open."""
        return False

    lock_suffix = ""

    def book(self, orders: list[Order], now: datetime) -> list[Charge | Exception]:
        """Book all, committed when this returns; the answers in the order of `orders`."""
        today = day_of(now)
        for order in orders:
            order.day = order.day or today
        with self.batch():
            taking = sorted({order.key_id for order in orders if order.kind in _TAKING})
            revoked = self.revoked(taking, moment_of(now)) if taking else set()
            if not revoked:
                return self._book(orders, now)
            is_refused = [order.kind in _TAKING and order.key_id in revoked for order in orders]
            booked = iter(self._book([order for order, refused in zip(orders, is_refused, strict=True) if not refused], now))
            return [KeyRevokedError("the key was revoked: nothing was charged") if refused else next(booked) for refused in is_refused]

    def _book(self, orders: list[Order], now: datetime) -> list[Charge | Exception]:
        try:
            answers = self._add_plain(orders)
        except InDoubtError as doubt:
            doubt.taken = [_given_back(order, order.credits) for order in orders if _is_plain(order) and order.kind is Kind.CHARGE]
            raise
        rest = [place for place, answer in enumerate(answers) if answer is None]
        if rest:
            careful = [orders[place] for place in rest]
            try:
                decided = self._decide_carefully(careful, int(now.timestamp()))
            except Exception as error:
                if not self.commits_plain_first or len(rest) == len(orders):
                    raise
                decided = [error] * len(rest)  # the others are charged, and must hear of it
            for place, answer in zip(rest, decided, strict=True):
                answers[place] = answer
        return answers  # type: ignore[return-value]

    def _decide_carefully(self, orders: list[Order], unix: int) -> list[Charge | Exception]:
        decided: list[Charge | Exception] = []
        try:
            with self.careful():
                decided = self._decide_all(orders, unix)
        except InDoubtError as doubt:
            doubt.taken = [
                _given_back(order, answer.granted)
                for order, answer in zip(orders, decided, strict=True)
                if isinstance(answer, Charge) and order.kind in _LASTING and order.idempotency_key is None and answer.granted
            ]
            raise
        return decided

    def _add_plain(self, orders: list[Order]) -> list[Charge | Exception | None]:
        sums: dict[Month, int] = defaultdict(int)
        allowed: dict[Month, int] = {}
        credits_by_day: dict[tuple[int, str, int], int] = defaultdict(int)
        requests_by_day: dict[tuple[int, str, int], int] = defaultdict(int)
        plain = [((order.account_id, order.month), _amount(order)) if _is_plain(order) else None for order in orders]
        for order, known in zip(orders, plain, strict=True):
            if known is None:
                continue
            month, amount = known
            sums[month] += amount
            allowed[month] = order.allowed
            place = (order.account_id, order.day, order.key_id)
            credits_by_day[place] += amount
            requests_by_day[place] += _sign(amount)
        if not sums:
            return [None] * len(orders)
        counted = sorted(place for place in credits_by_day if credits_by_day[place] or requests_by_day[place])
        days = [(*place, credits_by_day[place], requests_by_day[place]) for place in counted]
        used = self.add([(*month, sums[month], allowed[month]) for month in sorted(sums)], days)
        running = {month: used[month] - sums[month] for month in used}
        answers: list[Charge | Exception | None] = []
        for order, known in zip(orders, plain, strict=True):
            if known is None or known[0] not in running:
                answers.append(None)
                continue
            month, amount = known
            running[month] += amount
            answers.append(order.charge(max(amount, 0), running[month]))
        return answers

    def _decide_all(self, orders: list[Order], unix: int) -> list[Charge | Exception]:
        balances = {}
        for month, allowed in sorted({(order.account_id, order.month): order.allowed for order in orders}.items()):
            used = self._locked(month, allowed)
            balances[month] = _Balance(used, allowed, used)
        days: Counter[tuple[int, str, int]] = Counter()
        requests: Counter[tuple[int, str, int]] = Counter()
        answers = []
        for order in orders:
            balance = balances[order.account_id, order.month]
            before = balance.used
            answer = self._decide(order, balance, unix)
            answers.append(answer)
            place = (order.account_id, order.day, order.key_id)
            days[place] += balance.used - before
            requests[place] += _requests(order, answer)
        changed = [(month, balance) for month, balance in balances.items() if balance.used != balance.before]
        if changed:
            rows = [{"account_id": a, "month": m, "used": b.used, "allowed": b.allowed} for (a, m), b in changed]
            self.run("UPDATE credit_month SET used = :used, allowed = :allowed WHERE account_id = :account_id AND month = :month", rows)
        named = [
            {"account_id": a, "day": d, "key_id": k, "credits": days[a, d, k], "requests": requests[a, d, k]}
            for a, d, k in sorted(days)
            if days[a, d, k] or requests[a, d, k]
        ]
        if named:
            self.run(_ADD_DAY, named)
        return answers

    def _locked(self, month: Month, allowed: int) -> int:
        values = {"account_id": month[0], "month": month[1], "allowed": allowed}
        lock = "SELECT used FROM credit_month WHERE account_id = :account_id AND month = :month" + self.lock_suffix
        found = self.run(lock, values)
        if not found:
            self.run("INSERT INTO credit_month VALUES (:account_id, :month, 0, :allowed) ON CONFLICT DO NOTHING", values)
            found = self.run(lock, values)
        return int(found[0][0])

    def _decide(self, order: Order, balance: _Balance, unix: int) -> Charge | Exception:
        if order.kind is Kind.REFUND:
            balance.used -= order.credits
            return order.charge(0, balance.used)
        if order.kind is Kind.SETTLE:
            return self._settle(order, balance, unix)
        if order.idempotency_key is not None:
            earlier = self._earlier(order, balance, unix)
            if earlier is not None:
                return earlier
        left = max(balance.allowed - balance.used, 0)
        granted = min(order.credits, left) if order.is_partial else order.credits * (order.credits <= left)
        balance.used += granted
        is_granted = granted == order.credits or order.is_partial
        if is_granted and order.kind is Kind.RESERVE:
            self.run(_ADD_RESERVATION, _named(order, granted, unix))
        if is_granted and order.idempotency_key is not None and order.kind is Kind.CHARGE:
            self.run(_ADD_REPLAY, _named(order, granted, unix + REPLAY_SECONDS))
        return order.charge(granted, balance.used)

    def _settle(self, order: Order, balance: _Balance, unix: int) -> Charge | Exception:
        held = self.run("DELETE FROM credit_reservation WHERE reservation_id = :id RETURNING credits", {"id": order.reservation_id})
        balance.used -= int(held[0][0]) if held else 0  # lapsed and returned: the work was done all the same
        if order.idempotency_key is not None and order.credits:
            # The same request was settled while this one was worked on: it is charged once.
            earlier = self._earlier(order, balance, unix)
            if earlier is not None:
                return earlier
            self.run(_ADD_REPLAY, _named(order, order.credits, unix + REPLAY_SECONDS))
        balance.used += order.credits
        return order.charge(order.credits, balance.used)

    def _earlier(self, order: Order, balance: _Balance, unix: int) -> Charge | Exception | None:
        values = {"account_id": order.account_id, "idempotency_key": order.idempotency_key, "unix": unix}
        found = self.run(_FIND_REPLAY, values)
        if not found:
            return None
        request_hash, granted = found[0]
        if request_hash != order.request_hash:
            return IdempotencyKeyReusedError("the idempotency key was used for another request less than 24 hours ago")
        return order.charge(granted, balance.used, is_replay=True)


_ADD_DAY = """
INSERT INTO credit_day AS d (account_id, day, key_id, credits, requests) VALUES (:account_id, :day, :key_id, :credits, :requests)
ON CONFLICT (account_id, day, key_id) DO UPDATE SET credits = d.credits + excluded.credits, requests = d.requests + excluded.requests
"""
_ADD_RESERVATION = """
INSERT INTO credit_reservation (reservation_id, account_id, key_id, day, credits, created_unix)
VALUES (:reservation_id, :account_id, :key_id, :day, :granted, :unix)
"""
_FIND_REPLAY = """
SELECT request_hash, granted FROM replay
WHERE account_id = :account_id AND idempotency_key = :idempotency_key AND expires_unix > :unix
"""
# A key found expired is overwritten, stored answer and all.
_ADD_REPLAY = """
INSERT INTO replay (account_id, idempotency_key, request_hash, granted, day, expires_unix)
VALUES (:account_id, :idempotency_key, :request_hash, :granted, :day, :unix)
ON CONFLICT (account_id, idempotency_key) DO UPDATE SET request_hash = excluded.request_hash, granted = excluded.granted,
    day = excluded.day, expires_unix = excluded.expires_unix, status = NULL, media_type = NULL, body = NULL
"""


def _named(order: Order, granted: int, unix: int) -> dict[str, Any]:
    names = ("account_id", "key_id", "day", "idempotency_key", "request_hash", "reservation_id")
    return {**{name: getattr(order, name) for name in names}, "granted": granted, "unix": unix}


def _given_back(order: Order, credits_: int) -> Order:
    return Order(Kind.REFUND, order.account_id, order.key_id, credits_, order.allowed, day=order.day)


def _is_plain(order: Order) -> bool:
    return order.kind in _PLAIN and order.idempotency_key is None


def _amount(order: Order) -> int:
    return order.credits if order.kind is Kind.CHARGE else -order.credits


def moment_of(now: datetime) -> str:
    """As `Books.revoked` takes it."""
    return now.strftime("%Y-%m-%d %H:%M:%S")


def _sign(amount: int) -> int:
    return (amount > 0) - (amount < 0)


def _requests(order: Order, answer: Charge | Exception) -> int:
    """By how much an order changes the number of requests that were paid for."""
    if order.kind is Kind.REFUND:
        return -1 if order.credits else 0
    is_free = isinstance(answer, Exception) or answer.is_replay or not answer.granted
    if order.kind is Kind.SETTLE:
        return -1 if is_free else 0
    return 0 if is_free else 1
