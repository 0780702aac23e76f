"""The names of aired recordings: those of the live catalog, merged ids followed, else those at the time of the airing.

The columns that a format makes of tracks are kept, because streams and reports play the same tracks again. For one thread, the one that
makes reports (streamed_answer.py).
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from catalog_api.wire.catalog_types import Track, TrackArtist
from catalog_api.wire.stream_types import AiredTrack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from account_store.streams.history import Airing
    from catalog_store.reader import Catalog


class TrackName(NamedTuple):
    """A recording as reports name it."""

    track_id: int
    isrc: str | None
    title: str
    artist: str


class TrackTable:
    """A growing list of tracks; a track keeps its number."""

    def __init__(self) -> None:
        """Start empty."""
        self._named: list[TrackName] = []
        self._columns: dict[Callable[[TrackName], object], Any] = {}

    def __len__(self) -> int:
        """Return the number of tracks."""
        return len(self._named)

    def __getitem__(self, number: int) -> TrackName:
        """Return a track by number."""
        return self._named[number]

    def add(self, track: TrackName) -> int:
        """Add a track and return its number."""
        self._named.append(track)
        return len(self._named) - 1

    def build_column(self, numbers: npt.NDArray[np.int64], value_of: Callable[[TrackName], object], kind: pa.DataType) -> Any:  # noqa: ANN401 - an array
        """Return `value_of` the tracks with these numbers. `value_of` is a module-level function, called once for each track."""
        made = self._columns.get(value_of, pa.array([], kind))
        if len(made) < len(self._named):
            more = pa.array(list(map(value_of, self._named[len(made) :])), kind)
            # Only the new tracks are converted.
            made = self._columns[value_of] = pa.concat_arrays([made, more])
        return made.take(numbers)


track_id, isrc, title, artist = (attrgetter(name) for name in TrackName._fields)


MOST_NAMES = 100_000
_ID_BATCH_SIZE = 500


class _Artist(msgspec.Struct):
    name: str
    is_primary: bool


class _Slim(msgspec.Struct):
    title: str
    isrc: str | None
    artists: list[_Artist]


_SLIM = msgspec.json.Decoder(_Slim)
_TRACK = msgspec.json.Decoder(Track)


def read_bodies(catalog: Catalog, recording_ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
    """Return present id and wire JSON of each track by recording id; recordings that left the catalog are absent."""
    found: dict[int, tuple[int, bytes]] = {}
    for start in range(0, len(recording_ids), _ID_BATCH_SIZE):
        some = recording_ids[start : start + _ID_BATCH_SIZE]
        # Most recordings are still in the catalog and are read in one call; only the others are looked up one by one.
        found |= {number: (number, body) for number, body in catalog.read_track_bodies(some).items()}
        for number in some:
            survivor = None if number in found else catalog.resolve_id(number)
            body = None if survivor is None else catalog.read_track_body(survivor)
            if survivor is not None and body is not None:
                found[number] = (survivor, body)
    return found


class NameCache:
    """The names of recordings in the live snapshot, cached between reports: reading them is most of a report's work.

    For one thread. It keeps at most MOST_NAMES: tens of MB.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._snapshot_id = ""
        self._tracks = TrackTable()
        self._number_of: dict[int, int] = {}
        """By recording id; merged ones share their track's."""

    def look_up(self, catalog: Catalog, recording_ids: Sequence[int]) -> tuple[TrackTable, npt.NDArray[np.int64]]:
        """Return tracks, and for each recording its number among them; -1 when it left the catalog. A new snapshot empties the cache."""
        # The old table may still serve a report, so it is replaced, not emptied.
        if catalog.snapshot_id != self._snapshot_id or len(self._tracks) + len(recording_ids) > MOST_NAMES:
            self._snapshot_id, self._tracks, self._number_of = catalog.snapshot_id, TrackTable(), {}
        numbers = self._find_numbers(recording_ids)
        if (numbers < 0).any():
            self._learn(catalog, [one for one, number in zip(recording_ids, numbers.tolist(), strict=True) if number < 0])
            numbers = self._find_numbers(recording_ids)
        return self._tracks, numbers

    def _find_numbers(self, recording_ids: Sequence[int]) -> npt.NDArray[np.int64]:
        return np.fromiter(map(self._number_of.get, recording_ids, repeat(-1)), np.int64, len(recording_ids))

    def _learn(self, catalog: Catalog, recording_ids: Sequence[int]) -> None:
        for number, (survivor, body) in read_bodies(catalog, recording_ids).items():
            if survivor not in self._number_of:
                # `_Slim` has only the members of a report: msgspec builds no objects for the rest.
                slim = _SLIM.decode(body)
                self._number_of[survivor] = self._tracks.add(TrackName(survivor, slim.isrc, slim.title, join_lead_artists(slim.artists)))
            # A merged id shares the number of its survivor, so that reports count both as one track.
            self._number_of[number] = self._number_of[survivor]


def join_lead_artists(artists: Iterable[_Artist | TrackArtist]) -> str:
    """Join the names of the lead artists."""
    return ", ".join([artist.name for artist in artists if artist.is_primary])


def describe_aired_tracks(catalog: Catalog, airings: Iterable[Airing]) -> dict[int, AiredTrack]:
    """Return tracks by airing id, as the interface shows them."""
    airings = list(airings)
    now = read_bodies(catalog, list({airing.recording_id for airing in airings}))
    decoded = {number: (survivor, _TRACK.decode(body)) for number, (survivor, body) in now.items()}
    return {
        airing.airing_id: _describe_aired_track(airing, *decoded.get(airing.recording_id, (airing.recording_id, None)))
        for airing in airings
    }


def _describe_aired_track(airing: Airing, track_id: int, track: Track | None) -> AiredTrack:
    if track is None:
        return AiredTrack(str(track_id), airing.title, airing.isrc, airing.artist, [], airing.track_seconds, [], [])
    return AiredTrack(
        str(track_id), track.title, track.isrc, join_lead_artists(track.artists), track.artists, track.duration, track.genre, track.subgenre
    )
