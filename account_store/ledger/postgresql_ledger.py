"""The ledger on PostgreSQL: a batch of plain charges is one statement and a commit, two round trips.

A commit without an answer is in doubt. The number of the transaction shows later whether it holds; `writer` gives back its credits then.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg

from account_store.ledger.ledger_database import InDoubtError, LedgerDatabase
from account_store.postgresql import connect, read_answer_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import URL

    from account_store.ledger.ledger_database import DaySum, Month, MonthSum

# Months are locked in order of account, and a day only under the lock of its month: two batches never wait for each other.
# PostgreSQL reads a locked row again once it has the lock, so `used` is never stale.
_ADD = """
WITH wanted AS (
    SELECT * FROM unnest(%s::int[], %s::text[], %s::bigint[], %s::bigint[]) AS w (account_id, month, used, allowed)
), added AS (
    INSERT INTO credit_month AS m (account_id, month, used, allowed)
    SELECT account_id, month, used, allowed FROM wanted WHERE used <= allowed ORDER BY account_id, month
    ON CONFLICT (account_id, month) DO UPDATE SET used = m.used + excluded.used, allowed = excluded.allowed
        WHERE m.used + excluded.used <= excluded.allowed
    RETURNING account_id, month, used
), dated AS (
    INSERT INTO credit_day AS d (account_id, day, key_id, credits, requests)
    SELECT n.account_id, n.day, n.key_id, n.credits, n.requests
    FROM added a JOIN unnest(%s::int[], %s::text[], %s::int[], %s::bigint[], %s::bigint[])
        AS n (account_id, day, key_id, credits, requests) ON n.account_id = a.account_id AND substr(n.day, 1, 7) = a.month
    ON CONFLICT (account_id, day, key_id) DO UPDATE SET credits = d.credits + excluded.credits, requests = d.requests + excluded.requests
)
SELECT account_id, month, used, pg_current_xact_id()::text FROM added
"""


class PostgresqlLedger(LedgerDatabase):
    """One connection to the server."""

    lock_suffix = " FOR UPDATE"
    commits_plain_first = True

    def __init__(self, url: URL) -> None:
        """Connect to the server; its tables exist. `synchronous_commit` is on whatever the server's default."""
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        # Autocommit: this class sends BEGIN and COMMIT itself, so that BEGIN shares a round trip with the statement.
        self._connection = connect(None, read_answer_seconds(), address, autocommit=True)
        self._connection.execute("SET synchronous_commit = on")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def open_transaction(self) -> AbstractContextManager[object]:
        """Do nothing: plain charges and the others commit separately."""
        return nullcontext()

    @contextmanager
    def open_locking_transaction(self) -> Iterator[None]:
        """Run the block in a transaction of its own, which holds locks over several statements."""
        self._connection.execute("BEGIN")
        with self._rollback_on_error():
            yield
            # Asked before the commit: afterwards nobody can tell whether a lost answer meant success.
            ((transaction,),) = self._connection.execute("SELECT pg_current_xact_id()::text").fetchall()
        self._commit(transaction)

    def add_usage(self, months: list[MonthSum], days: list[DaySum]) -> dict[Month, int]:
        """Add the sums in one statement, for any number of accounts.

        The commit is a round trip of its own. A server that hangs in the statement finishes it later, when no caller waits any more.
        """
        columns = [[month[place] for month in months] for place in range(4)] + [[day[place] for day in days] for place in range(5)]
        with self._rollback_on_error():
            # The pipeline sends BEGIN and the statement in one round trip.
            with self._connection.pipeline():
                self._connection.execute("BEGIN")
                cursor = self._connection.execute(_ADD, columns)
            rows = cursor.fetchall()
        self._commit(rows[0][3] if rows else "")
        return {(account_id, month): used for account_id, month, used, _ in rows}

    def has_committed(self, transaction: str) -> bool | None:
        """Ask the server, which remembers millions of transactions; a stand-by that took over may not know the last ones."""
        try:
            ((status,),) = self._connection.execute("SELECT pg_xact_status(%s::xid8)", (transaction,)).fetchall()
        # "Transaction ID is in the future": a stand-by took over that never received this transaction.
        except psycopg.errors.InvalidParameterValue:
            return False
        return None if status == "in progress" else status == "committed"

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if not self._connection.closed:
                # The first error is the one to report. The writer closes the connection after it.
                with suppress(psycopg.Error):
                    self._connection.execute("ROLLBACK")
            raise

    def _commit(self, transaction: str) -> None:
        try:
            self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            # Without a number it wrote nothing, so there is nothing to doubt.
            if not transaction:
                raise
            raise InDoubtError(transaction) from error

    def find_revoked(self, key_ids: list[int], moment: str) -> set[int]:
        """Look the keys up: one more round trip a batch."""
        found = self._connection.execute("SELECT key_id FROM api_key WHERE key_id = ANY(%s) AND revoked_at <= %s", (key_ids, moment))
        return {key_id for (key_id,) in found}

    def execute(self, statement: str, values: dict[str, Any] | Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Run the statement with parameters in this driver's style: `%(name)s`."""
        with self._connection.cursor() as cursor:
            if isinstance(values, dict):
                cursor.execute(_convert_parameters(statement), values)
                return cursor.fetchall() if cursor.description else []
            cursor.executemany(_convert_parameters(statement), values)
            return []


@cache
def _convert_parameters(statement: str) -> bytes:
    # Hazard: a cast (`::text`) would match, too. The statements of `ledger_database` have none.
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()
