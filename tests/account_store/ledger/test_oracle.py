"""The ledger against an oracle that keeps four dictionaries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from account_store.database import parse_url
from account_store.errors import IdempotencyKeyReusedError
from account_store.ledger.ledger_database import IDEMPOTENCY_SECONDS
from account_store.ledger.operations import Charge, Kind, Operation
from account_store.ledger.writer import connect_ledger
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from account_store import Accounts, Caller
    from account_store.ledger.ledger_database import LedgerDatabase

ALLOWED = 60


class Oracle:
    """A model of the expected results: first the plain operations of each month whose sum fits, then the others in their order."""

    def __init__(self) -> None:
        self.used: dict[tuple[int, str], int] = defaultdict(int)
        self.replays: dict[tuple[int, str], tuple[str, int, float]] = {}
        self.held: dict[str, int] = {}

    def apply(self, operations: list[Operation], now: datetime) -> list[int | None]:
        results: list[int | None] = [None] * len(operations)
        months = [(operation.account_id, operation.day[:7] or f"{now:%Y-%m}") for operation in operations]
        plain = [operation.idempotency_key is None and operation.kind in (Kind.CHARGE, Kind.REFUND) for operation in operations]
        for month in set(months):
            mine = [place for place, other in enumerate(months) if other == month and plain[place]]
            total = sum(operations[place].credits * (1 if operations[place].kind is Kind.CHARGE else -1) for place in mine)
            if mine and self.used[month] + total <= ALLOWED:
                self.used[month] += total
                for place in mine:
                    results[place] = operations[place].credits if operations[place].kind is Kind.CHARGE else 0
        for place, operation in enumerate(operations):
            if results[place] is None:
                results[place] = self.one(operation, months[place], now.timestamp())
        return results

    def one(self, operation: Operation, month: tuple[int, str], now: float) -> int:
        if operation.kind is Kind.REFUND:
            self.used[month] -= operation.credits
            return 0
        if operation.kind is Kind.SETTLE:
            self.used[month] -= self.held.pop(operation.reservation_id, 0)
            if operation.credits == 0:
                return 0
        key = (operation.account_id, operation.idempotency_key or "")
        if operation.idempotency_key is not None and key in self.replays and self.replays[key][2] > int(now):
            return self.replays[key][1] if self.replays[key][0] == operation.request_hash else -1
        if operation.kind is Kind.SETTLE:
            self.used[month] += operation.credits
            if operation.idempotency_key is not None:
                self.replays[key] = (operation.request_hash, operation.credits, int(now) + IDEMPOTENCY_SECONDS)
            return operation.credits
        left = max(ALLOWED - self.used[month], 0)
        granted = min(left, operation.credits) if operation.is_partial else operation.credits if operation.credits <= left else 0
        self.used[month] += granted
        if granted == operation.credits or operation.is_partial:
            if operation.idempotency_key is not None and operation.kind is Kind.CHARGE:
                self.replays[key] = (operation.request_hash, granted, int(now) + IDEMPOTENCY_SECONDS)
            if operation.kind is Kind.RESERVE:
                self.held[operation.reservation_id] = granted
        return granted


STEPS = st.tuples(
    st.sampled_from(["charge", "charge", "partial", "keyed", "refund", "reserve", "keyed reserve", "settle"]),
    st.integers(0, 1),  # which account
    st.integers(0, 40),  # credits
    st.integers(0, 2),  # which idempotency key, which earlier charge or reservation
)
Step = tuple[str, int, int, int]
BATCHES = st.lists(st.tuples(st.integers(0, 40), st.lists(STEPS, min_size=1, max_size=6)), max_size=8)


@pytest.fixture(scope="module")
def ledger(url: str) -> Iterator[LedgerDatabase]:
    opened = connect_ledger(parse_url(url))
    yield opened
    opened.close()


class Client:
    """Makes operations out of steps, and remembers what it may give back or settle."""

    def __init__(self, callers: list[Caller]) -> None:
        self.callers = callers
        self.granted: list[Charge] = []
        self.reserved: list[tuple[Operation, Charge]] = []
        self.number = 0

    def operation(self, what: str, who: int, amount: int, which: int) -> Operation:
        place = (self.callers[who].account_id, self.callers[who].key_id, amount, ALLOWED)
        self.number += 1
        if what == "refund" and self.granted:
            back = self.granted.pop(which % len(self.granted))
            return Operation(Kind.REFUND, back.account_id, back.key_id, back.granted, ALLOWED, day=back.day)
        if what == "settle" and self.reserved:
            reserve, held = self.reserved.pop(which % len(self.reserved))
            return replace(reserve, kind=Kind.SETTLE, credits=min(amount, held.granted), day=held.day)
        if what.endswith("reserve"):
            key = f"k{which}" if what == "keyed reserve" else None
            named = f"{self.callers[0].account_id}-{self.number}"
            return Operation(Kind.RESERVE, *place, idempotency_key=key, request_hash=str(amount), reservation_id=named)
        if what == "keyed":
            return Operation(Kind.CHARGE, *place, is_partial=bool(amount % 2), idempotency_key=f"k{which}", request_hash=str(amount))
        return Operation(Kind.CHARGE, *place, is_partial=what == "partial")

    def keep(self, operation: Operation, result: Charge | Exception) -> None:
        if isinstance(result, Exception) or not result.granted:
            return
        if operation.kind is Kind.CHARGE and operation.idempotency_key is None:
            self.granted.append(result)
        elif operation.kind is Kind.RESERVE and not result.is_replay:
            self.reserved.append((operation, result))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(batches=BATCHES)
def test_ledger_gives_the_results_of_the_oracle(accounts: Accounts, ledger: LedgerDatabase, batches: list[tuple[int, list[Step]]]) -> None:
    client, oracle = Client([new_caller(accounts), new_caller(accounts)]), Oracle()
    now = datetime(2026, 11, 3, 12, tzinfo=UTC)
    for hours, steps in batches:
        now += timedelta(hours=hours * 3, minutes=1)
        operations = [client.operation(*step) for step in steps]
        expected = oracle.apply(operations, now)
        results = ledger.apply(operations, now)
        assert [-1 if isinstance(result, IdempotencyKeyReusedError) else result.granted for result in results] == expected
        for operation, result in zip(operations, results, strict=True):
            client.keep(operation, result)
    for (account_id, month), total in oracle.used.items():
        statement = accounts.usage.read_month_now(account_id, month)
        assert statement.used == total == sum(day.credits for day in statement.days)
        assert 0 <= total <= ALLOWED
