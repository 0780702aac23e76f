"""One stream's part of a report, as columns, and rows of text made of them.

A loop over millions of airings would take seconds; these functions work on whole columns. Out of scope: the formats
(report_formats.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog_api.airplay.track_names import NameCache, TrackName, TrackTable, track_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from zoneinfo import ZoneInfo

    import numpy.typing as npt

    from account_store.streams.history import Gap
    from account_store.streams.report import ReportedStream
    from catalog_api.service import Service

_compute: Any = pc
"""pyarrow's stubs lack some of its functions."""
_DAY_SECONDS = 86_400
_DAY_WIDTH, _CLOCK_WIDTH = len("2026-11-21T"), len("17:05:00Z")
_WIDTH = _DAY_WIDTH + _CLOCK_WIDTH


def join_rows(sheet: Sheet, row_starts: Any, write_row_end: Callable[[int], bytes], *, without_last: int = 0) -> memoryview:  # noqa: ANN401 - an array of texts
    """Join all rows of a sheet: `row_starts[j]` of track j, the time (RFC 3339, UTC), `write_row_end(seconds)`.

    `without_last` bytes at the end are omitted: a separator between rows need not follow the last.
    """
    if not len(sheet.track_of):
        return memoryview(b"")
    lengths, place = find_distinct(sheet.seconds)
    tails = pa.array([write_row_end(seconds) for seconds in lengths.tolist()], pa.binary())
    return join_texts(row_starts.take(sheet.track_of), _format_times(sheet.started_unix), tails.take(place), without_last=without_last)


def join_texts(*parts: Any, without_last: int = 0) -> memoryview:  # noqa: ANN401 - arrays of texts, or one text for all rows
    """Join the texts of each row, row after row, without this many bytes at the end."""
    whole: Any = _compute.binary_join_element_wise(*parts, b"")
    # An array stores its texts one after the other, so they can be sent from there. Copying months of them would take 0.2 s.
    _, offsets, texts = whole.buffers()
    ends = np.frombuffer(offsets, np.int32, len(whole) + 1, 4 * whole.offset)
    return memoryview(texts)[ends[0] : max(ends[0], ends[-1] - without_last)]


def find_distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Return the distinct values, unordered, and for each place the index of its value: `np.unique` without its sorting."""
    encoded: Any = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def _format_times(unix: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401 - an array of texts
    """Format ascending times (seconds since 1970)."""
    days = np.arange(unix[0] // _DAY_SECONDS, unix[-1] // _DAY_SECONDS + 1)
    day_of = unix // _DAY_SECONDS - days[0]
    # Each day and each second of a day is formatted once, then copied by index.
    names = np.char.add(days.astype("datetime64[D]").astype(f"S{_DAY_WIDTH - 1}"), b"T")
    texts = np.empty((len(unix), _WIDTH), np.uint8)
    texts[:, :_DAY_WIDTH] = np.take(names.view(np.uint8).reshape(-1, _DAY_WIDTH), day_of, axis=0)
    texts[:, _DAY_WIDTH:] = np.take(_build_clock_texts(), unix % _DAY_SECONDS, axis=0)
    offsets = np.arange(len(unix) + 1, dtype=np.int32) * _WIDTH
    return pa.Array.from_buffers(pa.binary(), len(unix), [None, pa.py_buffer(offsets.data), pa.py_buffer(texts.data)])


@cache
def _build_clock_texts() -> npt.NDArray[np.uint8]:
    """Return every second of a day as `17:05:00Z`, a row each."""
    texts = b"".join(b"%02d:%02d:%02dZ" % (second // 3600, second // 60 % 60, second % 60) for second in range(_DAY_SECONDS))
    return np.frombuffer(texts, np.uint8).reshape(-1, _CLOCK_WIDTH)


MOST_DAYS = 92
"""The longest report."""
_NAMES = NameCache()
"""For the single thread that makes reports (streamed_answer.py)."""


@dataclass(frozen=True, slots=True)
class Window:
    """Whole days of a time zone, the last one included."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> int:
        """Return the number of days."""
        return (self.last - self.first).days + 1

    @property
    def since(self) -> datetime:
        """Return when the first day begins."""
        return datetime.combine(self.first, time(), self.zone).astimezone(UTC)

    @property
    def until(self) -> datetime:
        """Return when the day after the last begins."""
        return datetime.combine(self.last + timedelta(days=1), time(), self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The airings of a stream, ordered by start. `track_of[i]`, `started_unix[i]` (seconds) and `seconds[i]` belong to airing i.

    `numbers` are the numbers of the aired tracks, most played first, then by id. `play_counts[j]` belongs to `numbers[j]`, and
    `track_of[i]` is such a j.
    """

    stream: ReportedStream
    tracks: TrackTable
    numbers: npt.NDArray[np.int64]
    play_counts: npt.NDArray[np.int64]
    track_of: npt.NDArray[np.int64]
    started_unix: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.int32]
    gaps: list[Gap]


def read_sheets(service: Service, account_id: int, window: Window) -> Iterator[Sheet]:
    """Read one sheet for each stream of the account that was active within the window, oldest first. Blocks; holds one at a time."""
    accounts, since, until = service.accounts, window.since, window.until
    streams = accounts.airplay.list_streams(account_id, since, until)
    # One stream at a time: the account's whole report may have millions of airings.
    for stream, airings in zip(streams, accounts.airplay.iterate_airings(streams, since, until), strict=True):
        ids, place = find_distinct(airings.recording_ids)
        tracks, number_of = _name_tracks(service, stream, ids.tolist())
        ranked = _rank_tracks(tracks, number_of, place)
        gaps = accounts.history.list_gaps(stream.stream_id, since, until)
        yield Sheet(stream, tracks, *ranked, airings.started_unix, airings.seconds, gaps)


def remember_names(service: Service, ids: Sequence[int]) -> None:
    """Read the present names of recordings for later reports. Runs in the thread that makes them."""
    with service.live.hold() as catalog:
        _NAMES.look_up(catalog, ids)


def _name_tracks(service: Service, stream: ReportedStream, ids: list[int]) -> tuple[TrackTable, npt.NDArray[np.int64]]:
    """Return tracks, and for each id its number among them. Tracks that left the catalog keep the name under which they aired."""
    with service.live.hold() as catalog:
        # The catalog is held only for the names: a report may be sent for minutes, and a held snapshot cannot be freed.
        tracks, number_of = _NAMES.look_up(catalog, ids)
    gone = np.flatnonzero(number_of < 0).tolist()
    if gone:
        as_aired = service.accounts.airplay.find_aired_names(stream.stream_id, [ids[place] for place in gone])
        for place in gone:
            aired = as_aired[ids[place]]
            # Not cached by id: this name belongs to one stream, and another may have aired the track under another.
            number_of[place] = tracks.add(TrackName(ids[place], aired.isrc, aired.title, aired.artist))
    return tracks, number_of


def _rank_tracks(
    tracks: TrackTable, number_of: npt.NDArray[np.int64], place: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return track numbers, their counts, and the track of each airing; merged recordings are one track."""
    # Two recordings that were merged since have the same number.
    numbers, merged = np.unique(number_of, return_inverse=True)
    track_of = merged[place]
    counts = np.bincount(track_of, minlength=len(numbers))
    # lexsort sorts by its last key first: most plays, then the smallest id.
    order = np.lexsort((tracks.build_column(numbers, track_id, pa.int64()).to_numpy(), -counts))
    rank = np.empty(len(numbers), np.int64)
    rank[order] = np.arange(len(numbers))
    return numbers[order], counts[order], rank[track_of]
