"""The books against an oracle that keeps four dictionaries."""

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
from account_store.ledger.books import REPLAY_SECONDS
from account_store.ledger.orders import Charge, Kind, Order
from account_store.ledger.writer import open_books
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from account_store import Accounts, Caller
    from account_store.ledger.books import Books

ALLOWED = 60


class Oracle:
    """What must come out: first the plain orders of each month whose sum fits, then the rest as it came."""

    def __init__(self) -> None:
        self.used: dict[tuple[int, str], int] = defaultdict(int)
        self.replays: dict[tuple[int, str], tuple[str, int, float]] = {}
        self.held: dict[str, int] = {}

    def book(self, orders: list[Order], now: datetime) -> list[int | None]:
        answers: list[int | None] = [None] * len(orders)
        months = [(order.account_id, order.day[:7] or f"{now:%Y-%m}") for order in orders]
        plain = [order.idempotency_key is None and order.kind in (Kind.CHARGE, Kind.REFUND) for order in orders]
        for month in set(months):
            mine = [place for place, other in enumerate(months) if other == month and plain[place]]
            total = sum(orders[place].credits * (1 if orders[place].kind is Kind.CHARGE else -1) for place in mine)
            if mine and self.used[month] + total <= ALLOWED:
                self.used[month] += total
                for place in mine:
                    answers[place] = orders[place].credits if orders[place].kind is Kind.CHARGE else 0
        for place, order in enumerate(orders):
            if answers[place] is None:
                answers[place] = self.one(order, months[place], now.timestamp())
        return answers

    def one(self, order: Order, month: tuple[int, str], now: float) -> int:
        if order.kind is Kind.REFUND:
            self.used[month] -= order.credits
            return 0
        if order.kind is Kind.SETTLE:
            self.used[month] -= self.held.pop(order.reservation_id, 0)
            if order.credits == 0:
                return 0
        key = (order.account_id, order.idempotency_key or "")
        if order.idempotency_key is not None and key in self.replays and self.replays[key][2] > int(now):
            return self.replays[key][1] if self.replays[key][0] == order.request_hash else -1
        if order.kind is Kind.SETTLE:
            self.used[month] += order.credits
            if order.idempotency_key is not None:
                self.replays[key] = (order.request_hash, order.credits, int(now) + REPLAY_SECONDS)
            return order.credits
        left = max(ALLOWED - self.used[month], 0)
        granted = min(left, order.credits) if order.is_partial else order.credits if order.credits <= left else 0
        self.used[month] += granted
        if granted == order.credits or order.is_partial:
            if order.idempotency_key is not None and order.kind is Kind.CHARGE:
                self.replays[key] = (order.request_hash, granted, int(now) + REPLAY_SECONDS)
            if order.kind is Kind.RESERVE:
                self.held[order.reservation_id] = granted
        return granted


OPERATIONS = st.tuples(
    st.sampled_from(["charge", "charge", "partial", "keyed", "refund", "reserve", "keyed reserve", "settle"]),
    st.integers(0, 1),  # which account
    st.integers(0, 40),  # credits
    st.integers(0, 2),  # which idempotency key, which earlier charge or reservation
)
Operation = tuple[str, int, int, int]
BATCHES = st.lists(st.tuples(st.integers(0, 40), st.lists(OPERATIONS, min_size=1, max_size=6)), max_size=8)


@pytest.fixture(scope="module")
def books(url: str) -> Iterator[Books]:
    opened = open_books(parse_url(url))
    yield opened
    opened.close()


class Client:
    """Makes orders out of operations, and remembers what it may give back or settle."""

    def __init__(self, callers: list[Caller]) -> None:
        self.callers = callers
        self.granted: list[Charge] = []
        self.reserved: list[tuple[Order, Charge]] = []
        self.number = 0

    def order(self, what: str, who: int, amount: int, which: int) -> Order:
        place = (self.callers[who].account_id, self.callers[who].key_id, amount, ALLOWED)
        self.number += 1
        if what == "refund" and self.granted:
            back = self.granted.pop(which % len(self.granted))
            return Order(Kind.REFUND, back.account_id, back.key_id, back.granted, ALLOWED, day=back.day)
        if what == "settle" and self.reserved:
            reserve, held = self.reserved.pop(which % len(self.reserved))
            return replace(reserve, kind=Kind.SETTLE, credits=min(amount, held.granted), day=held.day)
        if what.endswith("reserve"):
            key = f"k{which}" if what == "keyed reserve" else None
            named = f"{self.callers[0].account_id}-{self.number}"
            return Order(Kind.RESERVE, *place, idempotency_key=key, request_hash=str(amount), reservation_id=named)
        if what == "keyed":
            return Order(Kind.CHARGE, *place, is_partial=bool(amount % 2), idempotency_key=f"k{which}", request_hash=str(amount))
        return Order(Kind.CHARGE, *place, is_partial=what == "partial")

    def keep(self, order: Order, answer: Charge | Exception) -> None:
        if isinstance(answer, Exception) or not answer.granted:
            return
        if order.kind is Kind.CHARGE and order.idempotency_key is None:
            self.granted.append(answer)
        elif order.kind is Kind.RESERVE and not answer.is_replay:
            self.reserved.append((order, answer))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_the_books_answer_as_the_oracle_does(accounts: Accounts, books: Books, batches: list[tuple[int, list[Operation]]]) -> None:
    client, oracle = Client([new_caller(accounts), new_caller(accounts)]), Oracle()
    now = datetime(2026, 11, 3, 12, tzinfo=UTC)
    for hours, operations in batches:
        now += timedelta(hours=hours * 3, minutes=1)
        orders = [client.order(*operation) for operation in operations]
        expected = oracle.book(orders, now)
        answers = books.book(orders, now)
        assert [-1 if isinstance(answer, IdempotencyKeyReusedError) else answer.granted for answer in answers] == expected
        for order, answer in zip(orders, answers, strict=True):
            client.keep(order, answer)
    for (account_id, month), total in oracle.used.items():
        statement = accounts.usage.month_now(account_id, month)
        assert statement.used == total == sum(day.credits for day in statement.days)
        assert 0 <= total <= ALLOWED
