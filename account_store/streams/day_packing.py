"""Reads days of airings and packs them (report.py has the layout).

A report reads millions of rows, so the way matters. SQLite sends rows, from an index that has all columns. PostgreSQL sends whole columns:
rows would cost the client twice as much. Out of scope: the choice of days, and storage (report.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import LargeBinary, func, literal, select, text

from account_store.database import IN_BINARY, POSTGRESQL, connect_for_reads
from account_store.streams.stream_tables import airing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Engine

    Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]

DAY_SECONDS = 86_400
_DAYS_AT_ONCE = 14
"""Days whose columns PostgreSQL holds in memory until it sends them."""
_STARTED = (airing.c.started_ms + 500) // 1000
"""`started_at` as a number, which is faster to read."""


@contextmanager
def open_bulk_connection(engine: Engine) -> Iterator[Connection]:
    """Open a connection for `read_days`."""
    # A transaction would take the write lock on SQLite; on PostgreSQL it ends the settings of `_columns`.
    with engine.begin() if engine.dialect.name == POSTGRESQL else connect_for_reads(engine) as connection:
        yield connection


def read_days(connection: Connection, days: Mapping[str, Sequence[int]]) -> dict[str, dict[int, bytes]]:
    """Return the packed airings by stream and day. `days`: by stream, ascending, counted from 1970 in UTC."""
    if connection.dialect.name != POSTGRESQL:
        return {name: _pack_columns(_read_rows(connection, name, one[0], one[-1] + 1), one) for name, one in days.items()}
    packed: dict[str, dict[int, bytes]] = {name: {} for name in days}
    first, end = min(one[0] for one in days.values()), max(one[-1] for one in days.values()) + 1
    for start in range(first, end, _DAYS_AT_ONCE):
        requested = {name: some for name, one in days.items() if (some := [day for day in one if start <= day < start + _DAYS_AT_ONCE])}
        found = _read_columns(connection, list(requested), start, min(start + _DAYS_AT_ONCE, end)) if requested else {}
        for name, some in requested.items():
            packed[name] |= _pack_columns(found.get(name, _NOTHING), some)
    return packed


_NOTHING = (np.zeros(0, np.int64),) * 3


def _read_rows(connection: Connection, stream_id: str, first: int, end: int) -> Columns:
    """Return recording ids, starts (Unix seconds) and durations of one stream, in order."""
    query = select(airing.c.recording_id, _STARTED, airing.c.duration_seconds)
    query = query.where(airing.c.stream_id == stream_id, airing.c.started_at >= _to_time(first), airing.c.started_at < _to_time(end))
    rows: Any = connection.execute(query.order_by(airing.c.started_at, airing.c.airing_id)).cursor
    # The driver's own cursor: SQLAlchemy's row objects take longer than the reading.
    ids, unix, seconds = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 3).T
    return ids, unix, seconds


def _read_columns(connection: Connection, stream_ids: Sequence[str], first: int, end: int) -> dict[str, Columns]:
    """Return the same for several streams; streams without airings are absent."""
    # Rows of one time are together in the table, whatever their stream. An index scan would look each up by itself: three times the work.
    connection.execute(text("SET LOCAL enable_indexscan = off"))
    sent = [func.int8send(column) for column in (airing.c.recording_id, _STARTED, airing.c.duration_seconds, airing.c.airing_id)]
    query = select(airing.c.stream_id, *(func.string_agg(column, literal(b"", LargeBinary)) for column in sent))
    query = query.where(airing.c.stream_id.in_(stream_ids), airing.c.started_at >= _to_time(first), airing.c.started_at < _to_time(end))
    found = {}
    for name, *columns in connection.execute(query.group_by(airing.c.stream_id), execution_options={IN_BINARY: True}):
        ids, unix, seconds, airing_ids = (np.frombuffer(column, ">i8") for column in columns)
        order = np.lexsort((airing_ids, unix))
        found[name] = (ids[order], unix[order], seconds[order])
    return found


def _pack_columns(columns: Columns, days: Sequence[int]) -> dict[int, bytes]:
    ids, unix, seconds = columns
    starts, ends = (np.searchsorted(unix, (np.asarray(days, np.int64) + more) * DAY_SECONDS).tolist() for more in (0, 1))
    packed = {}
    for day, start, end in zip(days, starts, ends, strict=True):
        offsets = unix[start:end] - day * DAY_SECONDS
        small = (offsets.astype("<i4").tobytes(), seconds[start:end].astype("<i4").tobytes())
        packed[day] = b"".join((ids[start:end].astype("<i8").tobytes(), *small))
    return packed


def _to_time(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC)
