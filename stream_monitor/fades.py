"""Cross-fades: whether one track faded into the next, or was cut off for one that was begun late.

In a cross-fade the old track stops to agree with its fingerprint some seconds before the new one agrees with its own: the sound of both is
like neither. At a cut both are within an item (2.7 s). Out of scope: when the new track begins (tracker.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from audio_recognition.chromaprint import ITEMS_PER_SECOND
from stream_monitor.fingerprint_buffer import find_middle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stream_monitor.clock import AirClock
    from stream_monitor.fingerprint_buffer import FingerprintBuffer
    from stream_monitor.references import Place, Reference

    Placed = tuple[Reference, Place]

LONGEST_FADE_MS: Final = 9_000
"""Longest overlap of two tracks while one fades into the next."""
_SHORTEST_MIX_MS: Final = 2_800
"""Between the last items like the old track and the first ones like the new: at most 2.6 s at 60 cuts, and less than this in 3 of 60 fades
of which the new track was then late by more than 3 s once."""
_LIKE: Final = 0.08
"""Share of bits by which items like a track may differ more than the track usually does here (by its codec, for example)."""
_ALONE_MS: Final = 10_000
"""Sound of the old track alone that shows how much it usually differs."""
_SMOOTHED: Final = 3


def is_cross_fade(old: Placed, new: Placed, anchor_ms: int, first_ms: int, buffer: FingerprintBuffer, clock: AirClock) -> bool:
    """Return whether `old` faded out under `new`, which begins at `anchor_ms` and is recognised from `first_ms` on."""
    if not anchor_ms < first_ms <= anchor_ms + LONGEST_FADE_MS:
        return False
    since_ms = anchor_ms - _ALONE_MS
    old_at, old_differs = _measure(old, since_ms, buffer, clock)
    new_at, new_differs = _measure(new, anchor_ms, buffer, clock)
    alone, later = old_at < anchor_ms, new_at > first_ms
    if not alone.any() or not later.any():
        return False
    like_new = new_at[_smooth(new_differs) < np.median(new_differs[later]) + _LIKE]
    like_old = old_at[_smooth(old_differs) < np.median(old_differs[alone]) + _LIKE]
    if not len(like_new):
        return False
    # Items of the old track that agree later do so by chance.
    like_old = like_old[like_old < like_new[0]]
    return bool(len(like_old) and like_new[0] - like_old[-1] > _SHORTEST_MIX_MS)


def _measure(placed: Placed, since_ms: int, buffer: FingerprintBuffer, clock: AirClock) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when the middles of items were on the air, and the share of bits in which each differs from the recording."""
    reference, place = placed
    origin_ms = clock.convert_sample(find_middle(0, place.phase))
    window = buffer.read_since(max(0, round((since_ms - origin_ms) / 1000 * ITEMS_PER_SECOND)))
    numbers, differs = reference.measure_differences(place, window)
    return origin_ms + numbers / ITEMS_PER_SECOND * 1000, differs


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    padded = np.pad(values, _SMOOTHED // 2, mode="edge")
    smoothed: NDArray[np.float64] = np.convolve(padded, np.full(_SMOOTHED, 1 / _SMOOTHED), "valid")
    return smoothed
