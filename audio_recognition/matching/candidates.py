"""Candidate places of a query: recordings that hold some of its items, and where in them, most items first.

There are two lookups. The first takes the items as they are, which finds nearly all audio that only went through a codec. The second takes
items with one bit flipped: under a voice, an equaliser or at another pace few items stay whole, but many differ in only one bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import HASH_BITS, HASHED_BITS, SAMPLE_BITS, hash_items, is_sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Segment

MOST_CANDIDATES = 768
"""Compared per lookup; those with the fewest common items are dropped."""
FEWEST_VOTES = 2
"""The least votes of a compared place when there are too many places."""
MOST_FLIPPED = 2112
"""Items with a flipped bit in the second lookup."""
MOST_PROBES = 4096
"""Items of one lookup, evenly spread over the query, so a longer query costs no more."""
LONGEST_BUCKET = 16_384
"""Longer buckets belong to sounds that are everywhere and prove nothing."""
MOST_PLAIN_POSTINGS = 1_048_576
"""Read in the first lookup: more than a query meets among a hundred million recordings."""
MOST_FLIPPED_POSTINGS = 32_768
"""Read in the second lookup, for the rarest items. Common sounds had 200,000 postings, and sorting them took 25 ms."""
# Keys pack several fields into one integer: four phases, and offsets within MAXIMUM_ITEMS (17 bits) to either side.
_PHASE_BITS = 2
_OFFSET_BITS = 18
_OFFSET_ZERO = 1 << (_OFFSET_BITS - 1)
_BITS = np.uint32(1) << np.array(HASHED_BITS, dtype=np.uint32)


@dataclass(frozen=True)
class Probes:
    """Sampled codes to look up; probe i is the item at places[i] of the query at phase phases[i]. At most `most_postings` are read."""

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


def build_plain_probes(query: NDArray[np.uint32]) -> Probes:
    """Build probes of the query's items, uint32 [phases, items], unchanged."""
    phases, places = np.divmod(np.arange(query.size), query.shape[1])
    return _build_probes(hash_items(query.ravel()), places, phases, MOST_PLAIN_POSTINGS)


def build_flipped_probes(query: NDArray[np.uint32]) -> Probes:
    """Build probes of items with each hashed bit flipped in turn: of all items, or of MOST_FLIPPED evenly spread ones."""
    step = max(1, -(-query.size * len(_BITS) // (MOST_FLIPPED << SAMPLE_BITS)))
    # An odd step visits all phases in turn.
    places, phases = np.divmod(np.arange(0, query.size, step | 1), len(query))
    turned = query[phases, places][:, None] ^ _BITS
    return _build_probes(hash_items(turned.ravel()), np.repeat(places, len(_BITS)), np.repeat(phases, len(_BITS)), MOST_FLIPPED_POSTINGS)


def _build_probes(hashed: NDArray[np.uint32], places: NDArray[np.int64], phases: NDArray[np.int64], most_postings: int) -> Probes:
    """Build one probe for each code at a place: the same code of several phases would count its postings several times."""
    at = np.flatnonzero(is_sampled(hashed))
    # Every nth: probes of the whole query find it in a recording that has only a part of it.
    at = at[:: max(1, -(-len(at) // MOST_PROBES))]
    # Place, code and phase in one integer, because sorting one array is faster than sorting records.
    keys = (((places[at] << HASH_BITS) | hashed[at]) << _PHASE_BITS) | phases[at]
    keys.sort()
    codes_at = keys >> _PHASE_BITS
    keys = keys[np.flatnonzero(np.diff(codes_at, prepend=-1))]
    codes_at = keys >> _PHASE_BITS
    hashed = (codes_at & ((1 << HASH_BITS) - 1)).astype(np.uint32)
    return Probes(hashed, codes_at >> HASH_BITS, keys & ((1 << _PHASE_BITS) - 1), most_postings)


def find_candidates(segment: Segment, asked: Probes) -> Candidates:
    """Return at most MOST_CANDIDATES places in a segment: those on which most probes agree, within one item."""
    found = segment.find(asked.codes, longest=LONGEST_BUCKET, most=asked.most_postings)
    # Offsets are negative when the query begins before the recording, so they are shifted into a bit field.
    offsets = found.places - asked.places[found.probes] + _OFFSET_ZERO
    keys = (((found.ordinals << _OFFSET_BITS) | offsets) << _PHASE_BITS) | asked.phases[found.probes]
    keys.sort()
    places = keys >> _PHASE_BITS
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    votes = np.diff(starts, append=len(keys))
    places, phases = places[starts], keys[starts] & ((1 << _PHASE_BITS) - 1)
    # A clip is cut between two items, so its votes spread over two neighbouring offsets.
    beside = np.diff(places) == 1
    near = votes.copy()
    near[1:] += votes[:-1] * beside
    near[:-1] += votes[1:] * beside
    if len(places) > MOST_CANDIDATES:
        best = _select_most_votes(near)
        places, phases = places[best], phases[best]
    return Candidates(places >> _OFFSET_BITS, (places & ((1 << _OFFSET_BITS) - 1)) - _OFFSET_ZERO, phases)


def _select_most_votes(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the MOST_CANDIDATES with most votes, at least FEWEST_VOTES, ascending; an even choice among equals."""
    # Counted and not sorted: sorting a hundred thousand would take longer than everything else here.
    at_least = np.cumsum(np.bincount(votes)[::-1])[::-1]
    level = int(np.count_nonzero(at_least > MOST_CANDIDATES))
    above = np.flatnonzero(votes >= max(FEWEST_VOTES, level))
    if level <= FEWEST_VOTES:
        return above
    equal, wanted = np.flatnonzero(votes == level - 1), MOST_CANDIDATES - len(above)
    # Evenly spread, because the first ones would always be the recordings with the lowest ids.
    equal = equal[np.arange(wanted) * len(equal) // max(1, wanted)]
    return np.sort(np.concatenate([above, equal]))
