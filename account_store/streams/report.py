"""The airings of whole months, stream by stream, as arrays: the data of an airplay report.

A settled day is stored once more as one row of `airplay_day`: three months of a stream are 92 rows to read instead of 36,800
(docs/benchmarks/airplay_report.md has the gain). `settle` packs days in the background. A report that needs an unpacked day reads its
airings (day_packing.py) and sets `is_behind`. `airings` of a row holds three columns one after the other, little endian, ordered by start,
then airing id:

    0     8n bytes  int64   recording ids
    8n    4n bytes  int32   starts, in seconds since the day began (UTC)
    12n   4n bytes  int32   durations in seconds

The rows can be deleted at any time: they are rebuilt. Out of scope: present names of recordings (the API knows the catalog), the
formats of a report.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from account_store.clock import format_day
from account_store.database import IN_BINARY, POSTGRESQL, connect_for_reads
from account_store.streams import day_packing
from account_store.streams.day_packing import DAY_SECONDS
from account_store.streams.stream_tables import airing, airplay_day, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    from sqlalchemy import ColumnElement, Engine

    from account_store.clock import Clock

SETTLED_AFTER = timedelta(days=1)
"""Time after its end at which a day is settled: its airings are written then. A later airing unpacks its day (airings.py)."""
_BYTES = 16
"""Bytes of one airing in `airplay_day`."""
_MOST_VALUES = 500
"""Values in one statement."""


class ReportedStream(NamedTuple):
    """A stream that was active during a report's time."""

    stream_id: str
    name: str
    created_at: datetime
    stopped_at: datetime | None


class AiredNames(NamedTuple):
    """The names of a recording at the time of its airing."""

    title: str
    artist: str
    isrc: str | None


@dataclass(frozen=True, slots=True)
class Airings:
    """The airings of one stream as arrays, ordered by start."""

    recording_ids: npt.NDArray[np.int64]
    started_unix: npt.NDArray[np.int64]
    """Seconds."""
    seconds: npt.NDArray[np.int32]
    """Durations; of an open airing, its length so far."""


class Airplay:
    """Reads the airings of one database for reports."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Read an open database."""
        self._engine = engine
        self._clock = clock
        self.is_behind = threading.Event()
        """Set when a report had to read settled days that are not packed: `settle` has work to do."""

    def list_streams(self, account_id: int, since: datetime, until: datetime) -> list[ReportedStream]:
        """Return the account's streams that were active at any moment from `since` to before `until`, oldest first."""
        return self._find_active(since, until, stream.c.account_id == account_id)

    def iterate_recordings(self, days: int) -> Iterator[npt.NDArray[np.int64]]:
        """Yield for each stream of all accounts the recordings of the last `days`, each once."""
        until = self._clock()
        since = until - timedelta(days=days)
        for airings in self.iterate_airings(self._find_active(since, until), since, until):
            yield np.unique(airings.recording_ids)

    def _find_active(self, since: datetime, until: datetime, *conditions: ColumnElement[bool]) -> list[ReportedStream]:
        # A stream that was registered just after `until` may have an airing that began just before it.
        is_new = stream.c.created_at < until + _EARLIEST_START
        has_aired = select(airing.c.airing_id).where(airing.c.stream_id == stream.c.stream_id, airing.c.started_at < until).exists()
        query = select(*_REPORTED).where((stream.c.created_at < until) | (is_new & has_aired), *conditions)
        query = query.where(stream.c.stopped_at.is_(None) | (stream.c.stopped_at >= since))
        with connect_for_reads(self._engine) as connection:
            return [ReportedStream(*row) for row in connection.execute(query.order_by(stream.c.created_at, stream.c.stream_id))]

    def iterate_airings(self, streams: Sequence[ReportedStream], since: datetime, until: datetime) -> Iterator[Airings]:
        """Yield the airings of each stream that began from `since` to before `until`. No connection is open between two streams."""
        # `until` is exclusive: at midnight, its day must not be read.
        first, last = _count_days(since), _count_days(until - _ONE_SECOND)
        for start in range(0, len(streams), _TOGETHER):
            some = streams[start : start + _TOGETHER]
            spans = {one.stream_id: (max(first, _get_first_day(one)), min(last, _get_last_day(one))) for one in some}
            days = self._read_packed_days(spans)
            for name in spans:
                # Popped: the days of a stream are freed when its reader is done, not with the last of the group.
                yield _cut_window(days.pop(name), since, until)

    def find_aired_names(self, stream_id: str, recording_ids: Sequence[int]) -> dict[int, AiredNames]:
        """Return the names of recordings when they last aired on the stream; recordings that never did are absent."""
        found: dict[int, AiredNames] = {}
        columns = (airing.c.recording_id, airing.c.title, airing.c.artist, airing.c.isrc)
        with connect_for_reads(self._engine) as connection:
            for start in range(0, len(recording_ids), _MOST_VALUES):
                some = airing.c.recording_id.in_(recording_ids[start : start + _MOST_VALUES])
                # In ascending order: the names of the last airing overwrite earlier ones.
                query = select(*columns).where(airing.c.stream_id == stream_id, some).order_by(airing.c.airing_id)
                found |= {row.recording_id: AiredNames(row.title, row.artist, row.isrc) for row in connection.execute(query)}
        return found

    def settle(self, most_days: int = 10_000) -> int:
        """Pack settled days, at most `most_days`; return their number. Any number of processes may call it at once."""
        # Cleared first: a report that falls behind during this run sets it again.
        self.is_behind.clear()
        packed_days = select(func.count()).where(airplay_day.c.stream_id == stream.c.stream_id).scalar_subquery()
        with connect_for_reads(self._engine) as connection:
            rows = connection.execute(select(*_REPORTED, packed_days)).all()
        last_settled, packed = _count_days(self._clock() - SETTLED_AFTER) - 1, 0
        behind = {}
        for *reported, count in rows:
            one = ReportedStream(*reported)
            first, last = _get_first_day(one), min(last_settled, _get_last_day(one))
            # A count suffices here; `_pack` finds out which days are missing.
            if count <= last - first:
                behind[one.stream_id] = (first, last)
        names = sorted(behind)
        for start in range(0, len(names), _TOGETHER):
            if packed < most_days:
                packed += self._pack({name: behind[name] for name in names[start : start + _TOGETHER]}, most_days - packed)
        return packed

    def _read_packed_days(self, spans: dict[str, tuple[int, int]]) -> dict[str, dict[int, bytes]]:
        """Return by stream the packed days of those spans (both ends included); pack unpacked ones in memory."""
        first, last = min(one for one, _ in spans.values()), max(one for _, one in spans.values())
        query = select(airplay_day).where(airplay_day.c.stream_id.in_(spans), airplay_day.c.day.between(_format(first), _format(last)))
        days: dict[str, dict[int, bytes]] = {name: {} for name in spans}
        with connect_for_reads(self._engine) as connection:
            for name, day, content in connection.execute(query, execution_options={IN_BINARY: True}):
                days[name][_parse_day(day)] = bytes(content)
        absent = {name: [day for day in range(low, high + 1) if day not in days[name]] for name, (low, high) in spans.items()}
        missing = {name: those for name, those in absent.items() if those}
        if not missing:
            return days
        # Days of the last SETTLED_AFTER are never packed, so only older ones mean that packing is behind.
        if min(those[0] for those in missing.values()) < _count_days(self._clock() - SETTLED_AFTER):
            self.is_behind.set()
        with day_packing.open_bulk_connection(self._engine) as connection:
            for name, packed in day_packing.read_days(connection, missing).items():
                days[name] |= packed
        return days

    def _pack(self, spans: dict[str, tuple[int, int]], most_days: int) -> int:
        """Pack days under the streams' locks: an airing that waits for the lock unpacks its day afterwards (airings.py)."""
        is_one = stream.c.stream_id.in_(spans)
        open_airings = select(airing.c.stream_id, airing.c.started_at).where(airing.c.stream_id.in_(spans), airing.c.ended_at.is_(None))
        known = select(airplay_day.c.stream_id, airplay_day.c.day).where(airplay_day.c.stream_id.in_(spans))
        with self._engine.begin() as connection:
            # In ascending order, so that two processes that pack never wait for each other in a circle.
            connection.execute(select(stream.c.stream_id).where(is_one).order_by(stream.c.stream_id).with_for_update())
            # A day with an airing that goes on is not settled, and neither is a later one.
            open_days = {name: _count_days(moment) for name, moment in connection.execute(open_airings)}
            packed = {(name, _parse_day(day)) for name, day in connection.execute(known)}
            days = {
                (day, name) for name, (first, last) in spans.items() for day in range(first, min(last + 1, open_days.get(name, last + 1)))
            }
            missing: dict[str, list[int]] = {}
            # Oldest days of all streams first: airings of one time are together in the table, whatever their stream.
            chosen = sorted(one for one in days if one[::-1] not in packed)[:most_days]
            for day, name in chosen:
                missing.setdefault(name, []).append(day)
            contents = day_packing.read_days(connection, missing) if missing else {}
            rows = [{"stream_id": name, "day": _format(day), "airings": contents[name][day]} for day, name in chosen]
            if rows:
                insert = postgresql.insert if connection.dialect.name == POSTGRESQL else sqlite.insert
                connection.execute(insert(airplay_day).on_conflict_do_nothing(), rows)
        return len(rows)


_REPORTED = (stream.c.stream_id, stream.c.name, stream.c.created_at, stream.c.stopped_at)
_TOGETHER = 16
"""Streams read together: airings of one time are together in the table. Some 10 MB for three months of unpacked days."""
_ONE_SECOND = timedelta(seconds=1)
_EARLIEST_START = timedelta(seconds=16)
"""Time before the registration of a stream at which an airing may begin (tracker.py: 15 s), rounded up."""
_EPOCH = date(1970, 1, 1)


def _cut_window(days: dict[int, bytes], since: datetime, until: datetime) -> Airings:
    ordered = sorted(days)
    # A column of all days is joined before it becomes an array: three arrays for a stream, not three for each day.
    contents = [(days[day], len(days[day]) // _BYTES) for day in ordered]
    ids = np.frombuffer(b"".join([content[: 8 * count] for content, count in contents]), "<i8")
    starts = np.frombuffer(b"".join([content[8 * count : 12 * count] for content, count in contents]), "<i4")
    lengths = np.frombuffer(b"".join([content[12 * count :] for content, count in contents]), "<i4")
    midnights = np.array(ordered, np.int64) * DAY_SECONDS
    started = starts + np.repeat(midnights, [count for _, count in contents])
    first, last = np.searchsorted(started, [int(since.timestamp()), int(until.timestamp())])
    return Airings(ids[first:last], started[first:last], lengths[first:last])


def _get_first_day(one: ReportedStream) -> int:
    return _count_days(one.created_at - _EARLIEST_START)


def _get_last_day(one: ReportedStream) -> int:
    return _count_days(one.stopped_at) if one.stopped_at is not None else sys.maxsize


def _count_days(moment: datetime) -> int:
    """Return the days since 1970, UTC."""
    return int(moment.timestamp()) // DAY_SECONDS


def _convert_day(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC)


def _format(day: int) -> str:
    return format_day(_convert_day(day))


def _parse_day(text: str) -> int:
    return (date.fromisoformat(text) - _EPOCH).days
