"""The trace of a stream: what was heard last and is of no airing yet, for the worker that takes over from one that died.

    leave(connection, [(lease, Trace(...)), ...])       every second or so, all streams of a worker at once
    left(connection, stream_id)                         who takes over

One row for each stream, the latest. It stays when its time is over: it says of what time it is. What must not live here: what a trace is
good for (`stream_monitor/trace.py`), what is certain (airings.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import BigInteger, LargeBinary, String, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from account_store.database import POSTGRESQL
from account_store.streams.registry import ACTIVE
from account_store.streams.tables import stream, stream_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from account_store.streams.leases import Lease


class Left(NamedTuple):
    """A trace as it is stored."""

    first_ms: int
    """When its first sample was on the air, Unix milliseconds."""
    heard: bytes
    """Fingerprint items, uint32 little endian, phase by phase."""


def leave(connection: Connection, traces: Iterable[tuple[Lease, Left]]) -> None:
    """Instead of what was left before; nothing of a stream whose lease was lost meanwhile."""
    rows = [{"one": lease.stream_id, "token": lease.token, "at": left.first_ms, "heard": left.heard} for lease, left in traces]
    if not rows:
        return
    is_held = (stream.c.stream_id == bindparam("one", type_=String)) & (stream.c.lease_token == bindparam("token", type_=BigInteger))
    values = (bindparam("at", type_=BigInteger), bindparam("heard", type_=LargeBinary))
    held = select(stream.c.stream_id).add_columns(*values).where(is_held, stream.c.status == ACTIVE)
    insert = postgresql.insert if connection.dialect.name == POSTGRESQL else sqlite.insert
    upsert = insert(stream_trace).from_select(["stream_id", "first_ms", "heard"], held)
    new = {name: upsert.excluded[name] for name in ("first_ms", "heard")}
    connection.execute(upsert.on_conflict_do_update(index_elements=["stream_id"], set_=new), rows)


def left(connection: Connection, stream_id: str) -> Left | None:
    """What was left of the stream last; None when nothing ever was."""
    query = select(stream_trace.c.first_ms, stream_trace.c.heard).where(stream_trace.c.stream_id == stream_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else Left(row.first_ms, bytes(row.heard))
