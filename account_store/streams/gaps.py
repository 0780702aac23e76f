"""Gaps: times at which nobody listened to an active stream. Airings of these times are missing in reports.

One gap of a stream is open at a time. The caller's transaction holds the stream's row. Out of scope: details of a source's fault
(the stream's `last_error`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from account_store.streams.stream_tables import stream_gap

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

SOURCE, MONITOR = CAUSES = ("source", "monitor")
"""`source`: the stream was away, refused us, or sent no sound. `monitor`: no worker had it, or its worker died."""


def open_gap(connection: Connection, stream_id: str, cause: str, started_at: datetime, detail: str | None = None) -> None:
    """Begin a gap, unless one is open."""
    if _is_open(connection, stream_id):
        return
    row = {"stream_id": stream_id, "cause": cause, "started_at": started_at, "detail": detail}
    connection.execute(stream_gap.insert().values(row))


def close_gap(connection: Connection, stream_id: str, ended_at: datetime, *, drop: bool = False) -> None:
    """End the open gap, if any; with `drop` delete it, because it was too short."""
    is_open = (stream_gap.c.stream_id == stream_id) & stream_gap.c.ended_at.is_(None)
    if drop:
        connection.execute(stream_gap.delete().where(is_open))
    else:
        connection.execute(stream_gap.update().where(is_open).values(ended_at=ended_at))


def record_gap(connection: Connection, stream_id: str, cause: str, started_at: datetime, ended_at: datetime) -> None:
    """Record a gap that is over, unless a recorded one overlaps it."""
    overlaps = (stream_gap.c.started_at < ended_at) & (stream_gap.c.ended_at.is_(None) | (stream_gap.c.ended_at > started_at))
    known = select(stream_gap.c.gap_id).where(stream_gap.c.stream_id == stream_id, overlaps).limit(1)
    if connection.execute(known).first() is None:
        row = {"stream_id": stream_id, "cause": cause, "started_at": started_at, "ended_at": ended_at}
        connection.execute(stream_gap.insert().values(row))


def _is_open(connection: Connection, stream_id: str) -> bool:
    is_open = (stream_gap.c.stream_id == stream_id) & stream_gap.c.ended_at.is_(None)
    return connection.execute(select(stream_gap.c.gap_id).where(is_open)).first() is not None
