"""Where a query might fit: recordings that hold some of its items, and where in them, most items first.

There are two looks. The first looks up the items as they are, which finds nearly all audio that only went through a codec. The second
looks up items with one bit turned: under a voice, an equaliser or at another pace few items stay whole, but many differ in one bit alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import HASH_BITS, HASHED_BITS, SAMPLE_BITS, codes, is_sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audio_recognition.index.index import Segment

MOST_CANDIDATES = 768
"""Compared in a look; those with the fewest items in common fall away."""
FEWEST_VOTES = 2
"""For a place to be compared when not all can be."""
MOST_TURNED = 2112
"""Items with a turned bit looked up in the second look."""
MOST_PROBES = 4096
"""Looked up in one look, evenly spread over the query; the work does not grow with the query beyond that."""
LONGEST_BUCKET = 16_384
"""Longer ones, of sounds that are everywhere, tell nothing."""
MOST_PLAIN_POSTINGS = 1_048_576
"""Read in the first look: beyond what a query meets among a hundred million recordings."""
MOST_TURNED_POSTINGS = 32_768
"""Read in the second look, those of the rarest items: common sounds met 200,000, and 25 ms went into sorting them."""
_PHASE_BITS = 2
_OFFSET_BITS = 18
_OFFSET_ZERO = 1 << (_OFFSET_BITS - 1)
_BITS = np.uint32(1) << np.array(HASHED_BITS, dtype=np.uint32)


@dataclass(frozen=True)
class Probes:
    """Sampled codes to look up; probe i is the item at places[i] of the query at phase phases[i]. `most_postings` are read, at most."""

    codes: NDArray[np.uint32]
    places: NDArray[np.int64]
    phases: NDArray[np.int64]
    most_postings: int


@dataclass(frozen=True)
class Candidates:
    """Candidate i: item 0 of the query at phase phases[i] is item offsets[i] of fingerprint ordinals[i]."""

    ordinals: NDArray[np.int64]
    offsets: NDArray[np.int64]
    phases: NDArray[np.int64]


def plain_probes(query: NDArray[np.uint32]) -> Probes:
    """The items of the query, uint32 [phases, items], as they are."""
    phases, places = np.divmod(np.arange(query.size), query.shape[1])
    return _sampled(codes(query.ravel()), places, phases, MOST_PLAIN_POSTINGS)


def turned_probes(query: NDArray[np.uint32]) -> Probes:
    """Items of the query with each hashed bit turned in turn: of all items, or of as many, evenly spread, as MOST_TURNED allows."""
    step = max(1, -(-query.size * len(_BITS) // (MOST_TURNED << SAMPLE_BITS)))
    # An odd step visits all phases in turn.
    places, phases = np.divmod(np.arange(0, query.size, step | 1), len(query))
    turned = query[phases, places][:, None] ^ _BITS
    return _sampled(codes(turned.ravel()), np.repeat(places, len(_BITS)), np.repeat(phases, len(_BITS)), MOST_TURNED_POSTINGS)


def _sampled(hashed: NDArray[np.uint32], places: NDArray[np.int64], phases: NDArray[np.int64], most_postings: int) -> Probes:
    """One probe for each code at a place: the same one of several phases would count its postings several times."""
    at = np.flatnonzero(is_sampled(hashed))
    at = at[:: max(1, -(-len(at) // MOST_PROBES))]
    keys = (((places[at] << HASH_BITS) | hashed[at]) << _PHASE_BITS) | phases[at]
    keys.sort()
    codes_at = keys >> _PHASE_BITS
    keys = keys[np.flatnonzero(np.diff(codes_at, prepend=-1))]
    codes_at = keys >> _PHASE_BITS
    hashed = (codes_at & ((1 << HASH_BITS) - 1)).astype(np.uint32)
    return Probes(hashed, codes_at >> HASH_BITS, keys & ((1 << _PHASE_BITS) - 1), most_postings)


def candidates(segment: Segment, asked: Probes) -> Candidates:
    """At most MOST_CANDIDATES places in a segment; those on which most probes agree, within one item, are chosen."""
    found = segment.find(asked.codes, longest=LONGEST_BUCKET, most=asked.most_postings)
    offsets = found.places - asked.places[found.probes] + _OFFSET_ZERO
    keys = (((found.ordinals << _OFFSET_BITS) | offsets) << _PHASE_BITS) | asked.phases[found.probes]
    keys.sort()
    places = keys >> _PHASE_BITS
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    votes = np.diff(starts, append=len(keys))
    places, phases = places[starts], keys[starts] & ((1 << _PHASE_BITS) - 1)
    beside = np.diff(places) == 1
    near = votes.copy()
    near[1:] += votes[:-1] * beside
    near[:-1] += votes[1:] * beside
    if len(places) > MOST_CANDIDATES:
        best = _most_votes(near)
        places, phases = places[best], phases[best]
    return Candidates(places >> _OFFSET_BITS, (places & ((1 << _OFFSET_BITS) - 1)) - _OFFSET_ZERO, phases)


def _most_votes(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The MOST_CANDIDATES with most votes, FEWEST_VOTES at least; of equals an even choice; ascending."""
    # Counted, not sorted: sorting a hundred thousand would take longer than all else.
    at_least = np.cumsum(np.bincount(votes)[::-1])[::-1]
    level = int(np.count_nonzero(at_least > MOST_CANDIDATES))
    above = np.flatnonzero(votes >= max(FEWEST_VOTES, level))
    if level <= FEWEST_VOTES:
        return above
    equal, wanted = np.flatnonzero(votes == level - 1), MOST_CANDIDATES - len(above)
    # Evenly spread: the first of them would always be the recordings with the lowest ids.
    equal = equal[np.arange(wanted) * len(equal) // max(1, wanted)]
    return np.sort(np.concatenate([above, equal]))
