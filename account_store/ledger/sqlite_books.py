"""The ledger on SQLite: the driver itself, one transaction for the whole batch, on disk before anyone hears of it.

`SqliteBooks` waits for its turn and for the disk (`synchronous=FULL`), so a thread of its own uses it. `PromptSqliteBooks` books in the
event loop, between two requests: it has its turn at once or does nothing, and leaves waiting for the disk to the caller. A thread that
books beside a busy loop takes the interpreter away from it, and waits for it, ten times a transaction.

Processes take turns by a lock on the file `<database>-turn`. SQLite's own waiting is sleeping and trying again, ever longer: of four
processes that charge all the time one came through every 1.5 s (p99), with turns all within some 30 ms.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from account_store.clock import day_of
from account_store.database import BUSY_MS, TURN_SUFFIX
from account_store.errors import UnavailableError
from account_store.ledger.books import Books, moment_of
from account_store.ledger.orders import Charge
from account_store.private_files import make_private_file
from account_store.sqlite_file import OpenFile, connect_existing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from sqlalchemy import URL

    from account_store.ledger.books import DaySum, Month, MonthSum
    from account_store.ledger.orders import PlainCharge

_ADD_MONTHS = """
INSERT INTO credit_month AS m (account_id, month, used, allowed)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE value ->> 2 <= value ->> 3
ON CONFLICT (account_id, month) DO UPDATE SET used = m.used + excluded.used, allowed = excluded.allowed
    WHERE m.used + excluded.used <= excluded.allowed
RETURNING account_id, month, used
"""
_ADD_DAYS = """
INSERT INTO credit_day AS d (account_id, day, key_id, credits, requests)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?) WHERE true
ON CONFLICT (account_id, day, key_id) DO UPDATE SET credits = d.credits + excluded.credits, requests = d.requests + excluded.requests
"""
# Moments are stored as text with microseconds behind the second, always 0.
_REVOKED = """
SELECT key_id FROM api_key WHERE key_id IN (SELECT value FROM json_each(?)) AND revoked_at IS NOT NULL AND substr(revoked_at, 1, 19) <= ?
"""


class NotNowError(Exception):
    """Somebody else writes, or something needs a closer look: nothing was booked."""


class FileLostError(UnavailableError):
    """The database was deleted or replaced under its connection: what was booked is lost, and must not be answered."""


class SqliteBooks(Books):
    """One connection to the file."""

    _lock = fcntl.LOCK_EX
    _pragmas: tuple[str, ...] = ("synchronous=FULL",)

    def __init__(self, url: URL) -> None:
        """Open it; the tables are there."""
        path = str(url.database)
        self._connection = connect_existing(path, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False)
        try:
            self._file = OpenFile(path)
            for pragma in self._pragmas:
                self._connection.execute(f"PRAGMA {pragma}")
            turn = Path(path + TURN_SUFFIX)
            make_private_file(turn)
            self._turn = turn.open("wb")
        except BaseException:
            self._connection.close()  # or each try on a full disk would keep three files open
            raise

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()
        self._turn.close()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """One transaction, with the write lock from its start: what is read in it cannot change under it."""
        fcntl.flock(self._turn, self._lock)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
            self.check_file()
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def check_file(self) -> None:
        """FileLostError when what was booked went into a file that is gone."""
        fault = self._file.fault()
        if fault is not None:
            raise FileLostError(fault)

    def careful(self) -> AbstractContextManager[object]:
        """The batch has the lock already."""
        return nullcontext()

    def add(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        """Two statements for any number of accounts."""
        rows = self._connection.execute(_ADD_MONTHS, (json.dumps(months),)).fetchall()
        used = {(account_id, month): value for account_id, month, value in rows}
        fitting = days if len(used) == len(months) else [day for day in days if (day[0], day[1][:7]) in used]
        if fitting:
            self._connection.execute(_ADD_DAYS, (json.dumps(fitting),))
        return used

    def revoked(self, key_ids: list[int], moment: str) -> set[int]:
        """By primary key: some microseconds a batch."""
        return {key_id for (key_id,) in self._connection.execute(_REVOKED, (json.dumps(key_ids), moment))}

    def run(self, statement: str, values: dict[str, Any] | Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """SQLite reads `:name` itself."""
        if isinstance(values, dict):
            return self._connection.execute(statement, values).fetchall()
        self._connection.executemany(statement, values)
        return []


class PromptSqliteBooks(SqliteBooks):
    """Charges without waiting for anybody. What it booked is on disk after `sync`, or when somebody else's later commit is."""

    _lock = fcntl.LOCK_EX | fcntl.LOCK_NB
    _pragmas = ("synchronous=NORMAL", "wal_autocheckpoint=0")  # a checkpoint waits for the disk: `checkpoint` does it

    def __init__(self, url: URL) -> None:
        """Open it; UnavailableError when the file has no write-ahead log."""
        super().__init__(url)
        try:
            (mode,) = self._connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                raise UnavailableError(f"{url.database} keeps no write-ahead log, but a journal of mode {mode!r}")  # noqa: TRY301 - closed below
            self._connection.execute("SELECT used FROM credit_month LIMIT 1").fetchall()  # makes the log, which stays while this is open
            self._log = os.open(f"{url.database}-wal", os.O_RDONLY)
            self._connection.execute("PRAGMA busy_timeout=0")
        except BaseException:
            super().close()
            raise

    def close(self) -> None:
        """Give the files back."""
        super().close()
        os.close(self._log)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """One transaction; NotNowError when somebody else writes."""
        try:
            with super().batch():
                yield
        except BlockingIOError as error:
            raise NotNowError from error
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise NotNowError from error
            raise

    def charge(self, asked: Sequence[PlainCharge], now: datetime) -> list[Charge]:
        """Book all of them in one transaction; NotNowError where that cannot be at once, or some of it needs a closer look."""
        day = day_of(now)
        month = day[:7]
        sums: dict[int, int] = defaultdict(int)
        allowed: dict[int, int] = {}
        days: dict[tuple[int, int], tuple[int, int]] = {}
        for (account_id, key_id, credits_, limit), count in Counter(asked).items():
            sums[account_id] += credits_ * count
            allowed[account_id] = limit
            credits_before, before = days.get((account_id, key_id), (0, 0))
            days[account_id, key_id] = credits_before + credits_ * count, before + count
        with self.batch():
            if self.revoked(sorted({key_id for _, key_id in days}), moment_of(now)):
                raise NotNowError
            months = [(account_id, month, sums[account_id], allowed[account_id]) for account_id in sorted(sums)]
            used = self.add(months, [(account_id, day, key_id, *days[account_id, key_id]) for account_id, key_id in sorted(days)])
            if len(used) < len(sums):
                raise NotNowError
        running = {account_id: used[account_id, month] - sums[account_id] for account_id in sums}
        charges = []
        for account_id, key_id, credits_, limit in asked:
            running[account_id] = so_far = running[account_id] + credits_
            charges.append(Charge(account_id, key_id, credits_, so_far, limit, day))
        return charges

    def sync(self) -> None:
        """Wait until all that was booked is on disk; OSError, FileLostError. From any thread."""
        os.fdatasync(self._log)
        self.check_file()


def checkpoint(url: URL) -> None:
    """Move the log into the database, or it grows for ever. Blocks; others only for the last bit of it."""
    path = str(url.database)
    with closing(connect_existing(path, isolation_level=None)) as connection, Path(f"{path}-turn").open("wb") as turn:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        # Only a log that was moved to its very end is begun anew, and beside charges without a pause its end runs away.
        fcntl.flock(turn, fcntl.LOCK_EX)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
