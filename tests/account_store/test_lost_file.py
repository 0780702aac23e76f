"""`accounts.db` deleted or replaced under open connections: noticed, never answered from a file without a name, opened when it is back."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from account_store.accounts import Accounts
from account_store.errors import UnavailableError
from account_store.sqlite_file import MUST_EXIST_VARIABLE
from tests.event_loops import await_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from account_store.api_keys import Caller

SUFFIXES = ("", "-wal", "-shm")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "accounts.db"


@pytest.fixture
def accounts(file: Path) -> Iterator[Accounts]:
    opened = Accounts.open(f"sqlite:///{file}")
    yield opened
    opened.close()


@pytest.fixture
def caller(accounts: Accounts, file: Path) -> Caller:
    """Return the caller of an account that has charged from a thread and from an event loop. `good` is a copy of the database from then."""
    key = accounts.keys.create(accounts.create("radio", "scale").account_id).key
    caller = accounts.keys.find_caller(key)
    assert caller is not None
    assert await_result(accounts.ledger.charge, caller, 3).used == 3
    assert [charge.used for charge in charged(accounts, caller, 3)] == [4, 5, 6]
    with closing(sqlite3.connect(file)) as connection, closing(sqlite3.connect(file.with_name("good"))) as copy:
        connection.backup(copy)
    return caller


def charged(accounts: Accounts, caller: Caller, times: int) -> list[object]:
    async def run() -> list[object]:
        return [await accounts.ledger.charge(caller, 1) for _ in range(times)]

    return asyncio.run(run())


def delete(file: Path) -> None:
    for suffix in SUFFIXES:
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def replace_by_an_empty_one(file: Path) -> None:
    delete(file)
    file.touch()


def replace_by_nonsense(file: Path) -> None:
    delete(file)
    file.write_bytes(b"not a database" * 1000)


def put_back(file: Path) -> None:
    delete(file)
    shutil.copy(file.with_name("good"), file.with_name("copy"))
    file.with_name("copy").rename(file)


@pytest.mark.parametrize("lose", [delete, replace_by_an_empty_one, replace_by_nonsense])
def test_lost_database_refuses_everything_until_a_good_one_is_back(
    accounts: Accounts, caller: Caller, file: Path, lose: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    lose(file)
    for _ in range(3):
        with pytest.raises(UnavailableError):
            charged(accounts, caller, 1)
        with pytest.raises(UnavailableError):
            await_result(accounts.ledger.charge, caller, 1)
        with pytest.raises(UnavailableError):
            accounts.get(caller.account_id)
        with pytest.raises(UnavailableError):
            accounts.create("another")
    assert any("accounts.db was" in record.getMessage() + str(record.exc_info) for record in caplog.records)
    put_back(file)
    assert accounts.get(caller.account_id).name == "radio"
    used = [charge.used for charge in refused_once_at_most(lambda: charged(accounts, caller, 4))]
    assert used == [7, 8, 9, 10], "what was refused was charged, or what was charged before is lost"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT used FROM credit_month").fetchone() == (10,)


def refused_once_at_most(ask: Callable[[], list[object]]) -> list[object]:
    """The first charge after a loss may be the one that notices."""
    try:
        return ask()
    except UnavailableError:
        return ask()


def test_database_replaced_by_a_good_one_is_the_one_that_is_charged(accounts: Accounts, caller: Caller, file: Path) -> None:
    put_back(file)
    used = [charge.used for charge in refused_once_at_most(lambda: charged(accounts, caller, 5))]
    assert used[-1] == 11
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT used FROM credit_month").fetchone() == (11,)


def test_deleted_log_is_noticed(accounts: Accounts, caller: Caller, file: Path) -> None:
    """SQLite goes on writing into the deleted log, and nobody else ever reads it."""
    file.with_name("accounts.db-wal").unlink()
    with pytest.raises(UnavailableError, match="-wal was deleted"):
        charged(accounts, caller, 1)


def test_process_of_a_server_does_not_make_a_database(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MUST_EXIST_VARIABLE, "1")
    with pytest.raises(UnavailableError):
        Accounts.open(f"sqlite:///{file}")
    assert not file.exists()


def test_path_with_marks_of_an_address_is_opened_as_it_is(tmp_path: Path) -> None:
    accounts = Accounts.open(f"sqlite:///{tmp_path}/50% of #1/accounts.db")
    accounts.create("radio")
    accounts.close()
    assert (tmp_path / "50% of #1" / "accounts.db").exists()
