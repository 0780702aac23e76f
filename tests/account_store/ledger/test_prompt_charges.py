"""Charges that an event loop books by itself on SQLite: all or nothing, never waiting, told only when they are on disk."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from account_store import Accounts, Caller
from account_store.database import parse_url
from account_store.errors import UnavailableError
from account_store.ledger import writer
from account_store.ledger.sqlite_books import NotNowError, PromptSqliteBooks
from tests.account_store.conftest import new_caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from account_store.ledger import Charge

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ALLOWED = 60


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    opened = Accounts.open(f"sqlite:///{tmp_path_factory.mktemp('prompt')}/accounts.db", clock=lambda: NOW)
    yield opened
    opened.close()


def file_of(accounts: Accounts) -> Path:
    return Path(str(accounts.ledger._engine.url.database))


@pytest.fixture(scope="module")
def books(accounts: Accounts) -> Iterator[PromptSqliteBooks]:
    opened = PromptSqliteBooks(parse_url(f"sqlite:///{file_of(accounts)}"))
    yield opened
    opened.close()


def booked(accounts: Accounts, caller: Caller) -> tuple[int, int, int]:
    """Credits of the month, and by its days' sums credits and requests."""
    statement = accounts.usage.month_now(caller.account_id)
    return statement.used, sum(day.credits for day in statement.days), sum(day.requests for day in statement.days)


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 25)), min_size=1, max_size=6), max_size=6))
def test_a_batch_is_charged_whole_in_order_or_not_at_all(
    accounts: Accounts, books: PromptSqliteBooks, batches: list[list[tuple[int, int]]]
) -> None:
    first, other = new_caller(accounts), new_caller(accounts)
    second_key = accounts.keys.caller(accounts.keys.create(first.account_id).key)
    assert second_key is not None
    callers = [first, second_key, other]
    used = {first.account_id: 0, other.account_id: 0}
    requests = dict.fromkeys(used, 0)
    for batch in batches:
        asked = [(callers[who].account_id, callers[who].key_id, price, ALLOWED) for who, price in batch]
        after = dict(used)
        expected = []
        for account_id, key_id, price, _ in asked:
            after[account_id] += price
            expected.append((account_id, key_id, price, after[account_id], ALLOWED, "2026-11-21", False))
        if max(after.values()) > ALLOWED:
            with pytest.raises(NotNowError):
                books.charge(asked, NOW)
        else:
            assert books.charge(asked, NOW) == expected
            used = after
            for account_id, *_ in asked:
                requests[account_id] += 1
    for caller in (first, other):
        credits_, count = used[caller.account_id], requests[caller.account_id]
        assert booked(accounts, caller) == (credits_, credits_, count)


def test_nothing_is_waited_for_and_nothing_booked_while_somebody_else_writes(accounts: Accounts, books: PromptSqliteBooks) -> None:
    caller = new_caller(accounts)
    asked = [(caller.account_id, caller.key_id, 1, ALLOWED)]
    with closing(sqlite3.connect(file_of(accounts), isolation_level=None)) as elsewhere:
        elsewhere.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotNowError):
            books.charge(asked, NOW)
        elsewhere.execute("ROLLBACK")
    with Path(f"{file_of(accounts)}-turn").open("wb") as turn:
        flock(turn, LOCK_EX | LOCK_NB)
        with pytest.raises(NotNowError):
            books.charge(asked, NOW)
        flock(turn, LOCK_UN)
    assert booked(accounts, caller) == (0, 0, 0)
    assert [charge.used for charge in books.charge(asked, NOW)] == [1]


def test_a_revoked_key_is_left_to_those_who_look_closer(accounts: Accounts, books: PromptSqliteBooks) -> None:
    caller, other = new_caller(accounts), new_caller(accounts)
    accounts.keys.revoke(caller.key_id)
    with pytest.raises(NotNowError):
        books.charge([(one.account_id, one.key_id, 1, ALLOWED) for one in (caller, other)], NOW)
    assert booked(accounts, other) == (0, 0, 0)


def test_a_database_without_a_write_ahead_log_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "plain.db")) as plain:
        plain.execute("CREATE TABLE credit_month (used)")
    with pytest.raises(UnavailableError, match="write-ahead log"):
        PromptSqliteBooks(parse_url(f"sqlite:///{tmp_path}/plain.db"))


async def until_prompt(accounts: Accounts, caller: Caller) -> None:
    """The first charge goes by the thread, which then opens what books at once."""
    await accounts.ledger.charge(caller, 1)
    for _ in range(1000):
        if accounts.ledger._writer._prompt is not None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing that books at once was opened")


def test_a_charge_is_told_only_when_it_is_on_disk(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    caller, is_on_disk, asked = new_caller(accounts), threading.Event(), threading.Event()
    fdatasync = os.fdatasync

    def slow(file: int) -> None:
        asked.set()
        assert is_on_disk.wait(10)
        fdatasync(file)

    async def charge() -> tuple[bool, int, Charge]:
        await until_prompt(accounts, caller)
        monkeypatch.setattr(os, "fdatasync", slow)
        waiting = accounts.ledger.charge(caller, 2)
        await asyncio.to_thread(asked.wait, 10)
        seen, was_done = booked(accounts, caller)[0], waiting.done()
        is_on_disk.set()
        return was_done, seen, await waiting

    was_done, seen, charge_ = asyncio.run(charge())
    assert (was_done, seen, charge_.used) == (False, 3, 3), "booked, on its way, then told"


def test_a_disk_that_fails_is_told_to_those_who_wait(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts.open(f"sqlite:///{file_of(accounts)}")
    caller = new_caller(accounts)

    def broken(_file: int) -> None:
        raise OSError(5, "Input/output error")

    async def charge() -> Charge:
        await until_prompt(accounts, caller)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", broken)
            with pytest.raises(UnavailableError, match="Input/output error"):
                await accounts.ledger.charge(caller, 1)
        return await accounts.ledger.charge(caller, 1)

    assert asyncio.run(charge()).granted == 1, "the next one is left to SQLite itself"
    assert accounts.ledger._writer._prompt is None
    accounts.close()


def test_what_does_not_fit_is_decided_one_by_one(accounts: Accounts) -> None:
    caller = new_caller(accounts)  # a thousand credits

    async def charge() -> list[int]:
        await until_prompt(accounts, caller)
        return [charge.granted for charge in await asyncio.gather(*(accounts.ledger.charge(caller, 300) for _ in range(5)))]

    assert asyncio.run(charge()) == [300, 300, 300, 0, 0]
    assert booked(accounts, caller) == (901, 901, 4)


def test_the_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCHES_PER_CHECKPOINT", 10)
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    caller = new_caller(accounts, "scale")

    async def charge() -> None:
        await until_prompt(accounts, caller)
        for _ in range(500):
            await accounts.ledger.charge(caller, 1)

    asyncio.run(charge())
    pages = (tmp_path / "accounts.db-wal").stat().st_size / 4096
    accounts.close()
    assert pages < 500, "two pages or more a batch, of which those that were moved are written over"
