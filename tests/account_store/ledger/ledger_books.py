"""Operations of one account at a fixed moment, and a ledger that keeps its tables in dictionaries."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from account_store.ledger import ledger_database
from account_store.ledger.ledger_database import LedgerDatabase
from account_store.ledger.operations import Charge, Kind, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from account_store.ledger.ledger_database import DaySum, Month, MonthSum


NOW = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
UNIX = int(NOW.timestamp())
DAY, MONTH = "2026-11-30", "2026-11"
ALLOWED = 100


def operation(kind: Kind = Kind.CHARGE, credits_: int = 1, account_id: int = 1, **more: Any) -> Operation:  # noqa: ANN401 - fields
    return Operation(kind, account_id, more.pop("key_id", 10 * account_id), credits_, ALLOWED, **more)


def result(credits_: int) -> Charge:
    return operation(day=DAY).build_charge(credits_, credits_)


# --- applying a batch ---


class Books(LedgerDatabase):
    """Keeps the ledger's tables in dictionaries; commits of locking transactions may stay unanswered."""

    def __init__(self, *, plain_first: bool = False) -> None:
        self.commits_plain_first = plain_first
        self.used: dict[Month, int] = {}
        self.days: dict[tuple[int, str, int], tuple[int, int]] = {}
        self.held: dict[str, int] = {}
        self.keys: dict[tuple[int, str], dict[str, Any]] = {}
        self.revoked: set[int] = set()
        self.asked: list[tuple[list[int], str]] = []
        self.written: list[str] = []
        self.fails: Exception | None = None
        self.plain_fails: Exception | None = None
        self.known: dict[str, bool | None] = {}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def open_transaction(self) -> Any:  # noqa: ANN401 - a context
        return nullcontext()

    @contextmanager
    def open_locking_transaction(self) -> Iterator[None]:
        yield
        if self.fails:
            raise self.fails

    def add_usage(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        if self.plain_fails:
            raise self.plain_fails
        assert months == sorted(months)
        fitting = {}
        for account_id, month, credits_, allowed in months:
            if self.used.get((account_id, month), 0) + credits_ <= allowed:
                fitting[account_id, month] = self.used[account_id, month] = self.used.get((account_id, month), 0) + credits_
        for account_id, day, key_id, *added in days:
            if (account_id, day[:7]) in fitting:
                self._add((account_id, day, key_id), *added)
        return fitting

    def _add(self, place: tuple[int, str, int], credits_: int, requests: int) -> None:
        before = self.days.get(place, (0, 0))
        self.days[place] = before[0] + credits_, before[1] + requests

    def find_revoked(self, key_ids: list[int], moment: str) -> set[int]:
        self.asked.append((key_ids, moment))
        return self.revoked & set(key_ids)

    def has_committed(self, transaction: str) -> bool | None:
        return self.known[transaction]

    def execute(self, statement: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - one return a statement
        if statement.startswith("SELECT used"):
            month = values["account_id"], values["month"]
            return [(self.used[month],)] if month in self.used else []
        self.written.append(statement.split(maxsplit=1)[0] + " " + ("credit_month" if "credit_month" in statement else ""))
        if statement.startswith("INSERT INTO credit_month"):
            self.used.setdefault((values["account_id"], values["month"]), 0)
        elif statement.startswith("UPDATE credit_month"):
            self.used |= {(row["account_id"], row["month"]): row["used"] for row in values}
        elif statement == ledger_database._ADD_DAY:
            for row in values:
                self._add((row["account_id"], row["day"], row["key_id"]), row["credits"], row["requests"])
        elif statement == ledger_database._ADD_RESERVATION:
            self.held[values["reservation_id"]] = values["granted"]
        elif statement == ledger_database._ADD_KEY:
            self.keys[values["account_id"], values["idempotency_key"]] = values
        elif statement == ledger_database._FIND_KEY:
            self.written.pop()
            found = self.keys.get((values["account_id"], values["idempotency_key"]))
            return [(found["request_hash"], found["granted"])] if found and found["unix"] > values["unix"] else []
        else:
            assert statement.startswith("DELETE FROM credit_reservation")
            return [(self.held.pop(values["id"]),)] if values["id"] in self.held else []
        return []


def granted(results: Sequence[Charge | Exception]) -> list[int | type]:
    return [one.granted if isinstance(one, Charge) else type(one) for one in results]
