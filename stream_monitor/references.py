"""Comparison of a recording's own fingerprint with a stream: whether it still plays, where it began, where it stopped.

The matcher names a recording in a window of audio. The recording's fingerprint then shows item by item whether the sound is this recording.
That needs no search, finds ends to within a second, and follows a track through passages that no search would find (a voice over it).
Out of scope: the meaning of an airing (tracker.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, HOP_SAMPLES, PHASES, SAMPLE_RATE
from audio_recognition.index.layout import STORE_STRIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS: Final = 32
_RUN_ITEMS = 13
"""Stored items that are judged together: 3.2 s."""
_MATCHING_RATE = 0.28
"""Share of differing bits below which a run is the recording: a voice over it makes .17, other music .4 and more."""
FEWEST_ITEMS = 40
"""Items needed to find a place in a recording by comparison alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """A match of positions: item i of the connection at `phase` is item i + shift of the recording."""

    phase: int
    shift: int
    bit_error_rate: float

    @property
    def origin(self) -> float:
        """The connection's sample at which the recording begins; negative when it began before the connection."""
        return PHASES[self.phase] - self.shift * HOP_SAMPLES


@dataclass(frozen=True)
class Reference:
    """One fingerprint of a recording."""

    recording_id: int
    stored: NDArray[np.uint32]
    """Every STORE_STRIDE-th item."""
    seconds: float
    """Length of the recording; its fingerprint may cover less."""

    @property
    def items(self) -> int:
        """Number of items of its fingerprint, to within one."""
        return len(self.stored) * STORE_STRIDE

    @property
    def covered_seconds(self) -> float:
        """Seconds of the recording that the fingerprint covers."""
        return max(0, self.items - 1) * HOP_SAMPLES / SAMPLE_RATE + FIRST_ITEM_SECONDS

    def find_place(self, window: tuple[int, NDArray[np.uint32]], shifts: NDArray[np.int64]) -> Place | None:
        """Return the best of `shifts` (int64 [k]) for the items of the window; None when too few are within the recording at all of them.

        `window`: number of its first item and the items, as `FingerprintBuffer.read_since` returns them.
        """
        first, items = window
        count = items.shape[1]
        # Only every STORE_STRIDE-th item is stored: round up to the next stored one (`-(-a // b)`).
        in_recording = -(-(first + shifts) // STORE_STRIDE)
        at = in_recording[:, None] + np.arange(-(-count // STORE_STRIDE))
        in_window = at * STORE_STRIDE - shifts[:, None] - first
        inside = (at >= 0) & (at < len(self.stored)) & (in_window < count)
        compared = inside.sum(axis=1)
        # At the edge of the recording fewer items overlap: a handful would match by chance at some shift.
        fits = compared * STORE_STRIDE >= min(count, FEWEST_ITEMS)
        if not fits.any():
            return None
        # Positions outside read item 0, and `inside` drops their bits afterwards: one gather for all shifts and phases.
        stored = self.stored[np.where(inside, at, 0)]
        differing = np.bitwise_count(stored[None] ^ items[:, np.where(inside, in_window, 0)])
        errors = (differing * inside).sum(axis=2, dtype=np.int64)
        rates = np.where(fits, errors / (_BITS * np.maximum(compared, 1)), 1.0)
        phase, best = np.unravel_index(int(rates.argmin()), rates.shape)
        return Place(int(phase), int(shifts[best]), float(rates[phase, best]))

    def list_shifts(self, window: tuple[int, NDArray[np.uint32]]) -> NDArray[np.int64]:
        """Return all shifts at which enough of the items of the window are within the recording."""
        first, items = window
        enough = min(items.shape[1], FEWEST_ITEMS)
        return np.arange(enough - items.shape[1] - first, self.items - enough - first + 1)

    def find_matching_items(self, place: Place, window: tuple[int, NDArray[np.uint32]]) -> NDArray[np.int64]:
        """Return the numbers of the items of the window at which the recording plays: the middles of matching runs, ascending.

        At both ends of a stretch half a run decides.
        """
        numbers, rates = self.measure_differences(place, window)
        # Less than half a run decides nothing.
        if len(rates) < _RUN_ITEMS // 2 + 1:
            return np.zeros(0, np.int64)
        # Differences of cumulative sums give the mean of each run in one pass.
        sums = np.concatenate([[0.0], np.cumsum(rates)])
        middles = np.arange(len(rates))
        low, high = np.maximum(0, middles - _RUN_ITEMS // 2), np.minimum(len(rates), middles + _RUN_ITEMS // 2 + 1)
        found: NDArray[np.int64] = numbers[(sums[high] - sums[low]) / (high - low) < _MATCHING_RATE]
        return found

    def measure_differences(self, place: Place, window: tuple[int, NDArray[np.uint32]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of the items of the window that can be compared at `place`, and the share of differing bits of each."""
        first, items = window
        start = max(0, -(-(first + place.shift) // STORE_STRIDE))
        end = max(start, min(len(self.stored), -(-(first + items.shape[1] + place.shift) // STORE_STRIDE)))
        numbers = np.arange(start, end) * STORE_STRIDE - place.shift
        return numbers, np.bitwise_count(self.stored[start:end] ^ items[place.phase, numbers - first]) / _BITS
