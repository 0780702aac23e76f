"""One stream's part of a report, as columns: who was played how often, and every airing.

What must not live here: how it is written (as_json.py and its neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalog_api.airplay.columns import distinct
from catalog_api.airplay.current import Named, Names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    import numpy.typing as npt

    from account_store.streams.history import Gap
    from account_store.streams.report import ReportedStream
    from catalog_api.service import Service


_NAMES = Names()
"""Of the one thread that makes reports (sending.py)."""


@dataclass(frozen=True, slots=True)
class Window:
    """Whole days of a time zone, the last one included."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> int:
        """How many there are."""
        return (self.last - self.first).days + 1

    @property
    def since(self) -> datetime:
        """When the first day begins."""
        return datetime.combine(self.first, time(), self.zone).astimezone(UTC)

    @property
    def until(self) -> datetime:
        """When the day after the last begins."""
        return datetime.combine(self.last + timedelta(days=1), time(), self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A stream's airings. `track_of[i]`, `started_unix[i]` (seconds) and `seconds[i]` are the i-th airing's; ordered by start.

    `tracks` are those that aired, most played first, then by id; `play_counts[j]` belongs to `tracks[j]`.
    """

    stream: ReportedStream
    tracks: list[Named]
    play_counts: npt.NDArray[np.int64]
    track_of: npt.NDArray[np.int64]
    started_unix: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.int32]
    gaps: list[Gap]


def sheets(service: Service, account_id: int, window: Window) -> Iterator[Sheet]:
    """One for each stream of the account that was active within the window, oldest stream first. Blocks; holds nothing between two."""
    accounts, since, until = service.accounts, window.since, window.until
    known: dict[int, Named] = {}
    for stream in accounts.airplay.streams(account_id, since, until):
        airings = accounts.airplay.airings(stream, since, until)
        ids, place = distinct(airings.recording_ids)
        _learn(service, stream, ids.tolist(), known)
        tracks, counts, track_of = _ranked([known[number] for number in ids.tolist()], place)
        gaps = accounts.history.gaps(stream.stream_id, since, until)
        yield Sheet(stream, tracks, counts, track_of, airings.started_unix, airings.seconds, gaps)


def _learn(service: Service, stream: ReportedStream, ids: list[int], known: dict[int, Named]) -> None:
    unknown = [number for number in ids if number not in known]
    if unknown:
        with service.live.hold() as catalog:
            known |= _NAMES.of(catalog, unknown)
    gone = [number for number in unknown if number not in known]
    if gone:
        as_aired = service.accounts.airplay.aired_as(stream.stream_id, gone)
        known |= {number: Named(number, aired.isrc, aired.title, aired.artist) for number, aired in as_aired.items()}


def _ranked(named_: list[Named], place: npt.NDArray[np.int32]) -> tuple[list[Named], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Tracks, their counts, and the track of each airing; recordings that were merged since are one track."""
    by_id = {one.track_id: one for one in named_}
    ids = sorted(by_id)
    number_of = {track_id: number for number, track_id in enumerate(ids)}
    merged = np.array([number_of[one.track_id] for one in named_], np.int64)
    track_of = merged[place]
    counts = np.bincount(track_of, minlength=len(ids))
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(ids), np.int64)
    rank[order] = np.arange(len(ids))
    return [by_id[ids[number]] for number in order.tolist()], counts[order], rank[track_of]
