"""Segments: what a stream sent while nothing known played. They are written as they are heard, and read without the airings.

    segments = SegmentLog(); segments.note(TALK, 0, 5000, post)          by the worker, for each few seconds
    accounts.segments.list_segments(stream_id, since, until)             oldest first

A track is recognised seconds after it began, and its beginning was noted as unknown music by then. Readers therefore cut the airings out.
Out of scope: telling talk from music (`stream_monitor/sound_kinds.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from account_store.database import connect_for_reads, get_new_id
from account_store.streams.stream_tables import airing, stream_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Connection, Engine

    Post = Callable[..., None]
    Span = tuple[int, int]

TALK, MUSIC_UNKNOWN, SILENCE = KINDS = ("talk", "music_unknown", "silence")
_JOINED_MS: Final = 2_500
"""Segments of one kind that are this near are one: another worker or connection went on."""
_SHORTEST_MS: Final = 2_000
"""Shorter rests beside airings are the seconds by which starts and ends are uncertain."""
MOST_SEGMENTS: Final = 2_000
"""Rows that one answer may read: a day of talk and music in turns every 40 s."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A time of one kind, Unix milliseconds."""

    kind: str
    started_ms: int
    ended_ms: int


@dataclass(eq=False)
class _Row:
    kind: str
    started_ms: int
    ended_ms: int
    segment_id: int | None = None

    def write(self, connection: Connection, stream_id: str) -> None:
        """Make the row, or extend it."""
        if self.segment_id is not None:
            # The row is gone if its transaction was undone, and another stream's row may have its id by now.
            columns = stream_segment.c
            mine = (columns.segment_id == self.segment_id) & (columns.stream_id == stream_id) & (columns.started_ms == self.started_ms)
            if connection.execute(stream_segment.update().where(mine).values(ended_ms=self.ended_ms)).rowcount:
                return
        values = {"stream_id": stream_id, "kind": self.kind, "started_ms": self.started_ms, "ended_ms": self.ended_ms}
        self.segment_id = get_new_id(connection.execute(stream_segment.insert().values(values)))


class SegmentLog:
    """Joins what is heard to segments."""

    def __init__(self) -> None:
        """Begin without one."""
        self._row: _Row | None = None

    def note(self, kind: str, started_ms: int, ended_ms: int, post: Post) -> None:
        """Note sound of a kind; `post` takes the write, and the object under which a later write replaces it."""
        row = self._row
        if row is None or row.kind != kind or not 0 <= started_ms - row.ended_ms <= _JOINED_MS:
            row = self._row = _Row(kind, started_ms, ended_ms)
        row.ended_ms = ended_ms
        post(row.write, replaces=row)


class Segments:
    """Reads the segments of one database."""

    def __init__(self, engine: Engine) -> None:
        """Read an open database."""
        self._engine = engine

    def list_segments(self, stream_id: str, since: datetime | None, until: datetime | None) -> list[Segment]:
        """Return the segments from `since` to `until` (None: unbounded), oldest first, without airings; the latest MOST_SEGMENTS."""
        low = None if since is None else round(since.timestamp() * 1000)
        high = None if until is None else round(until.timestamp() * 1000)
        columns = (stream_segment.c.kind, stream_segment.c.started_ms, stream_segment.c.ended_ms)
        query = select(*columns).where(stream_segment.c.stream_id == stream_id)
        airings = select(airing.c.started_ms, airing.c.heard_ms).where(airing.c.stream_id == stream_id)
        if low is not None:
            query = query.where(stream_segment.c.ended_ms > low)
            airings = airings.where(airing.c.heard_ms > low)
        if high is not None:
            query = query.where(stream_segment.c.started_ms < high)
            airings = airings.where(airing.c.started_ms < high)
        query = query.order_by(stream_segment.c.started_ms.desc()).limit(MOST_SEGMENTS)
        with connect_for_reads(self._engine) as connection:
            found = [Segment(*row) for row in reversed(connection.execute(query).all())]
            if not found:
                return []
            played = [(row.started_ms, row.heard_ms) for row in connection.execute(airings.where(airing.c.heard_ms > found[0].started_ms))]
        found = [Segment(one.kind, max(one.started_ms, low or 0), min(one.ended_ms, high or one.ended_ms)) for one in found]
        return cut_airings(found, sorted(played))


def cut_airings(segments: Iterable[Segment], played: Sequence[Span]) -> list[Segment]:
    """Return the parts of segments outside the spans `played` (both by time), those of one kind joined, short rests left out."""
    found: list[Segment] = []
    passed = 0
    for one in segments:
        at = max(one.started_ms, found[-1].ended_ms) if found else one.started_ms
        # Spans that ended before this segment are behind all later ones as well.
        while passed < len(played) and played[passed][1] <= at:
            passed += 1
        for start, end in [*(span for span in played[passed:] if span[0] < one.ended_ms), (one.ended_ms, one.ended_ms)]:
            if min(start, one.ended_ms) - at >= _SHORTEST_MS:
                _add(found, Segment(one.kind, at, min(start, one.ended_ms)))
            at = max(at, end)
    return found


def _add(found: list[Segment], one: Segment) -> None:
    if found and found[-1].kind == one.kind and one.started_ms - found[-1].ended_ms <= _JOINED_MS:
        one = Segment(one.kind, found.pop().started_ms, one.ended_ms)
    found.append(one)


def convert_time(milliseconds: int) -> datetime:
    """Return the nearest second."""
    return datetime.fromtimestamp((milliseconds + 500) // 1000, UTC)
