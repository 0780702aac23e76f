"""Reads airings of streams: the log of a stream, the tracks that are on air now, and the gaps.

    accounts.history.read_page(stream_id, limit=20)          # newest first
    accounts.history.find_on_air([stream_id, ...])           # the present airing of each stream

Titles are those of the catalog at the time of the airing; the API adds present ones. The caller has checked the owner (registry.py).
Out of scope: writing (airings.py, gaps.py), months of airings at once (report.py).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import literal, select, tuple_

from account_store.database import connect_for_reads
from account_store.streams.registry import RUNNING
from account_store.streams.stream_tables import airing, stream, stream_gap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Engine, Row

    from account_store.clock import Clock

STILL_HEARD_SECONDS = 30
"""An airing is on air until this time after it was heard. Windows of 12 s are matched every 5 s, so two may find nothing in between."""


@dataclass(frozen=True, slots=True)
class Airing:
    """One play of one recording. While `ended_at` is None, `duration_seconds` is its length so far."""

    airing_id: int
    stream_id: str
    recording_id: int
    isrc: str | None
    title: str
    artist: str
    track_seconds: int | None
    started_at: datetime
    ended_at: datetime | None
    duration_seconds: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without listening; open while `ended_at` is None."""

    started_at: datetime
    ended_at: datetime | None
    cause: str
    """`source`: the stream was away; `monitor`: no worker listened."""
    detail: str | None


class Place(NamedTuple):
    """The end of a page of airings."""

    started_at: datetime
    airing_id: int


_COLUMNS = [airing.c[field.name] for field in fields(Airing)]
_GAP_COLUMNS = [stream_gap.c[field.name] for field in fields(Gap)]


class History:
    """Reads the airings of one database."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Read an open database."""
        self._engine = engine
        self._clock = clock

    def read_page(
        self,
        stream_id: str,
        *,
        limit: int = 100,
        behind: Place | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Airing]:
        """Return at most `limit` airings, newest first, after the place `behind`, that began from `since` to before `until`."""
        query = select(*_COLUMNS).where(airing.c.stream_id == stream_id)
        query = query.order_by(airing.c.started_at.desc(), airing.c.airing_id.desc()).limit(limit)
        if behind is not None:
            # One comparison of both columns: the index `airing_by_time` goes straight to the place, however deep the page is.
            query = query.where(tuple_(airing.c.started_at, airing.c.airing_id) < tuple_(*_bind_place(behind)))
        if since is not None:
            query = query.where(airing.c.started_at >= since)
        if until is not None:
            query = query.where(airing.c.started_at < until)
        with connect_for_reads(self._engine) as connection:
            return [_build_airing(row) for row in connection.execute(query)]

    def find_on_air(self, stream_ids: Sequence[str]) -> dict[str, Airing]:
        """Return the present airing by stream. A stream that plays nothing known, or that is not running, is absent."""
        heard_since = int(self._clock().timestamp() * 1000) - STILL_HEARD_SECONDS * 1000
        query = select(*_COLUMNS).join(stream, stream.c.stream_id == airing.c.stream_id)
        query = query.where(airing.c.ended_at.is_(None), airing.c.heard_ms >= heard_since, stream.c.runtime_status == RUNNING)
        with connect_for_reads(self._engine) as connection:
            rows = [connection.execute(query.where(airing.c.stream_id.in_(some))).all() for some in _split_values(stream_ids)]
        return {row.stream_id: _build_airing(row) for part in rows for row in part}

    def list_gaps(self, stream_id: str, since: datetime, until: datetime) -> list[Gap]:
        """Return the gaps that overlap the time from `since` to before `until`, oldest first."""
        query = select(*_GAP_COLUMNS).where(stream_gap.c.stream_id == stream_id, stream_gap.c.started_at < until)
        query = query.where(stream_gap.c.ended_at.is_(None) | (stream_gap.c.ended_at > since)).order_by(stream_gap.c.started_at)
        with connect_for_reads(self._engine) as connection:
            return [Gap(**row._mapping) for row in connection.execute(query)]  # noqa: SLF001 -- the public name for a row as a mapping


_MOST_VALUES = 500
"""Values in one statement."""


def _split_values(values: Sequence[str]) -> list[Sequence[str]]:
    return [values[start : start + _MOST_VALUES] for start in range(0, len(values), _MOST_VALUES)]


def _bind_place(place: Place) -> tuple[Any, Any]:
    """Return the values with their columns' types. A bare tuple has none, and SQLite would get datetimes in another format."""
    return literal(place.started_at, airing.c.started_at.type), literal(place.airing_id, airing.c.airing_id.type)


def _build_airing(row: Row[Any]) -> Airing:
    return Airing(**row._mapping)  # noqa: SLF001 -- the public name for a row as a mapping
