"""SQLite's write-ahead log under charges: bounded, whatever number of processes writes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from account_store import Accounts
from tests.account_store.conftest import new_caller
from tests.waiting import PATIENCE_SECONDS

PROCESS = Path(__file__).with_name("charging_process.py")
ROOT = PROCESS.parents[3]
PAGE_BYTES, CHECKPOINT_PAGES = 4096, 1000
"""SQLite's defaults: a commit that leaves more pages in the log moves them into the database."""


def test_log_stays_bounded_under_many_batches(tmp_path: Path) -> None:
    accounts = Accounts.open(f"sqlite:///{tmp_path}/accounts.db")
    caller = new_caller(accounts, "scale")

    async def charge() -> None:
        for _ in range(1500):
            await accounts.ledger.charge(caller, 1)

    asyncio.run(charge())
    pages = (tmp_path / "accounts.db-wal").stat().st_size / PAGE_BYTES
    accounts.close()
    assert pages < 1.5 * CHECKPOINT_PAGES, "each batch writes two pages or more"


def test_log_stays_bounded_under_processes_that_charge_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/accounts.db"
    accounts = Accounts.open(url)
    keys = [accounts.keys.create(accounts.create(name, "scale").account_id).key for name in ("first", "second")]
    processes = [
        subprocess.Popen([sys.executable, str(PROCESS), url, key, "1", "1000"], stdout=subprocess.DEVNULL, cwd=ROOT) for key in keys
    ]
    assert [process.wait(timeout=PATIENCE_SECONDS) for process in processes] == [0, 0]
    pages = (tmp_path / "accounts.db-wal").stat().st_size / PAGE_BYTES
    accounts.close()
    assert pages < 1.5 * CHECKPOINT_PAGES
