"""Backup and restore of a database of accounts: whole, of one moment, private, and never over something that is there."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from account_store import Accounts
from account_store.backup import DATABASE_FILE, KEY_FILE, back_up_accounts, require_restorable, restore_accounts
from account_store.database import open_engine, parse_url, upgrade_to
from account_store.errors import InvalidValueError, StateError, UnavailableError
from account_store.webhooks.secret_keys import KEY_FILE_VARIABLE, find_key_file
from tests.account_store.saved_account import make_account, require_account
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from tests.account_store.conftest import HandClock

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the key of every database of a test in one file of it."""
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(tmp_path / "key"))
    return tmp_path / "key"


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Return a function that names a new database of one kind."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/accounts{next(_numbers)}.db"
    make: Callable[[str], str] = request.getfixturevalue("new_postgresql_database")
    worker = request.config.workerinput["workerid"] if hasattr(request.config, "workerinput") else ""
    return lambda: make(f"backup_{os.getpid()}_{worker}_{next(_numbers)}")


@contextmanager
def connecting(url: str) -> Iterator[Connection]:
    engine = open_engine(parse_url(url))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def test_restored_accounts_have_their_keys_credits_and_secrets(
    new_url: Callable[[], str], clock: HandClock, tmp_path: Path, key_file: Path
) -> None:
    url, other = new_url(), new_url()
    key, _, secret = make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    key_file.unlink()
    require_restorable(other, tmp_path / "saved", os.environ, replaces=False)
    restore_accounts(other, tmp_path / "saved", os.environ)
    require_account(other, key, secret, clock=clock)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_backup_is_private(new_url: Callable[[], str], clock: HandClock, tmp_path: Path) -> None:
    url = new_url()
    make_account(url, clock=clock)
    files = back_up_accounts(url, tmp_path / "saved", os.environ)
    assert set((tmp_path / "saved").iterdir()) == {*files}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o700


def test_id_of_a_deleted_row_is_not_given_out_after_a_restore(new_url: Callable[[], str], clock: HandClock, tmp_path: Path) -> None:
    url, other = new_url(), new_url()
    if url.startswith("sqlite"):
        pytest.skip("SQLite's own copy keeps what SQLite knows")
    make_account(url, clock=clock)
    with connecting(url) as connection:
        connection.execute(text("SELECT setval(pg_get_serial_sequence('account', 'account_id'), 41)"))
    back_up_accounts(url, tmp_path / "saved", os.environ)
    restore_accounts(other, tmp_path / "saved", os.environ)
    accounts = Accounts.open(other, clock=clock)
    assert accounts.create("next").account_id == 42
    accounts.close()


def test_backup_is_of_one_moment_while_servers_write(new_url: Callable[[], str], clock: HandClock, tmp_path: Path) -> None:
    url, other = new_url(), new_url()
    make_account(url, clock=clock)
    stopping, written = threading.Event(), list[int]()

    def write() -> None:
        engine = open_engine(parse_url(url))
        while not stopping.is_set():
            with engine.begin() as connection:
                connection.execute(text("UPDATE credit_month SET used = used + 1"))
                connection.execute(text("UPDATE credit_day SET credits = credits + 1"))
            written.append(1)
        engine.dispose()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: len(written) > 3)
        back_up_accounts(url, tmp_path / "saved", os.environ)
    finally:
        stopping.set()
        writer.join()
    restore_accounts(other, tmp_path / "saved", os.environ)
    with connecting(other) as connection:
        (month,) = connection.execute(text("SELECT used FROM credit_month")).one()
        (day,) = connection.execute(text("SELECT credits FROM credit_day")).one()
    assert month == day > 7


def test_existing_database_is_overwritten_only_when_asked(new_url: Callable[[], str], clock: HandClock, tmp_path: Path) -> None:
    url, other = new_url(), new_url()
    key, _, secret = make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    accounts = Accounts.open(other, clock=clock)
    accounts.create("somebody else")
    accounts.close()
    with pytest.raises(StateError, match="--replace"):
        require_restorable(other, tmp_path / "saved", os.environ, replaces=False)
    require_restorable(other, tmp_path / "saved", os.environ, replaces=True)
    restore_accounts(other, tmp_path / "saved", os.environ)
    require_account(other, key, secret, clock=clock)


def test_other_key_is_not_overwritten(new_url: Callable[[], str], clock: HandClock, tmp_path: Path, key_file: Path) -> None:
    url = new_url()
    make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    key_file.write_text("another\n")
    with pytest.raises(StateError, match="holds another key than the backup"):
        require_restorable(new_url(), tmp_path / "saved", os.environ, replaces=False)


def test_backup_of_an_older_revision_is_migrated(new_url: Callable[[], str], clock: HandClock, tmp_path: Path) -> None:
    url, other = new_url(), new_url()
    with connecting(url) as connection:
        upgrade_to(connection, "0005")
        connection.execute(text("INSERT INTO account (name, created_at) VALUES ('old', '2026-01-01 00:00:00')"))
    back_up_accounts(url, tmp_path / "saved", os.environ)
    restore_accounts(other, tmp_path / "saved", os.environ)
    accounts = Accounts.open(other, clock=clock)
    assert [account.name for account in accounts.list_all()] == ["old"]
    accounts.close()


def test_backup_of_a_newer_revision_is_refused(clock: HandClock, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    with connecting(f"sqlite:///{tmp_path}/saved/{DATABASE_FILE}") as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InvalidValueError, match="newer program"):
        require_restorable(f"sqlite:///{tmp_path}/other.db", tmp_path / "saved", os.environ, replaces=False)


def test_backup_of_another_kind_of_database_is_refused(clock: HandClock, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    with pytest.raises(InvalidValueError, match="is a backup of SQLite"):
        require_restorable("postgresql://nobody@/none", tmp_path / "saved", os.environ, replaces=False)


def test_server_follows_a_restored_file(clock: HandClock, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    key, _, _ = make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    running = Accounts.open(url, clock=clock)
    running.create("made after the backup")
    restore_accounts(url, tmp_path / "saved", os.environ)
    assert [account.name for account in running.list_all()] == ["radio"]
    assert running.keys.find_caller(key) is not None
    running.close()


def test_damaged_or_missing_database_is_not_a_backup(clock: HandClock, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    make_account(url, clock=clock)
    with (tmp_path / "accounts.db").open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096)
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"accounts.db{suffix}").unlink(missing_ok=True)
    with pytest.raises(UnavailableError, match=r"damaged|cannot be copied"):
        back_up_accounts(url, tmp_path / "saved", os.environ)
    (tmp_path / "accounts.db").unlink()
    shutil.rmtree(tmp_path / "saved")
    with pytest.raises(UnavailableError, match="cannot be copied"):
        back_up_accounts(url, tmp_path / "saved", os.environ)
    assert not (tmp_path / "accounts.db").exists()


def test_keys_of_the_environment_are_saved_and_not_written_over_a_file(
    clock: HandClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCOUNT_SECRET_KEYS", "A" * 43 + "=")
    url = f"sqlite:///{tmp_path}/accounts.db"
    key, _, secret = make_account(url, clock=clock)
    back_up_accounts(url, tmp_path / "saved", os.environ)
    assert (tmp_path / "saved" / KEY_FILE).read_text() == "A" * 43 + "=\n"
    restore_accounts(f"sqlite:///{tmp_path}/other.db", tmp_path / "saved", os.environ)
    assert not find_key_file(parse_url(url), os.environ).exists()
    require_account(f"sqlite:///{tmp_path}/other.db", key, secret, clock=clock)
