"""The events of streams: payloads of `stream.track_started`, `stream.track_ended` and `stream.status_changed`.

Each goes into the outbox in the transaction that changes its row: none is lost, and none reports a change that was rolled back. An airing
that ended and then continues (a long talk-over) is announced as ended once more: the later event with the same `airing_id` replaces the
earlier one. Out of scope: delivery (webhook_delivery).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.clock import format_rfc3339
from account_store.streams.stream_tables import stream
from account_store.webhooks import outbox
from account_store.webhooks.event_types import STATUS_CHANGED, TRACK_ENDED, TRACK_STARTED

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, Row


def emit_track_started(connection: Connection, airing: Row[Any]) -> None:
    """Emit the event of a new row of `airing`."""
    _emit(connection, airing.stream_id, TRACK_STARTED, _build_airing(airing), airing.started_at)


def emit_track_ended(connection: Connection, airing: Row[Any]) -> None:
    """Emit the event of a row of `airing` that has ended."""
    payload = {**_build_airing(airing), "ended_at": format_rfc3339(airing.ended_at), "duration_seconds": airing.duration_seconds}
    _emit(connection, airing.stream_id, TRACK_ENDED, payload, airing.ended_at)


def emit_status_changed(connection: Connection, stream_id: str, before: str, changed_at: datetime) -> None:
    """Emit the change of a stream's `runtime_status` from `before`."""
    row = connection.execute(select(stream).where(stream.c.stream_id == stream_id)).one()
    payload = {"runtime_status": row.runtime_status, "previous_runtime_status": before, "status": row.status, "last_error": row.last_error}
    _emit(connection, stream_id, STATUS_CHANGED, payload, changed_at)


def _build_airing(row: Row[Any]) -> dict[str, Any]:
    track = {"id": str(row.recording_id), "title": row.title, "isrc": row.isrc, "artist": row.artist, "duration": row.track_seconds}
    return {"airing_id": str(row.airing_id), "track": track, "started_at": format_rfc3339(row.started_at), "confidence": row.confidence}


def _emit(connection: Connection, stream_id: str, event_type: str, payload: dict[str, Any], occurred_at: datetime) -> None:
    row = connection.execute(select(stream.c.account_id, stream.c.name).where(stream.c.stream_id == stream_id)).one()
    outbox.emit(connection, row.account_id, event_type, {"stream": {"id": stream_id, "name": row.name}, **payload}, occurred_at=occurred_at)
