"""Where a query might fit: recordings that hold some of its items, and where in them, most items first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import codes, is_sampled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from audio_recognition.index.index import Segment

MOST_CANDIDATES = 1024
"""Compared at first; those with the fewest items in common fall away."""
LONGEST_BUCKET = 4096
_OFFSET_BITS = 18
_OFFSET_ZERO = 1 << (_OFFSET_BITS - 1)


@dataclass(frozen=True)
class Probes:
    """Sampled codes to look up; probe i is the item at places[i] of the query at phase phases[i]."""

    codes: NDArray[np.uint32]
    places: NDArray[np.int64]
    phases: NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Candidate i: item 0 of the query at phase phases[i] is item offsets[i] of fingerprint ordinals[i]; votes[i] items agree."""

    ordinals: NDArray[np.int64]
    offsets: NDArray[np.int64]
    phases: NDArray[np.int64]
    votes: NDArray[np.int64]


def probes(fingerprints: Sequence[NDArray[np.uint32]]) -> Probes:
    """The items of the query itself."""
    hashed = codes(np.concatenate(fingerprints))
    lengths = [len(one) for one in fingerprints]
    at = np.flatnonzero(is_sampled(hashed))
    places = np.concatenate([np.arange(length) for length in lengths])[at]
    phases = np.repeat(np.arange(len(lengths)), lengths)[at]
    return Probes(hashed[at], places, phases)


def candidates(segment: Segment, asked: Probes) -> Candidates:
    """At most MOST_CANDIDATES places in a segment, by votes descending, then ordinal and offset."""
    found = segment.find(asked.codes, longest=LONGEST_BUCKET)
    offsets = found.places - asked.places[found.probes]
    keys = (found.ordinals << _OFFSET_BITS) | (offsets + _OFFSET_ZERO)
    order = np.argsort(keys, kind="stable")
    keys, phases = keys[order], asked.phases[found.probes][order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    votes = np.diff(starts, append=len(keys))
    best = np.argsort(-votes, kind="stable")[:MOST_CANDIDATES]
    keys, phases = keys[starts[best]], phases[starts[best]]
    return Candidates(keys >> _OFFSET_BITS, (keys & ((1 << _OFFSET_BITS) - 1)) - _OFFSET_ZERO, phases, votes[best])
