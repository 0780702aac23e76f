"""Charges under faults: each answered charge is on disk, and a refused one is charged at most once when it is repeated under its key.

SQLite only. A PostgreSQL server is another process: it writes its files by itself, and its makers test that.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from account_store import Accounts
from tests.event_loops import await_result
from tests.faults import system_calls
from tests.faults.injection import Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHARGES = 4
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def open_accounts(folder: Path) -> Accounts:
    """Open the store of a scenario's folder, at a fixed time."""
    return Accounts.open(f"sqlite:///{folder / 'store' / 'accounts.db'}", clock=lambda: NOW)


def make_account(folder: Path) -> None:
    """Create an account, and write its key beside the store."""
    accounts = open_accounts(folder)
    account = accounts.create("charged")
    (folder / "key").write_text(accounts.keys.create(account.account_id).key)
    accounts.close()


def charge_all(folder: Path) -> list[str]:
    """Charge 1 credit under each of some keys, and reserve and settle 5; each answer is marked in the log when it is given."""
    answered: list[str] = []
    (folder / "answered.json").write_text("[]")
    accounts = open_accounts(folder)
    try:
        caller = accounts.keys.find_caller((folder / "key").read_text())
        assert caller is not None
        for number in range(CHARGES):
            await_result(accounts.ledger.charge, caller, 1, idempotency_key=f"request-{number}")
            answered.append(f"request-{number}")
            (folder / "answered.json").write_text(json.dumps(answered))
            system_calls.mark(answered[-1])
        reservation = await_result(accounts.ledger.reserve, caller, 9, idempotency_key="reserved")
        assert reservation is not None
        await_result(accounts.ledger.settle, reservation, 5)
        answered.append("reserved")
        system_calls.mark(answered[-1])
    finally:
        (folder / "answered.json").write_text(json.dumps(answered))
        accounts.close()
    return answered


def require_exact(folder: Path, answered: list[str]) -> None:
    """Ask everything again: earlier answers are replayed, and in the end each key was charged once."""
    accounts = open_accounts(folder)
    try:
        caller = accounts.keys.find_caller((folder / "key").read_text())
        assert caller is not None, "the account or its key is lost"
        for number in range(CHARGES):
            charge = await_result(accounts.ledger.charge, caller, 1, idempotency_key=f"request-{number}")
            assert charge.is_replay or f"request-{number}" not in answered, f"request-{number} was answered and is lost"
        reservation = await_result(accounts.ledger.reserve, caller, 9, idempotency_key="reserved")
        assert reservation is not None
        charge = await_result(accounts.ledger.settle, reservation, 5)
        assert charge.is_replay or "reserved" not in answered, "the settled reservation was answered and is lost"
        with accounts.engine.begin() as connection:  # reservations of a process that died are given back later
            held = connection.exec_driver_sql("SELECT coalesce(sum(credits), 0) FROM credit_reservation").scalar()
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        used = accounts.usage.read_month_now(caller.account_id).used - int(held or 0)
        assert used == CHARGES + 5, f"{used} credits are charged for {CHARGES + 5}"
    finally:
        accounts.close()


class Charging(Scenario):
    """A process that opens the store and charges."""

    looks_alike = False

    def prepare(self, folder: Path) -> None:
        make_account(folder)

    def watched(self, folder: Path) -> Path:
        return folder / "store"

    def operate(self, folder: Path) -> str:
        return json.dumps(charge_all(folder))

    def outcome_of(self, marks: list[str]) -> Outcome:
        return Outcome(answer=json.dumps([mark for mark in marks if not mark.startswith("[")]))

    def check(self, folder: Path, outcome: Outcome) -> None:
        """Check without opening the store, because the next operations open it."""
        assert (folder / "store" / "accounts.db").exists(), outcome

    def operate_next(self, folder: Path) -> None:
        require_exact(folder, json.loads((folder / "answered.json").read_text()))

    def next_operations(self, folder: Path, outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        answers_file = folder / "answered.json"
        answered = json.loads(outcome.answer or (answers_file.read_text() if answers_file.exists() else "[]"))
        yield "ask all again", lambda copy: require_exact(copy, answered)
