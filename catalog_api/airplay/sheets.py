"""One stream's part of a report, as columns: who was played how often, and every airing.

What must not live here: how it is written (as_json.py and its neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from catalog_api.airplay.columns import distinct
from catalog_api.airplay.current import Names
from catalog_api.airplay.tracks import Named, Tracks, track_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    import numpy.typing as npt

    from account_store.streams.history import Gap
    from account_store.streams.report import ReportedStream
    from catalog_api.service import Service


MOST_DAYS = 92
"""Of a report."""
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

    `numbers` are those among `tracks` which aired, most played first, then by id; `play_counts[j]` belongs to `numbers[j]`, and
    `track_of[i]` is such a j.
    """

    stream: ReportedStream
    tracks: Tracks
    numbers: npt.NDArray[np.int64]
    play_counts: npt.NDArray[np.int64]
    track_of: npt.NDArray[np.int64]
    started_unix: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.int32]
    gaps: list[Gap]


def sheets(service: Service, account_id: int, window: Window) -> Iterator[Sheet]:
    """One for each stream of the account that was active within the window, oldest stream first. Blocks; holds nothing between two."""
    accounts, since, until = service.accounts, window.since, window.until
    streams = accounts.airplay.streams(account_id, since, until)
    for stream, airings in zip(streams, accounts.airplay.airings(streams, since, until), strict=True):
        ids, place = distinct(airings.recording_ids)
        tracks, number_of = _named(service, stream, ids.tolist())
        ranked = _ranked(tracks, number_of, place)
        gaps = accounts.history.gaps(stream.stream_id, since, until)
        yield Sheet(stream, tracks, *ranked, airings.started_unix, airings.seconds, gaps)


def learn(service: Service, ids: Sequence[int]) -> None:
    """Read what recordings are called now, for reports to come. In the thread that makes them."""
    with service.live.hold() as catalog:
        _NAMES.of(catalog, ids)


def _named(service: Service, stream: ReportedStream, ids: list[int]) -> tuple[Tracks, npt.NDArray[np.int64]]:
    """Tracks, and the number of each id's among them; what left the catalog is called as it was when it aired."""
    with service.live.hold() as catalog:
        tracks, number_of = _NAMES.of(catalog, ids)
    gone = np.flatnonzero(number_of < 0).tolist()
    if gone:
        as_aired = service.accounts.airplay.aired_as(stream.stream_id, [ids[place] for place in gone])
        for place in gone:
            aired = as_aired[ids[place]]
            number_of[place] = tracks.add(Named(ids[place], aired.isrc, aired.title, aired.artist))
    return tracks, number_of


def _ranked(
    tracks: Tracks, number_of: npt.NDArray[np.int64], place: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of tracks, their counts, and the track of each airing; recordings that were merged since are one track."""
    numbers, merged = np.unique(number_of, return_inverse=True)
    track_of = merged[place]
    counts = np.bincount(track_of, minlength=len(numbers))
    order = np.lexsort((tracks.column(numbers, track_id, pa.int64()).to_numpy(), -counts))
    rank = np.empty(len(numbers), np.int64)
    rank[order] = np.arange(len(numbers))
    return numbers[order], counts[order], rank[track_of]
