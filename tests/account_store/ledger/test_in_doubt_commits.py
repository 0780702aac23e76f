"""Commits that the database did not answer: once it reports whether they hold, callers have paid exactly for the answers that they got."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from account_store import Accounts
from account_store.errors import UnavailableError
from account_store.ledger import writer
from account_store.ledger.ledger_database import InDoubtError
from account_store.ledger.operations import Charge, Kind, Operation
from account_store.ledger.postgresql_ledger import PostgresqlLedger
from tests.account_store.conftest import HandClock, new_caller
from tests.event_loops import await_result
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from account_store import Caller

PRICE = 10


@pytest.fixture(scope="module")
def accounts(new_postgresql_database: Callable[[str], str]) -> Iterator[Accounts]:
    opened = Accounts.open(new_postgresql_database(f"doubts_{os.getpid()}"), clock=HandClock())
    yield opened
    opened.close()


class Doubts:
    """Lets commits go unanswered; from `tell` on the server itself reports whether they held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.answered_first = 0
        self.is_answering = True
        self.holds = True
        commit, has_committed = PostgresqlLedger._commit, PostgresqlLedger.has_committed

        def unanswered(ledger: PostgresqlLedger, transaction: str) -> None:
            if not self.left or self.answered_first:
                self.answered_first = max(self.answered_first - 1, 0)
                commit(ledger, transaction)
                return
            self.left -= 1
            ledger._connection.execute("COMMIT" if self.holds else "ROLLBACK")
            raise InDoubtError(transaction) from psycopg.OperationalError("no answer")

        monkeypatch.setattr(PostgresqlLedger, "_commit", unanswered)
        monkeypatch.setattr(
            PostgresqlLedger, "has_committed", lambda ledger, transaction: has_committed(ledger, transaction) if self.is_answering else None
        )

    def lose(self, operate: Callable[[], object], *, holds: bool) -> None:
        self.left, self.holds = 1, holds
        with pytest.raises(UnavailableError):
            operate()
        assert self.left == 0


@pytest.fixture
def doubts(monkeypatch: pytest.MonkeyPatch) -> Doubts:
    return Doubts(monkeypatch)


def charged(accounts: Accounts, caller: Caller) -> int:
    """Return the used credits once all doubts are over. The next order at the latest gives owed credits back."""
    await_result(accounts.ledger.charge, caller, 1)
    statement = accounts.usage.read_month_now(caller.account_id)
    assert sum(day.credits for day in statement.days) == statement.used
    await_result(accounts.ledger.release, await_result(accounts.ledger.charge, caller, 1))
    return statement.used - 1


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("is_partial", [True, False])  # decided under a lock; one of many in a statement
def test_charge_that_was_reported_as_failed_is_not_paid(accounts: Accounts, doubts: Doubts, is_partial: bool, holds: bool) -> None:  # noqa: FBT001
    caller = new_caller(accounts)
    doubts.lose(lambda: await_result(accounts.ledger.charge, caller, PRICE, partial=is_partial), holds=holds)
    assert charged(accounts, caller) == 0


@pytest.mark.parametrize("holds", [True, False])
def test_release_without_an_answer_gives_back_once(accounts: Accounts, doubts: Doubts, holds: bool) -> None:  # noqa: FBT001
    caller = new_caller(accounts)
    kept, released = await_result(accounts.ledger.charge, caller, 3), await_result(accounts.ledger.charge, caller, PRICE)
    doubts.lose(lambda: await_result(accounts.ledger.release, released), holds=holds)
    assert charged(accounts, caller) == kept.granted


@pytest.mark.parametrize("holds", [True, False])
def test_charge_under_a_key_without_an_answer_is_paid_by_its_repeat_once(accounts: Accounts, doubts: Doubts, holds: bool) -> None:  # noqa: FBT001
    caller = new_caller(accounts)
    named = {"idempotency_key": "one", "request_hash": "h"}
    doubts.lose(lambda: await_result(accounts.ledger.charge, caller, PRICE, **named), holds=holds)
    again = await_result(accounts.ledger.charge, caller, PRICE, **named)
    assert (again.granted, again.is_replay, charged(accounts, caller)) == (PRICE, holds, PRICE)


def test_settled_reservation_without_an_answer_is_not_paid_for(accounts: Accounts, doubts: Doubts) -> None:
    caller = new_caller(accounts)
    held = await_result(accounts.ledger.reserve, caller, PRICE)
    assert held is not None
    doubts.lose(lambda: await_result(accounts.ledger.settle, held, PRICE - 3), holds=True)
    assert charged(accounts, caller) == 0


def test_reservation_without_an_answer_lapses_and_is_not_given_back_twice(accounts: Accounts, doubts: Doubts) -> None:
    caller = new_caller(accounts)
    doubts.lose(lambda: await_result(accounts.ledger.reserve, caller, PRICE), holds=True)
    assert charged(accounts, caller) == PRICE, "until it lapses"


def test_several_doubts_are_resolved_each_by_its_own_answer(accounts: Accounts, doubts: Doubts) -> None:
    callers = [new_caller(accounts) for _ in range(3)]
    kept = [await_result(accounts.ledger.charge, caller, 5) for caller in callers]
    doubts.is_answering = False
    for caller, holds in zip(callers, (True, False, True), strict=True):
        doubts.lose(lambda caller=caller: await_result(accounts.ledger.charge, caller, PRICE), holds=holds)
    doubts.lose(lambda: await_result(accounts.ledger.release, kept[1]), holds=False)
    used = [await_result(accounts.ledger.charge, caller, 0).used for caller in callers]
    assert used == [15, 5, 15], "nothing is given back as long as the server cannot tell"
    doubts.is_answering = True
    assert [charged(accounts, caller) for caller in callers] == [5, 0, 5]


def test_operation_in_doubt_takes_nothing_from_earlier_commits(accounts: Accounts, doubts: Doubts) -> None:
    plain, careful = new_caller(accounts), new_caller(accounts)
    operations = [
        Operation(Kind.CHARGE, plain.account_id, plain.key_id, PRICE, 1000),
        Operation(Kind.CHARGE, careful.account_id, careful.key_id, PRICE, 1000, is_partial=True, idempotency_key="one"),
    ]
    heard: list[Sequence[Charge | Exception]] = []
    booked = threading.Event()

    def hear(answers: Sequence[Charge | Exception]) -> None:
        heard.append(answers)
        booked.set()

    doubts.left, doubts.answered_first, doubts.holds = 1, 1, False
    accounts.ledger._writer.submit(operations, hear)
    assert booked.wait(PATIENCE_SECONDS)
    ((first, second),) = heard
    assert isinstance(first, Charge)
    assert isinstance(second, UnavailableError)
    assert (first.used, charged(accounts, plain), charged(accounts, careful)) == (PRICE, PRICE, 0)


@pytest.mark.parametrize(("place", "name"), [(PostgresqlLedger, "has_committed"), (writer, "connect_ledger")])
def test_doubt_outlives_a_database_that_is_away(
    accounts: Accounts, doubts: Doubts, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    caller = new_caller(accounts)
    doubts.lose(lambda: await_result(accounts.ledger.charge, caller, PRICE), holds=True)

    def away(*_: object) -> None:
        raise psycopg.OperationalError("no connection")

    with monkeypatch.context() as patch:
        patch.setattr(place, name, away)
        with pytest.raises(UnavailableError):
            await_result(accounts.ledger.charge, caller, 1)
    assert charged(accounts, caller) == 0
