"""The runtime state of a stream, written by the worker that monitors it: status, error, audio format. The caller holds the lease.

Out of scope: airings, gaps, leases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.streams import stream_events
from account_store.streams.stream_tables import stream

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class State:
    """The state of monitoring."""

    runtime_status: str
    """One of registry.RUNTIME_STATUSES."""
    error: str | None = None
    """The fault and its remedy. None keeps the last one, which stays readable after the fault is gone."""
    audio_format: str | None = None
    """None keeps the last one."""


def update_runtime(connection: Connection, stream_id: str, state: State, now: datetime) -> None:
    """Write the state; emit an event when `runtime_status` changes."""
    before = connection.execute(select(stream.c.runtime_status).where(stream.c.stream_id == stream_id)).scalar_one()
    values: dict[str, Any] = {"runtime_status": state.runtime_status}
    if state.error is not None:
        values |= {"last_error": state.error, "last_error_at": now}
    if state.audio_format is not None:
        values["audio_format"] = state.audio_format
    connection.execute(stream.update().where(stream.c.stream_id == stream_id).values(values))
    # A repeated status is written for its error only: receivers of webhooks hear of changes.
    if before != state.runtime_status:
        stream_events.emit_status_changed(connection, stream_id, before, now)
