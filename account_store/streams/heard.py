"""In which calendar months a stream was heard: what a stream-month is billed by. What must not live here: when sound counts as heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from account_store.clock import beginning_of_month, end_of_month
from account_store.streams.tables import airing, stream, stream_heard

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


def note_heard(connection: Connection, stream_id: str, month: str) -> None:
    """A second of the stream's sound was received in the month (`2026-11`). The caller's transaction holds the stream's row."""
    row = {"stream_id": stream_id, "month": month}
    known = select(stream_heard.c.month).where(stream_heard.c.stream_id == stream_id, stream_heard.c.month == month)
    if connection.execute(known).first() is None:
        connection.execute(stream_heard.insert().values(row))


def was_heard_in(month: str) -> ColumnElement[bool]:
    """A condition on `stream`: it was heard in the month, or an airing of it began then (nobody heard it otherwise)."""
    noted = select(stream_heard.c.month).where(stream_heard.c.stream_id == stream.c.stream_id, stream_heard.c.month == month)
    began = (airing.c.started_at >= beginning_of_month(month)) & (airing.c.started_at < end_of_month(month))
    aired = select(airing.c.airing_id).where(airing.c.stream_id == stream.c.stream_id, began)
    return or_(noted.exists(), aired.exists())
