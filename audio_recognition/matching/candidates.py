"""Candidate places of a query: recordings that hold some of its items, and where in them, most items first.

The first lookup takes the items as they are, which finds nearly all audio that only went through a codec. Under a voice, an equaliser or at
another pace few items stay whole, but many differ in one to three bits. Where the query's weak bits are known, the next two lookups flip
these, one or several at once. A query without them is looked up once more with each bit flipped in turn.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import HASH_BITS, HASHED_BITS, SAMPLE_BITS, hash_items, is_sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audio_recognition.index.fingerprint_index import Segment

MOST_CANDIDATES = 768
"""Compared in a lookup; those with the fewest common items are dropped."""
MOST_CANDIDATES_OF_ALL = 3072
"""Compared in the last lookup, which has the most probes."""
FEWEST_VOTES = 2
"""The least votes of a compared place when there are too many places."""
MOST_FLIPPED = 2112
"""Items with a flipped bit in the second lookup."""
MOST_PROBES = 4096
"""Items of one lookup, evenly spread over the query, so a longer query costs no more."""
FEW_FLIPS, MANY_FLIPS = (8, 32), (12, 128)
"""Weak bits of an item that may be flipped, and codes that are made of it, in the second and in the third lookup."""
_MOST_FLIPS_AT_ONCE = 4
LONGEST_BUCKET = 16_384
"""Longer buckets belong to sounds that are everywhere and prove nothing."""
MOST_PLAIN_POSTINGS = 1_048_576
"""Read in the first lookup: more than a query meets among a hundred million recordings."""
MOST_FLIPPED_POSTINGS = 32_768
"""Read in the second lookup, for the rarest items. Common sounds had 200,000 postings, and sorting them took 25 ms."""
MOST_POSTINGS_OF_ALL = 131_072
"""Read in the last lookup."""
# Keys pack several fields into one integer: four phases, and offsets within MAXIMUM_ITEMS (17 bits) to either side.
_PHASE_BITS = 2
_OFFSET_BITS = 18
_OFFSET_ZERO = 1 << (_OFFSET_BITS - 1)
_BITS = np.uint32(1) << np.array(HASHED_BITS, dtype=np.uint32)
_IS_HASHED = np.isin(np.arange(32), HASHED_BITS)


@dataclass(frozen=True)
class Probes:
    """Sampled codes to look up; probe i is the item at places[i] of the query at phase phases[i].

    At most `most_postings` are read and `most_candidates` returned.
    """

    codes: NDArray[np.uint32]
    places: NDArray[np.int64]
    phases: NDArray[np.int64]
    most_postings: int
    most_candidates: int = MOST_CANDIDATES


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


def build_weak_probes(
    query: NDArray[np.uint32], weak_bits: NDArray[np.uint8], flips: tuple[int, int], most_postings: int, most_candidates: int
) -> Probes:
    """Build probes of items with weak bits flipped, `weak_bits`: uint8 [phases, items, WEAK_BITS], weakest first; `flips`: FEW or MANY.

    Of all items, or of evenly spread ones of a long query.
    """
    bits, codes = flips
    chosen = _list_flips(bits, codes)
    step = max(1, -(-query.size * len(chosen) // (MOST_PROBES << SAMPLE_BITS)))
    # An odd step visits all phases in turn.
    places, phases = np.divmod(np.arange(0, query.size, step | 1), len(query))
    weakest = weak_bits[phases, places]
    # Bits that are not hashed go last: flipping them gives the same code.
    hashed_first = np.argsort(~_IS_HASHED[weakest], axis=1, kind="stable")[:, :bits]
    masks = np.uint32(1) << np.take_along_axis(weakest, hashed_first, axis=1).astype(np.uint32)
    turned = np.stack([query[phases, places] ^ np.bitwise_or.reduce(masks[:, list(flipped)], axis=1) for flipped in chosen], axis=1)
    return _build_probes(
        hash_items(turned.ravel()), np.repeat(places, len(chosen)), np.repeat(phases, len(chosen)), most_postings, most_candidates
    )


@cache
def _list_flips(bits: int, codes: int) -> tuple[tuple[int, ...], ...]:
    """Return the `codes` likeliest sets of flipped bits, as ranks among the `bits` weakest: few and weak ones first."""
    sets = itertools.chain.from_iterable(itertools.combinations(range(bits), size) for size in range(1, _MOST_FLIPS_AT_ONCE + 1))
    # The rank stands for the distance from the threshold; the constant makes each further flip less likely.
    return tuple(sorted(sets, key=lambda ranks: (sum(rank + 1.5 for rank in ranks), ranks))[:codes])


def _build_probes(
    hashed: NDArray[np.uint32],
    places: NDArray[np.int64],
    phases: NDArray[np.int64],
    most_postings: int,
    most_candidates: int = MOST_CANDIDATES,
) -> Probes:
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
    return Probes(hashed, codes_at >> HASH_BITS, keys & ((1 << _PHASE_BITS) - 1), most_postings, most_candidates)


def find_candidates(segment: Segment, asked: Probes) -> Candidates:
    """Return at most `most_candidates` places in a segment: those on which most probes agree, within one item."""
    found = segment.postings.find(asked.codes, longest=LONGEST_BUCKET, most=asked.most_postings)
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
    if len(places) > asked.most_candidates:
        best = _select_most_votes(near, asked.most_candidates)
        places, phases = places[best], phases[best]
    return Candidates(places >> _OFFSET_BITS, (places & ((1 << _OFFSET_BITS) - 1)) - _OFFSET_ZERO, phases)


def _select_most_votes(votes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the `most` with most votes, at least FEWEST_VOTES, ascending; an even choice among equals."""
    # Counted and not sorted: sorting a hundred thousand would take longer than everything else here.
    at_least = np.cumsum(np.bincount(votes)[::-1])[::-1]
    level = int(np.count_nonzero(at_least > most))
    above = np.flatnonzero(votes >= max(FEWEST_VOTES, level))
    if level <= FEWEST_VOTES:
        return above
    equal, wanted = np.flatnonzero(votes == level - 1), most - len(above)
    # Evenly spread, because the first ones would always be the recordings with the lowest ids.
    equal = equal[np.arange(wanted) * len(equal) // max(1, wanted)]
    return np.sort(np.concatenate([above, equal]))
