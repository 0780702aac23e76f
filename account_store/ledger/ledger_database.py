"""Applies a batch of operations: the common case in a statement or two for the whole batch, the rest one by one under row locks.

Most batches are plain charges of accounts that have credits left: their sums for each account and month are added where they fit. Three
kinds of operation are decided one by one, in order of arrival, while the row of their account's month is locked: those of an account whose
sum does not fit, those under an idempotency key, and those of reservations. Both ways hold `used <= allowed` in the database itself,
whatever other processes do.

Out of scope: the differences between the databases (`sqlite_ledger`, `postgresql_ledger`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from account_store.clock import format_day
from account_store.errors import IdempotencyKeyReusedError, KeyRevokedError
from account_store.ledger.operations import Charge, Kind, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

IDEMPOTENCY_SECONDS = 24 * 60 * 60
"""Time for which an idempotency key is remembered (contract D4)."""

Month = tuple[int, str]
"""Account id and month: one row of `credit_month`, the unit of locking."""
MonthSum = tuple[int, str, int, int]
"""Account id, month, credits to add, credits allowed."""
DaySum = tuple[int, str, int, int, int]
"""Account id, day, key id, credits to add, requests to add."""
_PLAIN = (Kind.CHARGE, Kind.REFUND)
_TAKING = (Kind.CHARGE, Kind.RESERVE)
"""Operations that a revoked key may not start. It may still settle what it has reserved."""
_FINAL = (Kind.CHARGE, Kind.SETTLE)
"""Operations whose credits come back by a refund only: a reservation expires by itself."""


@dataclass(slots=True)
class _Balance:
    used: int
    allowed: int
    before: int


class InDoubtError(Exception):
    """The database did not answer a commit. `LedgerDatabase.has_committed` reports later whether the commit holds."""

    def __init__(self, transaction: str) -> None:
        """Keep the name that the database gave to the transaction."""
        super().__init__(f"no answer to the commit of transaction {transaction}")
        self.transaction = transaction
        self.refunds: list[Operation] = []
        """Give these back if the commit holds: the callers got an error and must not pay."""


class LedgerDatabase(ABC):
    """A connection that applies batches of operations; for one thread."""

    lock_suffix = ""
    """Ends a SELECT that locks its row."""
    commits_plain_first = False
    """Plain charges are committed before the others are decided."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def open_transaction(self) -> AbstractContextManager[object]:
        """Enclose everything of one batch."""

    @abstractmethod
    def open_locking_transaction(self) -> AbstractContextManager[object]:
        """Enclose the operations that are decided under locks."""

    @abstractmethod
    def add_usage(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        """Add to all months that have room, and to their days; return the credits used of each of these months.

        Takes locks in the order of `months`.
        """

    @abstractmethod
    def execute(self, statement: str, values: dict[str, Any] | Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Run one statement of this module (`:name` parameters), or the same for several rows; return its rows."""

    @abstractmethod
    def find_revoked(self, key_ids: list[int], moment: str) -> set[int]:
        """Return those of the keys that were revoked at `moment` (`2026-11-21 18:00:00`, UTC), read in this batch."""

    def has_committed(self, transaction: str) -> bool | None:  # noqa: ARG002 - for databases whose commits can be in doubt
        """Return whether a transaction that was in doubt holds; None while it is still open."""
        return False

    def apply(self, operations: list[Operation], now: datetime) -> list[Charge | Exception]:
        """Apply all operations and commit; return their results in the same order."""
        # A refund or a settlement brings the day of its charge. Other operations count to the day of their commit.
        today = format_day(now)
        for operation in operations:
            operation.day = operation.day or today
        with self.open_transaction():
            # Processes cache keys for a second: only the database knows that one was revoked a moment ago.
            taking = sorted({operation.key_id for operation in operations if operation.kind in _TAKING})
            # The moment has the form in which SQLite stores times, which are text there.
            revoked = self.find_revoked(taking, f"{now:%Y-%m-%d %H:%M:%S}") if taking else set()
            if not revoked:
                return self._apply(operations, now)
            # Results are matched to operations by position, so a refused one keeps its place.
            is_refused = [operation.kind in _TAKING and operation.key_id in revoked for operation in operations]
            allowed = [operation for operation, refused in zip(operations, is_refused, strict=True) if not refused]
            results = iter(self._apply(allowed, now))
            return [KeyRevokedError("the key was revoked: nothing was charged") if refused else next(results) for refused in is_refused]

    def _apply(self, operations: list[Operation], now: datetime) -> list[Charge | Exception]:
        try:
            results = self._add_plain(operations)
        except InDoubtError as doubt:
            # Only charges: the writer keeps the refunds of the batch itself, and repeats them if the commit does not hold.
            charges = [operation for operation in operations if _is_plain(operation) and operation.kind is Kind.CHARGE]
            doubt.refunds = [_build_refund(operation, operation.credits) for operation in charges]
            raise
        rest = [place for place, result in enumerate(results) if result is None]
        if rest:
            try:
                decided = self._decide_under_locks([operations[place] for place in rest], int(now.timestamp()))
            except Exception as error:
                # With one transaction for everything, the plain charges are rolled back, too. The same error then answers all.
                if not self.commits_plain_first or len(rest) == len(operations):
                    raise
                # The plain charges are committed: their callers must get their results.
                decided = [error] * len(rest)
            for place, result in zip(rest, decided, strict=True):
                results[place] = result
        return results  # type: ignore[return-value]

    def _decide_under_locks(self, operations: list[Operation], unix: int) -> list[Charge | Exception]:
        decided: list[Charge | Exception] = []
        try:
            with self.open_locking_transaction():
                decided = self._decide_all(operations, unix)
        except InDoubtError as doubt:
            doubt.refunds = [
                _build_refund(operation, result.granted)
                # An operation under an idempotency key stays: a repeated request finds the record of the key and pays once.
                for operation, result in zip(operations, decided, strict=True)
                if isinstance(result, Charge) and operation.kind in _FINAL and operation.idempotency_key is None and result.granted
            ]
            raise
        return decided

    def _add_plain(self, operations: list[Operation]) -> list[Charge | Exception | None]:
        """Add the sums of plain charges and refunds; None for each operation that must be decided under locks."""
        sums: dict[Month, int] = defaultdict(int)
        allowed: dict[Month, int] = {}
        credits_by_day: dict[tuple[int, str, int], int] = defaultdict(int)
        requests_by_day: dict[tuple[int, str, int], int] = defaultdict(int)
        plain = [((one.account_id, one.month), _get_amount(one)) if _is_plain(one) else None for one in operations]
        for operation, known in zip(operations, plain, strict=True):
            if known is None:
                continue
            month, amount = known
            sums[month] += amount
            # Callers of one account may hold plans up to a second apart (KEY_CACHE_SECONDS): the last operation counts.
            allowed[month] = operation.allowed
            place = (operation.account_id, operation.day, operation.key_id)
            credits_by_day[place] += amount
            # A refund takes back the request of its charge. A charge of 0 only asks for the balance and is not a request.
            requests_by_day[place] += (amount > 0) - (amount < 0)
        if not sums:
            return [None] * len(operations)
        # Sorted, as months are: two writers that lock rows in one order never wait for each other.
        changed = sorted(place for place in credits_by_day if credits_by_day[place] or requests_by_day[place])
        days = [(*place, credits_by_day[place], requests_by_day[place]) for place in changed]
        used = self.add_usage([(*month, sums[month], allowed[month]) for month in sorted(sums)], days)
        # The database returns the sum after the batch; each charge gets the running sum in order of arrival.
        running = {month: used[month] - sums[month] for month in used}
        results: list[Charge | Exception | None] = []
        for operation, known in zip(operations, plain, strict=True):
            # No room for the whole sum: its operations are decided one by one. That includes refunds of an account
            # that moved to a smaller plan, because `used` stays above `allowed` there.
            if known is None or known[0] not in running:
                results.append(None)
                continue
            month, amount = known
            running[month] += amount
            results.append(operation.build_charge(max(amount, 0), running[month]))
        return results

    def _decide_all(self, operations: list[Operation], unix: int) -> list[Charge | Exception]:
        balances = {}
        # All writers lock months in ascending order: two batches never wait for each other in a circle.
        for month, allowed in sorted({(one.account_id, one.month): one.allowed for one in operations}.items()):
            used = self._lock_month(month, allowed)
            balances[month] = _Balance(used, allowed, used)
        days: Counter[tuple[int, str, int]] = Counter()
        requests: Counter[tuple[int, str, int]] = Counter()
        results = []
        for operation in operations:
            balance = balances[operation.account_id, operation.month]
            before = balance.used
            result = self._decide(operation, balance, unix)
            results.append(result)
            place = (operation.account_id, operation.day, operation.key_id)
            days[place] += balance.used - before
            requests[place] += _count_requests(operation, result)
        # One UPDATE for each month, however many operations changed it. The lock keeps `used` as it was read.
        changed = [(month, balance) for month, balance in balances.items() if balance.used != balance.before]
        if changed:
            rows = [{"account_id": a, "month": m, "used": b.used, "allowed": b.allowed} for (a, m), b in changed]
            self.execute("UPDATE credit_month SET used = :used, allowed = :allowed WHERE account_id = :account_id AND month = :month", rows)
        named = [
            {"account_id": a, "day": d, "key_id": k, "credits": days[a, d, k], "requests": requests[a, d, k]}
            for a, d, k in sorted(days)
            if days[a, d, k] or requests[a, d, k]
        ]
        if named:
            self.execute(_ADD_DAY, named)
        return results

    def _lock_month(self, month: Month, allowed: int) -> int:
        """Lock the row of a month, made when there is none; return the credits used."""
        values = {"account_id": month[0], "month": month[1], "allowed": allowed}
        lock = "SELECT used FROM credit_month WHERE account_id = :account_id AND month = :month" + self.lock_suffix
        found = self.execute(lock, values)
        if not found:
            # Another process may insert the row first: the second SELECT locks whichever exists.
            self.execute("INSERT INTO credit_month VALUES (:account_id, :month, 0, :allowed) ON CONFLICT DO NOTHING", values)
            found = self.execute(lock, values)
        return int(found[0][0])

    def _decide(self, operation: Operation, balance: _Balance, unix: int) -> Charge | Exception:
        if operation.kind is Kind.REFUND:
            balance.used -= operation.credits
            return operation.build_charge(0, balance.used)
        if operation.kind is Kind.SETTLE:
            return self._settle(operation, balance, unix)
        if operation.idempotency_key is not None:
            earlier = self._find_earlier(operation, balance, unix)
            if earlier is not None:
                return earlier
        # `used` may exceed `allowed` after a change to a smaller plan.
        left = max(balance.allowed - balance.used, 0)
        granted = min(operation.credits, left) if operation.is_partial else operation.credits * (operation.credits <= left)
        balance.used += granted
        is_granted = granted == operation.credits or operation.is_partial
        # A reservation records its idempotency key when it is settled: only then is the price known.
        if is_granted and operation.kind is Kind.RESERVE:
            self.execute(_ADD_RESERVATION, _build_row(operation, granted, unix))
        # A refused charge leaves its key free: the same request may pass after a change of plan.
        if is_granted and operation.idempotency_key is not None and operation.kind is Kind.CHARGE:
            self.execute(_ADD_KEY, _build_row(operation, granted, unix + IDEMPOTENCY_SECONDS))
        return operation.build_charge(granted, balance.used)

    def _settle(self, operation: Operation, balance: _Balance, unix: int) -> Charge | Exception:
        held = self.execute("DELETE FROM credit_reservation WHERE reservation_id = :id RETURNING credits", {"id": operation.reservation_id})
        # An expired reservation was given back already. Its work was done nevertheless and is charged.
        balance.used -= int(held[0][0]) if held else 0
        if operation.idempotency_key is not None and operation.credits:
            # The same request may have been settled while this one was worked on: it is charged once.
            # A settlement for 0 records nothing, so its key stays free for another attempt.
            earlier = self._find_earlier(operation, balance, unix)
            if earlier is not None:
                return earlier
            self.execute(_ADD_KEY, _build_row(operation, operation.credits, unix + IDEMPOTENCY_SECONDS))
        balance.used += operation.credits
        return operation.build_charge(operation.credits, balance.used)

    def _find_earlier(self, operation: Operation, balance: _Balance, unix: int) -> Charge | Exception | None:
        """Return the earlier result under the operation's idempotency key, or an error when the key belongs to another request."""
        values = {"account_id": operation.account_id, "idempotency_key": operation.idempotency_key, "unix": unix}
        found = self.execute(_FIND_KEY, values)
        if not found:
            return None
        request_hash, granted = found[0]
        if request_hash != operation.request_hash:
            return IdempotencyKeyReusedError(
                "the idempotency key was used for another request less than 24 hours ago; send a new key with a new request"
            )
        return operation.build_charge(granted, balance.used, is_replay=True)


_ADD_DAY = """
INSERT INTO credit_day AS d (account_id, day, key_id, credits, requests) VALUES (:account_id, :day, :key_id, :credits, :requests)
ON CONFLICT (account_id, day, key_id) DO UPDATE SET credits = d.credits + excluded.credits, requests = d.requests + excluded.requests
"""
_ADD_RESERVATION = """
INSERT INTO credit_reservation (reservation_id, account_id, key_id, day, credits, created_unix)
VALUES (:reservation_id, :account_id, :key_id, :day, :granted, :unix)
"""
# An expired key counts as unknown, also before the sweep deletes it.
_FIND_KEY = """
SELECT request_hash, granted FROM replay
WHERE account_id = :account_id AND idempotency_key = :idempotency_key AND expires_unix > :unix
"""
# Overwrites an expired key together with its stored answer.
_ADD_KEY = """
INSERT INTO replay (account_id, idempotency_key, request_hash, granted, day, expires_unix)
VALUES (:account_id, :idempotency_key, :request_hash, :granted, :day, :unix)
ON CONFLICT (account_id, idempotency_key) DO UPDATE SET request_hash = excluded.request_hash, granted = excluded.granted,
    day = excluded.day, expires_unix = excluded.expires_unix, status = NULL, media_type = NULL, body = NULL
"""


def _build_row(operation: Operation, granted: int, unix: int) -> dict[str, Any]:
    names = ("account_id", "key_id", "day", "idempotency_key", "request_hash", "reservation_id")
    return {**{name: getattr(operation, name) for name in names}, "granted": granted, "unix": unix}


def _build_refund(operation: Operation, credits_: int) -> Operation:
    return Operation(Kind.REFUND, operation.account_id, operation.key_id, credits_, operation.allowed, day=operation.day)


def _is_plain(operation: Operation) -> bool:
    return operation.kind in _PLAIN and operation.idempotency_key is None


def _get_amount(operation: Operation) -> int:
    return operation.credits if operation.kind is Kind.CHARGE else -operation.credits


def _count_requests(operation: Operation, result: Charge | Exception) -> int:
    """Return the change of the number of paid requests."""
    if operation.kind is Kind.REFUND:
        return -1 if operation.credits else 0
    is_free = isinstance(result, Exception) or result.is_replay or not result.granted
    # The reservation was counted as a request when it was made; one that turns out to be free takes it back.
    if operation.kind is Kind.SETTLE:
        return -1 if is_free else 0
    return 0 if is_free else 1
