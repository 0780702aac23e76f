"""Stored traces: the last fingerprints of a stream that belong to no airing yet, for the worker that takes the stream over.

    save_traces(connection, [(lease, trace.stored), ...])     every second or so, all streams of a worker at once
    load_trace(connection, stream_id)                         by the worker that takes over

Each stream has one row, its latest trace. The row holds its own time, so that an old one does no harm. Out of scope: the use
of a trace (`stream_monitor/trace.py`), airings (airings.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import BigInteger, LargeBinary, String, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from account_store.database import POSTGRESQL
from account_store.streams.registry import ACTIVE
from account_store.streams.stream_tables import stream, stream_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from account_store.streams.leases import Lease


class StoredTrace(NamedTuple):
    """A trace in its stored form."""

    first_ms: int
    """Air time of its first sample, Unix milliseconds."""
    items: bytes
    """Fingerprint items, uint32 little endian, phase by phase."""


def save_traces(connection: Connection, traces: Iterable[tuple[Lease, StoredTrace]]) -> None:
    """Replace the stored traces; skip streams whose lease was lost meanwhile."""
    rows = [{"one": lease.stream_id, "token": lease.token, "at": trace.first_ms, "heard": trace.items} for lease, trace in traces]
    if not rows:
        return
    is_held = (stream.c.stream_id == bindparam("one", type_=String)) & (stream.c.lease_token == bindparam("token", type_=BigInteger))
    values = (bindparam("at", type_=BigInteger), bindparam("heard", type_=LargeBinary))
    # The SELECT finds no row for a lost lease, so one statement both checks the leases and writes.
    held = select(stream.c.stream_id).add_columns(*values).where(is_held, stream.c.status == ACTIVE)
    insert = postgresql.insert if connection.dialect.name == POSTGRESQL else sqlite.insert
    upsert = insert(stream_trace).from_select(["stream_id", "first_ms", "heard"], held)
    new = {name: upsert.excluded[name] for name in ("first_ms", "heard")}
    connection.execute(upsert.on_conflict_do_update(index_elements=["stream_id"], set_=new), rows)


def load_trace(connection: Connection, stream_id: str) -> StoredTrace | None:
    """Return the latest trace of the stream; None when there is none."""
    query = select(stream_trace.c.first_ms, stream_trace.c.heard).where(stream_trace.c.stream_id == stream_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else StoredTrace(row.first_ms, bytes(row.heard))
