"""The comparison of two whole fingerprints: how much they differ where they fit best.

Two encodings of one recording begin within seconds of each other, so all shifts in that range are tried and no index is needed.
Out of scope: what a distance means for a catalog (pipeline/linkage/audio_verdicts.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.matching.alignment import BITS, compute_chance
from audio_recognition.matching.confidence import LEAST_CHANCE, compute_distance
from audio_recognition.matching.query import find_refusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SHIFT = 80
"""Items, ten seconds: AcoustID compares files within the same range (TRACK_MAX_OFFSET)."""
LEAST_OVERLAP = 160
"""Items, twenty seconds. With fewer, pieces that share an intro or a jingle would count as one."""
_PROBED = 4
"""Step of the search for the best shift, in items: neighbours share 15 of their 16 rows of chroma."""
_SHIFTS = np.arange(-MOST_SHIFT, MOST_SHIFT + 1)


class PairComparison(NamedTuple):
    """`distance`: 0 for equal audio, about .5 for unrelated audio (confidence.py). `overlap`: items compared."""

    distance: float
    overlap: int


def compare_pair(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> PairComparison | None:
    """Compare two fingerprints; None when they prove nothing: silence, a drone, too few items, constant bits."""
    if min(len(one), len(other)) < LEAST_OVERLAP or find_refusal([one]) is not None or find_refusal([other]) is not None:
        return None
    ours, theirs = _cut_overlap(one, other, _find_best_shift(one, other))
    chance = compute_chance(ours, theirs)
    if chance < LEAST_CHANCE:
        return None
    return PairComparison(compute_distance(_compute_rate(ours, theirs), chance), len(ours))


def _find_best_shift(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> int:
    """Return the shift with the fewest differing bits; of equal ones the smallest, then the positive one."""
    places = np.arange(0, len(other), _PROBED)
    at = places + _SHIFTS[:, None]
    inside = (at >= 0) & (at < len(one))
    # Positions outside read item 0 and are masked: an array index must be valid.
    differing = np.bitwise_count(one[np.where(inside, at, 0)] ^ other[places]) * inside
    compared = inside.sum(axis=1) * BITS
    rates = np.where(compared * _PROBED >= LEAST_OVERLAP * BITS, differing.sum(axis=1) / np.maximum(compared, 1), 1.0)
    near = int(_SHIFTS[rates.argmin()])
    # The probes are a sample, so the neighbours are measured in full.
    return min((near - 1, near, near + 1), key=lambda shift: (_compute_rate(*_cut_overlap(one, other, shift)), abs(shift), -shift))


def _cut_overlap(one: NDArray[np.uint32], other: NDArray[np.uint32], shift: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    ours, theirs = one[max(0, shift) :], other[max(0, -shift) :]
    length = min(len(ours), len(theirs))
    return ours[:length], theirs[:length]


def _compute_rate(ours: NDArray[np.uint32], theirs: NDArray[np.uint32]) -> float:
    return float(np.bitwise_count(ours ^ theirs).sum()) / (BITS * len(ours))
