"""Places of a query by its landmarks: recordings that hold many of its pairs of peaks, at one distance in time.

Each pair found is a vote for a recording and an offset. Chance gives a place a few votes. The right one has tens, even where a telephone or
a room changed most bits of the fingerprint. matcher.py decides how sure a place is, with the fingerprint as the second witness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.index.layout import PLACE_BITS
from audio_recognition.landmarks import PairedPeaks, pair_peaks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Segment

MOST_PLACES = 32
"""Places returned, those with most votes."""
FEWEST_VOTES = 3
"""Chance gives many recordings of a hundred thousand as many; then the fingerprint decides."""
MOST_PROBES = 2048
"""Pairs looked up, evenly spread over the query: those of a minute."""
LONGEST_BUCKET = 65_536
MOST_POSTINGS = 262_144
"""Read for the rarest pairs. A query of 10 s meets 70,000 among a hundred thousand recordings."""
_SLOT_BITS = 20
_SLOT_FRAMES_BITS = 2
"""Votes are first counted in slots of 4 frames, hashed into a million, because sorting all postings costs five times as much."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_OFFSET_ZERO = 1 << PLACE_BITS
_OFFSET_BITS = PLACE_BITS + 1


class LandmarkPlace(NamedTuple):
    """Frame 0 of the query is frame `offset` of fingerprint `ordinal`, as `votes` pairs say."""

    ordinal: int
    offset: int
    votes: int


def iterate_landmark_places(segment: Segment, pairs: PairedPeaks) -> Iterator[LandmarkPlace]:
    """Yield at most MOST_PLACES places in a segment, one for a fingerprint, most votes first."""
    if segment.landmarks is None:
        return
    found = segment.landmarks.find(pairs.codes, longest=LONGEST_BUCKET, most=MOST_POSTINGS)
    offsets = found.places - pairs.frames[found.probes] + _OFFSET_ZERO
    near = _select_popular(found.ordinals, offsets)
    keys = np.sort((found.ordinals[near] << _OFFSET_BITS) | offsets[near])
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    places, votes = keys[starts], np.diff(starts, append=len(keys))
    # A clip is cut between two frames, so its votes are at neighbouring offsets.
    beside = np.diff(places) == 1
    around = votes.copy()
    around[1:] += votes[:-1] * beside
    around[:-1] += votes[1:] * beside
    ordered = np.lexsort((places, -votes, -around))
    ordered = ordered[around[ordered] >= FEWEST_VOTES]
    ordinals = places[ordered] >> _OFFSET_BITS
    first = np.sort(np.unique(ordinals, return_index=True)[1])[:MOST_PLACES]
    best = ordered[first]
    columns = (places[best] >> _OFFSET_BITS, (places[best] & ((1 << _OFFSET_BITS) - 1)) - _OFFSET_ZERO, around[best])
    yield from (LandmarkPlace(*values) for values in zip(*(column.tolist() for column in columns), strict=True))


def _select_popular(ordinals: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which votes are for a place that may have FEWEST_VOTES."""
    if len(ordinals) < FEWEST_VOTES:
        return np.empty(0, np.int64)
    chosen = np.zeros(len(ordinals), np.bool_)
    # Neighbouring offsets may fall into two slots, so slots are counted twice, half a slot apart.
    for shift in (0, 1 << (_SLOT_FRAMES_BITS - 1)):
        slots = (ordinals << _OFFSET_BITS) | (offsets + shift >> _SLOT_FRAMES_BITS)
        slots = ((slots.astype(np.uint64) * _MIX) >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
        chosen |= np.bincount(slots, minlength=1 << _SLOT_BITS)[slots] >= FEWEST_VOTES
    return np.flatnonzero(chosen)


def pair_query(peaks: NDArray[np.uint32]) -> PairedPeaks:
    """Return the pairs of a query that are looked up."""
    pairs = pair_peaks(peaks)
    every = max(1, -(-len(pairs.codes) // MOST_PROBES))
    return PairedPeaks(pairs.codes[::every], pairs.pieces[::every], pairs.frames[::every])
