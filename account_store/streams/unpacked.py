"""Days of airings that are not packed, read as they would be packed (report.py has the layout).

Millions of rows, so how matters. SQLite hands over rows, out of an index that has all columns. PostgreSQL hands over whole columns: as rows
they would cost the client as much again. What must not live here: which days those are, and what becomes of them (report.py).
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import LargeBinary, func, literal, select, text

from account_store.database import IN_BINARY, POSTGRESQL, reading
from account_store.streams.tables import airing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Engine

    Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]

DAY_SECONDS = 86_400
_DAYS_AT_ONCE = 14
"""On PostgreSQL, which holds the columns of so many days until it sends them."""
_STARTED = (airing.c.started_ms + 500) // 1000
"""`started_at` as a number: quicker to read."""


@contextmanager
def reading_many(engine: Engine) -> Iterator[Connection]:
    """A connection to `read` with."""
    # SQLite's transactions take the lock of who writes; what is set for PostgreSQL must end with one.
    with engine.begin() if engine.dialect.name == POSTGRESQL else reading(engine) as connection:
        yield connection


def read(connection: Connection, days: Mapping[str, Sequence[int]]) -> dict[str, dict[int, bytes]]:
    """By stream and day (since 1970, UTC, ascending) its airings, packed."""
    if connection.dialect.name != POSTGRESQL:
        return {name: _packed(_rows(connection, name, one[0], one[-1] + 1), one) for name, one in days.items()}
    made: dict[str, dict[int, bytes]] = {name: {} for name in days}
    first, end = min(one[0] for one in days.values()), max(one[-1] for one in days.values()) + 1
    for start in range(first, end, _DAYS_AT_ONCE):
        wanted = {name: some for name, one in days.items() if (some := [day for day in one if start <= day < start + _DAYS_AT_ONCE])}
        found = _columns(connection, list(wanted), start, min(start + _DAYS_AT_ONCE, end)) if wanted else {}
        for name, some in wanted.items():
            made[name] |= _packed(found.get(name, _NOTHING), some)
    return made


_NOTHING = (np.zeros(0, np.int64),) * 3


def _rows(connection: Connection, stream_id: str, first: int, end: int) -> Columns:
    """Recording ids, starts (Unix seconds), durations; ordered."""
    query = select(airing.c.recording_id, _STARTED, airing.c.duration_seconds)
    query = query.where(airing.c.stream_id == stream_id, airing.c.started_at >= _moment(first), airing.c.started_at < _moment(end))
    rows: Any = connection.execute(query.order_by(airing.c.started_at, airing.c.airing_id)).cursor
    # The driver's own: what is done to rows of numbers for a caller's comfort takes longer than reading them.
    ids, unix, seconds = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 3).T
    return ids, unix, seconds


def _columns(connection: Connection, stream_ids: Sequence[str], first: int, end: int) -> dict[str, Columns]:
    """The same by stream; streams of which nothing aired are absent."""
    # Rows of one time lie together, whosesoever they are. In the index's order each would be looked up by itself: three times the work.
    connection.execute(text("SET LOCAL enable_indexscan = off"))
    sent = [func.int8send(column) for column in (airing.c.recording_id, _STARTED, airing.c.duration_seconds, airing.c.airing_id)]
    query = select(airing.c.stream_id, *(func.string_agg(column, literal(b"", LargeBinary)) for column in sent))
    query = query.where(airing.c.stream_id.in_(stream_ids), airing.c.started_at >= _moment(first), airing.c.started_at < _moment(end))
    found = {}
    for name, *columns in connection.execute(query.group_by(airing.c.stream_id), execution_options={IN_BINARY: True}):
        ids, unix, seconds, airing_ids = (np.frombuffer(column, ">i8") for column in columns)
        order = np.lexsort((airing_ids, unix))
        found[name] = (ids[order], unix[order], seconds[order])
    return found


def _packed(columns: Columns, days: Sequence[int]) -> dict[int, bytes]:
    ids, unix, seconds = columns
    starts, ends = (np.searchsorted(unix, (np.asarray(days, np.int64) + more) * DAY_SECONDS).tolist() for more in (0, 1))
    made = {}
    for day, start, end in zip(days, starts, ends, strict=True):
        offsets = unix[start:end] - day * DAY_SECONDS
        small = (offsets.astype("<i4").tobytes(), seconds[start:end].astype("<i4").tobytes())
        made[day] = b"".join((ids[start:end].astype("<i8").tobytes(), *small))
    return made


def _moment(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC)
