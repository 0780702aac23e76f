"""Writes airings: one row for one play of one recording, although several workers may hear it several times.

    start ... extend ... extend ... close        one airing of a stream is open at a time (an index of the database holds it)

Two rows never stand for one airing: `start` continues the row of the same recording whose anchor is within SAME_AIRING_MS, open or ended.
The caller's transaction holds the stream's row (leases.hold, or the registry's lock), so two workers never read and write at once.
Out of scope: the judgement of detections (`stream_monitor`), reading for reports (history.py, report.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from account_store.clock import format_day
from account_store.database import get_new_id
from account_store.streams import stream_events
from account_store.streams.stream_tables import airing, airplay_day, stream

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

SAME_AIRING_MS = 3000
"""Anchors of one airing differ by decoding, buffering and clocks; anchors of two plays by the time in between."""


@dataclass(frozen=True, slots=True)
class PlayedTrack:
    """The catalog's names of a recording at the time of its airing. They stay when the recording changes or goes."""

    recording_id: int
    title: str
    artist: str
    isrc: str | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Hearing:
    """One play so far. Times are Unix milliseconds on the air."""

    anchor_ms: int
    """Air time of the recording's first sample, played or not."""
    started_ms: int
    heard_ms: int
    """End of the last detection."""
    confidence: float
    """The best of its detections, .5 to 1."""
    detection_count: int


@dataclass(frozen=True, slots=True)
class Airing:
    """A row, for the worker that continues it."""

    airing_id: int
    stream_id: str
    track: PlayedTrack
    hearing: Hearing
    is_open: bool


def start(connection: Connection, stream_id: str, track: PlayedTrack, hearing: Hearing) -> int:
    """Return the id of this airing's row: a new row, announced as `stream.track_started`, or the row that it continues.

    Another open airing of the stream ends at its last detection.
    """
    same = _find_same(connection, stream_id, track.recording_id, hearing.anchor_ms)
    # Before the insert: the index `airing_open` allows one open airing of a stream.
    close_open(connection, stream_id, but=same.airing_id if same else None)
    if same is not None:
        # The first anchor stays. If each find moved it, it could drift out of SAME_AIRING_MS step by step.
        extend(connection, same.airing_id, replace(hearing, anchor_ms=same.anchor_ms))
        return int(same.airing_id)
    columns = {"stream_id": stream_id, "recording_id": track.recording_id, "title": track.title, "artist": track.artist, "isrc": track.isrc}
    values = {**columns, "track_seconds": track.seconds, "started_at": _convert_time(hearing.started_ms), **_build_columns(hearing)}
    airing_id = get_new_id(connection.execute(airing.insert().values(values)))
    _delete_packed_day(connection, stream_id, _convert_time(hearing.started_ms))
    stream_events.emit_track_started(connection, _read_row(connection, airing_id))
    return airing_id


def extend(connection: Connection, airing_id: int, hearing: Hearing) -> None:
    """Extend an airing. An airing that had ended (a long talk-over) reopens; its start is not announced twice."""
    row = _read_row(connection, airing_id)
    # A worker that took the stream over may know less than the row: what was heard never shrinks here.
    heard_ms = max(hearing.heard_ms, row.heard_ms)
    confidence = max(hearing.confidence, row.confidence)
    values = {"anchor_ms": hearing.anchor_ms, "heard_ms": heard_ms, "confidence": confidence, "ended_at": None}
    values |= {
        "duration_seconds": _round_seconds(heard_ms - row.started_ms),
        "detection_count": max(hearing.detection_count, row.detection_count),
    }
    connection.execute(airing.update().where(airing.c.airing_id == airing_id).values(values))
    recognized = {"last_recognized_at": _convert_time(heard_ms)}
    connection.execute(stream.update().where(stream.c.stream_id == row.stream_id).values(recognized))


def close_open(connection: Connection, stream_id: str, *, but: int | None = None) -> None:
    """End the stream's open airing, if any, at its last detection. `but` names an airing to leave open."""
    is_open = (airing.c.stream_id == stream_id) & airing.c.ended_at.is_(None)
    row = connection.execute(select(airing).where(is_open)).one_or_none()
    if row is not None and row.airing_id != but:
        close(connection, row.airing_id, row.heard_ms)


def close(connection: Connection, airing_id: int, ended_ms: int) -> None:
    """End an airing and announce `stream.track_ended`, once more when another end was written before."""
    row = _read_row(connection, airing_id)
    # Presumed sound may be taken back, but no airing ends before it began.
    end = max(row.started_ms, ended_ms)
    duration = _round_seconds(end - row.started_ms)
    # The end is the start plus the rounded duration, so that the reported columns agree.
    values = {"heard_ms": end, "duration_seconds": duration, "ended_at": _convert_time(row.started_ms + duration * 1000)}
    # The same end again changes nothing and must not announce the end twice.
    if row.ended_at is not None and row.duration_seconds == duration:
        return
    connection.execute(airing.update().where(airing.c.airing_id == airing_id).values(values))
    _delete_packed_day(connection, row.stream_id, row.started_at)
    stream_events.emit_track_ended(connection, _read_row(connection, airing_id))


def move(connection: Connection, airing_id: int, hearing: Hearing) -> None:
    """Move an airing to other times, because the clock was set back while it played."""
    row, started_at = _read_row(connection, airing_id), _convert_time(hearing.started_ms)
    values = {"started_at": started_at, **_build_columns(hearing)}
    connection.execute(airing.update().where(airing.c.airing_id == airing_id).values(values))
    for moment in (row.started_at, started_at):
        _delete_packed_day(connection, row.stream_id, moment)


def has_row(connection: Connection, airing_id: int, stream_id: str, recording_id: int) -> bool:
    """Return whether the row of that id is an airing of the recording on the stream: the id of an undone insert may be another's by now."""
    is_it = (airing.c.airing_id == airing_id) & (airing.c.stream_id == stream_id) & (airing.c.recording_id == recording_id)
    return connection.execute(select(airing.c.airing_id).where(is_it)).first() is not None


def _delete_packed_day(connection: Connection, stream_id: str, started_at: datetime) -> None:
    """Delete the packed day, so that reports read it again: a monitor may write late, after the database was away for long."""
    is_its = (airplay_day.c.stream_id == stream_id) & (airplay_day.c.day == format_day(started_at))
    connection.execute(airplay_day.delete().where(is_its))


def find_latest(connection: Connection, stream_id: str) -> Airing | None:
    """Return the stream's last airing, open or ended, for the worker that takes over; None when there is none."""
    query = select(airing).where(airing.c.stream_id == stream_id).order_by(airing.c.started_at.desc(), airing.c.airing_id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    track = PlayedTrack(row.recording_id, row.title, row.artist, row.isrc, row.track_seconds)
    hearing = Hearing(row.anchor_ms, row.started_ms, row.heard_ms, row.confidence, row.detection_count)
    return Airing(row.airing_id, stream_id, track, hearing, row.ended_at is None)


def _find_same(connection: Connection, stream_id: str, recording_id: int, anchor_ms: int) -> Row[Any] | None:
    is_theirs = (airing.c.stream_id == stream_id) & (airing.c.recording_id == recording_id)
    is_near = airing.c.anchor_ms.between(anchor_ms - SAME_AIRING_MS, anchor_ms + SAME_AIRING_MS)
    return connection.execute(select(airing).where(is_theirs & is_near).order_by(airing.c.airing_id.desc()).limit(1)).one_or_none()


def _read_row(connection: Connection, airing_id: int) -> Row[Any]:
    return connection.execute(select(airing).where(airing.c.airing_id == airing_id)).one()


def _build_columns(hearing: Hearing) -> dict[str, Any]:
    duration = _round_seconds(hearing.heard_ms - hearing.started_ms)
    numbers = {"anchor_ms": hearing.anchor_ms, "started_ms": hearing.started_ms, "heard_ms": hearing.heard_ms}
    return {**numbers, "duration_seconds": duration, "confidence": hearing.confidence, "detection_count": hearing.detection_count}


def _round_seconds(milliseconds: int) -> int:
    return max(0, (milliseconds + 500) // 1000)


def _convert_time(milliseconds: int) -> datetime:
    """Round to the nearest second: columns of times hold whole seconds."""
    return datetime.fromtimestamp(_round_seconds(milliseconds), UTC)
