"""Tests of waiting for SQLite's write lock beside processes that take it again and again, as those that charge do."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from account_store import database
from account_store.accounts import Accounts
from account_store.clock import read_utc_time
from account_store.errors import UnavailableError
from account_store.jobs.job_leases import JobLeases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def hold_lock(file: Path, seconds: float, pause: float) -> Iterator[None]:
    """Hold the write lock for `seconds`, release it for `pause`, and so on."""
    is_over, is_held = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as connection:
            while not is_over.is_set():
                connection.execute("BEGIN IMMEDIATE")
                is_held.set()
                is_over.wait(seconds)
                connection.execute("COMMIT")
                time.sleep(pause)

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_waiter_gets_the_lock_although_it_is_free_for_moments_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 400)
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    leases = JobLeases(accounts.engine, read_utc_time)
    # SQLite itself tries some fourteen times in this time, and a try finds the lock free with one chance in eight.
    with hold_lock(tmp_path / "accounts.db", 0.02, 0.003):
        for _ in range(40):
            # Not in the moment in which the last claim got it.
            time.sleep(0.01)
            assert leases.claim() is None
    accounts.close()


def test_lock_that_stays_taken_is_an_error_after_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    monkeypatch.setattr(database, "BUSY_MS", 50)
    with hold_lock(tmp_path / "accounts.db", 600, 0), pytest.raises(UnavailableError, match="database is locked"):
        JobLeases(accounts.engine, read_utc_time).claim()
    assert accounts.list_all() == []
    accounts.close()
