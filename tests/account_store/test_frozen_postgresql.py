"""A PostgreSQL that is frozen (SIGSTOP) in the middle of work: nobody waits for ever, nothing is charged that was refused, all recovers."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import text

from account_store.accounts import Accounts
from account_store.database import connect_for_reads
from account_store.errors import InvalidValueError, UnavailableError
from account_store.plans import Terms
from account_store.postgresql import SECONDS_VARIABLE, Outage
from tests import waiting
from tests.event_loops import await_result
from tests.postgresql import create_database, shared_server
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from account_store.api_keys import Caller


class FrozenServer:
    """A server of its own: all others would be frozen with the one that tests share."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self._postmaster: int = json.loads((folder / "postgresql.json").read_text())["process"]

    def processes(self) -> list[int]:
        return [self._postmaster, *children(self._postmaster)]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        stopped = []
        for process in self.processes():
            os.kill(process, signal.SIGSTOP)
            stopped.append(process)
        try:
            yield
        finally:
            for process in reversed(stopped):
                os.kill(process, signal.SIGCONT)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrozenServer]:
    folder = tmp_path_factory.mktemp("frozen")
    with shared_server(folder) as url:
        yield FrozenServer(folder, create_database(url, "accounts"))


@pytest.fixture
def accounts(server: FrozenServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accounts]:
    monkeypatch.setenv(SECONDS_VARIABLE, "60")  # a busy machine answers slowly
    opened = Accounts.open(server.url)
    yield opened
    opened.close()


@pytest.fixture
def hasty(server: FrozenServer, accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accounts]:  # noqa: ARG001 - they migrate
    """The accounts, given up on after two seconds without an answer."""
    monkeypatch.setenv(SECONDS_VARIABLE, "2")
    opened = Accounts.open(server.url)
    yield opened
    opened.close()


def new_caller(accounts: Accounts) -> Caller:
    account = accounts.create(f"frozen {uuid.uuid4()}", "custom", Terms(10**9, 100, 1000))
    caller = accounts.keys.find_caller(accounts.keys.create(account.account_id).key)
    assert caller is not None
    return caller


def used(accounts: Accounts, caller: Caller) -> int:
    with connect_for_reads(accounts.engine) as connection:
        return int(
            connection.scalar(text("SELECT coalesce(sum(used), 0) FROM credit_month WHERE account_id = :a"), {"a": caller.account_id})
        )


def until(holds: Callable[[], object]) -> None:
    """Wait, also while the database does not answer."""

    def holds_by_now() -> object:
        try:
            return holds()
        except UnavailableError:
            return False

    waiting.until(holds_by_now)


@pytest.mark.long
def test_charges_refused_by_a_frozen_server_are_not_taken_afterwards(server: FrozenServer, accounts: Accounts, hasty: Accounts) -> None:
    caller, accounts = new_caller(accounts), hasty
    granted, refused = [0] * 6, [0] * 6
    stopping = threading.Event()

    def charge(place: int) -> None:
        while not stopping.is_set():
            try:
                taken = await_result(accounts.ledger.charge, caller, 3)
                if place % 2:
                    await_result(accounts.ledger.release, taken)
                else:
                    granted[place] += taken.granted
            except UnavailableError:
                refused[place] += 1

    with ThreadPoolExecutor(6) as threads:
        working = [threads.submit(charge, place) for place in range(6)]
        try:
            for pause in range(4):
                time.sleep(0.05 + pause / 10)
                before = sum(refused)
                with server.frozen():
                    until(lambda before=before: sum(refused) >= before + 6)
                begun = list(granted)
                until(lambda begun=begun: all(now > then for now, then in zip(granted[::2], begun[::2], strict=True)))
        finally:
            stopping.set()
        for one in working:
            one.result()
    try:
        until(lambda: used(accounts, caller) == sum(granted))
    except AssertionError:
        writer = accounts.ledger._writer
        pytest.fail(f"used {used(accounts, caller)}, granted {sum(granted)}, owed {writer._pending_refunds}, in doubt {writer._doubts}")


def test_commit_without_an_answer_is_given_back_when_it_holds(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment that chance does not meet: the server commits, and its answer never arrives."""
    caller = new_caller(accounts)
    assert await_result(accounts.ledger.charge, caller, 5).granted == 5
    from account_store.ledger.postgresql_ledger import PostgresqlLedger  # noqa: PLC0415

    commit = PostgresqlLedger._commit
    lost = []

    def commit_and_lose_the_answer(ledger: PostgresqlLedger, transaction: str) -> None:
        if not lost:
            lost.append(transaction)
            ledger._connection.execute("COMMIT")
            ledger._connection.close()
        commit(ledger, transaction)

    monkeypatch.setattr(PostgresqlLedger, "_commit", commit_and_lose_the_answer)
    with pytest.raises(UnavailableError):
        await_result(accounts.ledger.charge, caller, 7)
    until(lambda: used(accounts, caller) == 5)
    assert await_result(accounts.ledger.charge, caller, 2).used == 7
    assert lost


def test_commit_that_does_not_hold_gives_nothing_back_but_repeats_the_release(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = new_caller(accounts)
    taken = await_result(accounts.ledger.charge, caller, 5)
    from account_store.ledger.postgresql_ledger import PostgresqlLedger  # noqa: PLC0415

    commit = PostgresqlLedger._commit
    lost = []

    def lose_the_commit(ledger: PostgresqlLedger, transaction: str) -> None:
        if len(lost) < 2:
            lost.append(transaction)
            ledger._connection.close()
        commit(ledger, transaction)

    monkeypatch.setattr(PostgresqlLedger, "_commit", lose_the_commit)
    with pytest.raises(UnavailableError):
        await_result(accounts.ledger.charge, caller, 7)
    with pytest.raises(UnavailableError):
        await_result(accounts.ledger.release, taken)
    until(lambda: used(accounts, caller) == 0)


def test_release_while_no_connection_can_be_had_is_repeated(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = new_caller(accounts)
    every = [await_result(accounts.ledger.charge, caller, price) for price in (5, 3)]
    with monkeypatch.context() as patch:
        patch.setattr("account_store.ledger.postgresql_ledger.PostgresqlLedger.has_committed", _no_answer)
        patch.setattr("account_store.ledger.postgresql_ledger.PostgresqlLedger.__init__", _no_answer)
        patch.setattr("account_store.ledger.postgresql_ledger.PostgresqlLedger.apply", _no_answer)
        for taken in every:  # by the connection that there is, then without one
            with pytest.raises(UnavailableError):
                await_result(accounts.ledger.release, taken)
    until(lambda: used(accounts, caller) == 0)


def _no_answer(*_: object) -> None:
    raise psycopg.OperationalError("no answer")


def test_every_query_of_a_frozen_server_fails_and_recovers(server: FrozenServer, accounts: Accounts, hasty: Accounts) -> None:
    caller, accounts = new_caller(accounts), hasty
    with ThreadPoolExecutor(40) as threads:
        with server.frozen():
            asked = [threads.submit(accounts.get, caller.account_id) for _ in range(40)]  # more than the pool has connections
            for one in asked:
                with pytest.raises(UnavailableError):
                    one.result(timeout=PATIENCE_SECONDS)
            with pytest.raises(UnavailableError):
                accounts.keys.find_caller("unheard of")
            with pytest.raises(UnavailableError):
                Accounts.open(server.url)
        for waiting_ in [threads.submit(until, lambda: accounts.get(caller.account_id)) for _ in range(40)]:
            waiting_.result(timeout=PATIENCE_SECONDS)


def test_answer_that_takes_long_but_goes_on_is_waited_for(hasty: Accounts) -> None:
    """The limit is for silence, not for the size of an answer."""
    rows = "SELECT pg_sleep(0.3)::text || repeat('x', 100000) FROM generate_series(1, 8)"
    with connect_for_reads(hasty.engine) as connection:
        assert len(connection.execute(text(rows)).all()) == 8
        with pytest.raises(UnavailableError, match="no answer within 2 s"):
            connection.execute(text("SELECT pg_sleep(30)"))


def test_outage_lets_one_attempt_through_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("account_store.postgresql.time.monotonic", lambda: now)
    outage = Outage()
    outage.admit(5)
    outage.note_silence()
    with pytest.raises(UnavailableError):
        outage.admit(5)
    now += 1.1
    outage.admit(5)
    with pytest.raises(UnavailableError):
        outage.admit(5)
    now += 7
    outage.admit(5)  # the one before never came back
    outage.note_answer()
    for _ in range(3):
        outage.admit(5)


@pytest.mark.parametrize("said", ["0", "-1", "inf", "nan", "soon"])
def test_invalid_limit_is_refused(server: FrozenServer, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, said)
    with pytest.raises(InvalidValueError, match=SECONDS_VARIABLE):
        Accounts.open(server.url)
