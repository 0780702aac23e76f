"""The airings of whole months, stream by stream, as arrays: what an airplay report is made of.

A day that is settled is kept once more as one row of `airplay_day`, so that three months of a stream are 92 rows to read and not 36,800
(docs/benchmarks.md says what that gains). `settle` packs days as they become settled; a report that meets one that is not packed yet packs
it. A row's `airings` hold three columns one after the other, little endian, ordered by start, then airing id:

    0     8n bytes  int64   recording ids
    8n    4n bytes  int32   starts, in seconds since the day began (UTC)
    12n   4n bytes  int32   durations in seconds

The rows can be deleted at any time: they are made again. What must not live here: what recordings are called now (the API knows the
catalog), the forms of a report.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from account_store.clock import day_of
from account_store.database import IN_BINARY, POSTGRESQL, reading
from account_store.streams.tables import airing, airplay_day, stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Engine

    from account_store.clock import Clock

SETTLED_AFTER = timedelta(days=1)
"""After its end, a day is settled: what began on it has been written, but for what a monitor could not write for as long; such an airing
unpacks its day (airings.py)."""
DAY_SECONDS = 86_400
_BYTES = 16
"""Of one airing in `airplay_day`."""
_MOST_VALUES = 500
"""In one statement."""


class ReportedStream(NamedTuple):
    """A stream that was active in the time of a report."""

    stream_id: str
    name: str
    created_at: datetime
    stopped_at: datetime | None


class AiredAs(NamedTuple):
    """What a recording was called when it aired."""

    title: str
    artist: str
    isrc: str | None


@dataclass(frozen=True, slots=True)
class Airings:
    """Airings of one stream, one array each, ordered by start."""

    recording_ids: npt.NDArray[np.int64]
    started_unix: npt.NDArray[np.int64]
    """Seconds."""
    seconds: npt.NDArray[np.int32]
    """Durations; of an airing that goes on, so far."""


class Airplay:
    """The airings of one database, for reports."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Over an open database."""
        self._engine = engine
        self._clock = clock

    def streams(self, account_id: int, since: datetime, until: datetime) -> list[ReportedStream]:
        """The account's streams that were active at any moment from `since` to before `until`, oldest first."""
        query = select(*_REPORTED).where(stream.c.account_id == account_id, stream.c.created_at < until)
        query = query.where(stream.c.stopped_at.is_(None) | (stream.c.stopped_at >= since))
        with reading(self._engine) as connection:
            return [ReportedStream(*row) for row in connection.execute(query.order_by(stream.c.created_at, stream.c.stream_id))]

    def airings(self, one: ReportedStream, since: datetime, until: datetime) -> Airings:
        """What began on the stream from `since` to before `until`. Settled days that are not packed yet are packed on the way."""
        first, last = _day(since), _day(until - _ONE_SECOND)
        with reading(self._engine) as connection:
            wanted = airplay_day.c.day.between(_text(first), _text(last))
            packed = select(airplay_day.c.day, airplay_day.c.airings).where(airplay_day.c.stream_id == one.stream_id, wanted)
            rows = connection.execute(packed, execution_options={IN_BINARY: True}).all()
            days = {_number(day): bytes(content) for day, content in rows}
            missing = [day for day in range(max(first, _day(one.created_at)), min(last, _last_day(one)) + 1) if day not in days]
            if missing:
                made = _read_days(connection, one.stream_id, missing)
                settled_before = self._settled_before(connection, one.stream_id)
                days |= made
        if missing:
            self._pack(one.stream_id, {day: content for day, content in made.items() if day < settled_before})
        return _between(days, since, until)

    def aired_as(self, stream_id: str, recording_ids: Sequence[int]) -> dict[int, AiredAs]:
        """What recordings were called when they last aired on the stream; those that never did are absent."""
        found: dict[int, AiredAs] = {}
        columns = (airing.c.recording_id, airing.c.title, airing.c.artist, airing.c.isrc)
        with reading(self._engine) as connection:
            for start in range(0, len(recording_ids), _MOST_VALUES):
                some = airing.c.recording_id.in_(recording_ids[start : start + _MOST_VALUES])
                query = select(*columns).where(airing.c.stream_id == stream_id, some).order_by(airing.c.airing_id)
                found |= {row.recording_id: AiredAs(row.title, row.artist, row.isrc) for row in connection.execute(query)}
        return found

    def settle(self, most_days: int = 10_000) -> int:
        """Pack settled days that are not packed yet, at most about so many; how many were. Any number of processes may do so at once."""
        last_packed = select(func.max(airplay_day.c.day)).where(airplay_day.c.stream_id == stream.c.stream_id).scalar_subquery()
        with reading(self._engine) as connection:
            rows = connection.execute(select(*_REPORTED, last_packed.label("last_packed"))).all()
        settled_before, packed = self._clock() - SETTLED_AFTER, 0
        for *reported, last in rows:
            one = ReportedStream(*reported)
            day = _day(one.created_at) if last is None else _number(last) + 1
            end = min(_day(settled_before) - 1, _last_day(one))
            while day <= end and packed < most_days:
                until = min(day + _DAYS_AT_ONCE, end + 1)
                self.airings(one, _moment(day), _moment(until))
                packed += until - day
                day = until
        return packed

    def _settled_before(self, connection: Connection, stream_id: str) -> int:
        """The first day that may still change."""
        is_open = (airing.c.stream_id == stream_id) & airing.c.ended_at.is_(None)
        opened = connection.execute(select(airing.c.started_at).where(is_open)).scalars().all()
        return min([_day(self._clock() - SETTLED_AFTER), *map(_day, opened)])

    def _pack(self, stream_id: str, days: dict[int, bytes]) -> None:
        rows = [{"stream_id": stream_id, "day": _text(day), "airings": content} for day, content in days.items()]
        insert = postgresql.insert if self._engine.dialect.name == POSTGRESQL else sqlite.insert
        if rows:
            with self._engine.begin() as connection:
                connection.execute(insert(airplay_day).on_conflict_do_nothing(), rows)


_REPORTED = (stream.c.stream_id, stream.c.name, stream.c.created_at, stream.c.stopped_at)
_STARTED = (airing.c.started_ms + 500) // 1000
"""`started_at` as a number: quicker to read."""
_DAYS_AT_ONCE = 31
_ONE_SECOND = timedelta(seconds=1)
_EPOCH = date(1970, 1, 1)


def _read_days(connection: Connection, stream_id: str, days: Sequence[int]) -> dict[int, bytes]:
    """The days as they are packed, out of the table of airings; `days` ascend. Days between them are read, too, and left out."""
    in_time = (airing.c.started_at >= _moment(days[0])) & (airing.c.started_at < _moment(days[-1] + 1))
    query = select(airing.c.recording_id, _STARTED, airing.c.duration_seconds).where(airing.c.stream_id == stream_id, in_time)
    rows = connection.execute(query.order_by(airing.c.started_at, airing.c.airing_id))
    columns = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 3)
    starts = np.searchsorted(columns[:, 1], np.asarray(days) * DAY_SECONDS)
    ends = np.searchsorted(columns[:, 1], (np.asarray(days) + 1) * DAY_SECONDS)
    made = {}
    for day, start, end in zip(days, starts, ends, strict=True):
        ids, unix, seconds = columns[start:end].T
        made[day] = ids.astype("<i8").tobytes() + (unix - day * DAY_SECONDS).astype("<i4").tobytes() + seconds.astype("<i4").tobytes()
    return made


def _between(days: dict[int, bytes], since: datetime, until: datetime) -> Airings:
    ordered = sorted(days)
    contents = [(days[day], len(days[day]) // _BYTES) for day in ordered]
    ids = np.frombuffer(b"".join([content[: 8 * count] for content, count in contents]), "<i8")
    starts = np.frombuffer(b"".join([content[8 * count : 12 * count] for content, count in contents]), "<i4")
    lengths = np.frombuffer(b"".join([content[12 * count :] for content, count in contents]), "<i4")
    midnights = np.array(ordered, np.int64) * DAY_SECONDS
    started = starts + np.repeat(midnights, [count for _, count in contents])
    first, last = np.searchsorted(started, [int(since.timestamp()), int(until.timestamp())])
    return Airings(ids[first:last], started[first:last], lengths[first:last])


def _last_day(one: ReportedStream) -> int:
    return _day(one.stopped_at) if one.stopped_at is not None else sys.maxsize


def _day(moment: datetime) -> int:
    """Days since 1970, UTC."""
    return int(moment.timestamp()) // DAY_SECONDS


def _moment(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC)


def _text(day: int) -> str:
    return day_of(_moment(day))


def _number(text: str) -> int:
    return (date.fromisoformat(text) - _EPOCH).days
