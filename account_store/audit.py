"""The audit log of an account: who changed what, and when. Each entry commits with its change.

    with acting_as("user kim@example.org"):
        accounts.keys.create(account_id)          # records key.created by that user

Without a name the operator acts. No entry holds a secret. Out of scope: requests to the catalog, which change nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from sqlalchemy import select

from account_store.database import connect_for_reads
from account_store.schema import audit_entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import Connection, Engine

OPERATOR = "operator"
LONGEST_ACTOR, LONGEST_SUBJECT = 300, 300
_actor: ContextVar[str] = ContextVar("audit_actor", default=OPERATOR)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change. `actor` is `operator`, `key <id>` or `user <e-mail>`; `subject` is the changed thing, such as `key 12`."""

    entry_id: int
    happened_at: datetime
    actor: str
    action: str
    subject: str
    detail: str


def set_actor(actor: str) -> None:
    """Name the actor of the changes that follow in this task; threads that it starts by asyncio inherit the name."""
    _actor.set(actor)


@contextmanager
def acting_as(actor: str) -> Iterator[None]:
    """Name the actor of the changes in the block."""
    before = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(before)


def record(connection: Connection, account_id: int, action: str, subject: str, *, at: datetime, detail: str = "") -> None:
    """Add an entry in the transaction of the change."""
    values = {"account_id": account_id, "happened_at": at, "actor": _actor.get()[:LONGEST_ACTOR], "action": action}
    connection.execute(audit_entry.insert().values(**values, subject=subject[:LONGEST_SUBJECT], detail=detail))


class AuditLog:
    """The audit logs of all accounts."""

    def __init__(self, engine: Engine) -> None:
        """Use an open database."""
        self._engine = engine

    def read_page(self, account_id: int, *, limit: int, before: int | None = None) -> list[AuditEntry]:
        """Return entries of the account, newest first: those older than the entry `before`, at most `limit`."""
        columns = [audit_entry.c[field.name] for field in fields(AuditEntry)]
        query = select(*columns).where(audit_entry.c.account_id == account_id).order_by(audit_entry.c.entry_id.desc()).limit(limit)
        if before is not None:
            query = query.where(audit_entry.c.entry_id < before)
        with connect_for_reads(self._engine) as connection:
            return [AuditEntry(*row) for row in connection.execute(query)]
