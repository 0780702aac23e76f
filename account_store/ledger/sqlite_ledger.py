"""The ledger on SQLite, over the driver itself: one transaction for a whole batch, on disk before any caller gets a result.

Processes take turns by a lock on the file `<database>-turn`.
"""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from account_store.database import BUSY_MS, TURN_SUFFIX
from account_store.errors import UnavailableError
from account_store.ledger.ledger_database import LedgerDatabase
from account_store.private_files import make_private_file
from account_store.sqlite_file import OpenFile, connect_existing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import URL

    from account_store.ledger.ledger_database import DaySum, Month, MonthSum

# The rows arrive as one JSON parameter: the text of a statement does not depend on the size of the batch.
_ADD_MONTHS = """
INSERT INTO credit_month AS m (account_id, month, used, allowed)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE value ->> 2 <= value ->> 3
ON CONFLICT (account_id, month) DO UPDATE SET used = m.used + excluded.used, allowed = excluded.allowed
    WHERE m.used + excluded.used <= excluded.allowed
RETURNING account_id, month, used
"""
# `WHERE true` is needed: without a WHERE, SQLite reads the ON of ON CONFLICT as the condition of a join (its page on UPSERT).
_ADD_DAYS = """
INSERT INTO credit_day AS d (account_id, day, key_id, credits, requests)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?) WHERE true
ON CONFLICT (account_id, day, key_id) DO UPDATE SET credits = d.credits + excluded.credits, requests = d.requests + excluded.requests
"""
# SQLAlchemy stores times as text with microseconds, always 0 here: the first 19 characters compare.
_REVOKED = """
SELECT key_id FROM api_key WHERE key_id IN (SELECT value FROM json_each(?)) AND revoked_at IS NOT NULL AND substr(revoked_at, 1, 19) <= ?
"""


class FileLostError(UnavailableError):
    """The database file was deleted or replaced under its connection. The commit is lost and must not be reported as done."""


class SqliteLedger(LedgerDatabase):
    """One connection to the file."""

    def __init__(self, url: URL) -> None:
        """Open the file; its tables exist."""
        path = str(url.database)
        # isolation_level=None: this class begins and commits by itself. The driver would begin late, and without the write lock.
        self._connection = connect_existing(path, isolation_level=None, timeout=BUSY_MS / 1000, check_same_thread=False)
        try:
            self._file = OpenFile(path)
            # In write-ahead mode NORMAL would lose the last commits in a power loss.
            self._connection.execute("PRAGMA synchronous=FULL")
            turn = Path(path + TURN_SUFFIX)
            make_private_file(turn)
            self._turn = turn.open("wb")
        except BaseException:
            # Without this, each attempt on a full disk would keep three files open.
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection and the lock file."""
        self._connection.close()
        self._turn.close()

    @contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Run the block in one transaction that holds the write lock from its start: no read in it is stale."""
        # SQLite itself waits by sleeping and trying again, ever longer: of four processes that charged all the time one had
        # a p99 of 1.5 s. With turns all stayed within some 30 ms. The kernel drops the lock of a process that dies.
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
            # SQLite commits into a deleted file without an error. The check comes after the commit, so that no caller
            # gets a result that went there.
            self._check_file()
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _check_file(self) -> None:
        """Raise FileLostError when the commit went into a file that is no longer at its path."""
        fault = self._file.find_fault()
        if fault is not None:
            raise FileLostError(fault)

    def open_locking_transaction(self) -> AbstractContextManager[object]:
        """Do nothing: the batch holds the write lock already."""
        return nullcontext()

    def add_usage(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        """Add the sums in two statements, for any number of accounts."""
        rows = self._connection.execute(_ADD_MONTHS, (json.dumps(months),)).fetchall()
        used = {(account_id, month): value for account_id, month, value in rows}
        # Days of a month without room stay out: their operations are decided later and add to the days then.
        fitting = days if len(used) == len(months) else [day for day in days if (day[0], day[1][:7]) in used]
        if fitting:
            self._connection.execute(_ADD_DAYS, (json.dumps(fitting),))
        return used

    def find_revoked(self, key_ids: list[int], moment: str) -> set[int]:
        """Look the keys up by primary key: some microseconds a batch."""
        return {key_id for (key_id,) in self._connection.execute(_REVOKED, (json.dumps(key_ids), moment))}

    def execute(self, statement: str, values: dict[str, Any] | Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Run the statement as it is: SQLite reads `:name` parameters."""
        if isinstance(values, dict):
            return self._connection.execute(statement, values).fetchall()
        self._connection.executemany(statement, values)
        return []
