"""The calendar months in which a stream was heard: the basis of billing. Out of scope: when sound counts as heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from account_store.clock import compute_month_end, compute_month_start
from account_store.streams.stream_tables import airing, stream, stream_heard

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


def record_heard_month(connection: Connection, stream_id: str, month: str) -> None:
    """Record that a second of sound was received in `month` (`2026-11`). The caller's transaction holds the stream's row."""
    row = {"stream_id": stream_id, "month": month}
    known = select(stream_heard.c.month).where(stream_heard.c.stream_id == stream_id, stream_heard.c.month == month)
    # The lock on the stream keeps others from inserting between the look and the insert.
    if connection.execute(known).first() is None:
        connection.execute(stream_heard.insert().values(row))


def is_heard_in(month: str) -> ColumnElement[bool]:
    """Return a condition on `stream`: it was heard in the month, or one of its airings began then (it was heard then, too)."""
    recorded = select(stream_heard.c.month).where(stream_heard.c.stream_id == stream.c.stream_id, stream_heard.c.month == month)
    is_in_month = (airing.c.started_at >= compute_month_start(month)) & (airing.c.started_at < compute_month_end(month))
    airings = select(airing.c.airing_id).where(airing.c.stream_id == stream.c.stream_id, is_in_month)
    return or_(recorded.exists(), airings.exists())
