"""A recording's own fingerprint, laid beside what is heard: does it still play, where did it begin, where did it stop.

The matcher names a recording in a window of audio; its fingerprint then tells item by item what is it and what is not. That is cheap (no
search), finds ends to within a second, and follows a track through passages that no search would find (a voice over it).
What must not live here: what an airing is (tracker.py).
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
_RUN = 13
"""Stored items, 3.2 s: what is judged together."""
_LIKE = 0.28
"""Share of differing bits in a run that is the recording: a voice over it makes .17, other music .4 and more."""
FEWEST_ITEMS = 40
"""To find a place in a recording by comparing alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Item i heard at `phase` is item i + shift of the recording."""

    phase: int
    shift: int
    bit_error_rate: float

    @property
    def origin(self) -> float:
        """The sample of the connection at which the recording begins; below zero when that was before."""
        return PHASES[self.phase] - self.shift * HOP_SAMPLES


@dataclass(frozen=True)
class Reference:
    """One fingerprint of a recording."""

    recording_id: int
    stored: NDArray[np.uint32]
    """Every STORE_STRIDE-th item."""
    seconds: float
    """How long the recording lasts; its fingerprint may cover less."""

    @property
    def items(self) -> int:
        """How many items its fingerprint has, to within one."""
        return len(self.stored) * STORE_STRIDE

    @property
    def covered_seconds(self) -> float:
        """How much of the recording the fingerprint covers."""
        return max(0, self.items - 1) * HOP_SAMPLES / SAMPLE_RATE + FIRST_ITEM_SECONDS

    def place(self, heard: tuple[int, NDArray[np.uint32]], shifts: NDArray[np.int64]) -> Place | None:
        """Where of `shifts` (int64 [k]) the heard items fit best; `heard` as of Ear.since. None when they lie outside of it everywhere."""
        first, items = heard
        count = items.shape[1]
        in_recording = -(-(first + shifts) // STORE_STRIDE)
        at = in_recording[:, None] + np.arange(-(-count // STORE_STRIDE))
        in_heard = at * STORE_STRIDE - shifts[:, None] - first
        inside = (at >= 0) & (at < len(self.stored)) & (in_heard < count)
        compared = inside.sum(axis=1)
        fits = compared * STORE_STRIDE >= min(count, FEWEST_ITEMS)
        if not fits.any():
            return None
        stored = self.stored[np.where(inside, at, 0)]
        differing = np.bitwise_count(stored[None] ^ items[:, np.where(inside, in_heard, 0)])
        errors = (differing * inside).sum(axis=2, dtype=np.int64)
        rates = np.where(fits, errors / (_BITS * np.maximum(compared, 1)), 1.0)
        phase, best = np.unravel_index(int(rates.argmin()), rates.shape)
        return Place(int(phase), int(shifts[best]), float(rates[phase, best]))

    def everywhere(self, heard: tuple[int, NDArray[np.uint32]]) -> NDArray[np.int64]:
        """All shifts at which enough of what was heard lies within the recording."""
        first, items = heard
        enough = min(items.shape[1], FEWEST_ITEMS)
        return np.arange(enough - items.shape[1] - first, self.items - enough - first + 1)

    def like(self, place: Place, heard: tuple[int, NDArray[np.uint32]]) -> NDArray[np.int64]:
        """Numbers of the heard items at which the recording plays: the middles of runs that are like it, ascending.

        Items at both ends of a stretch are told by the half of a run that is there.
        """
        first, items = heard
        last = first + items.shape[1]
        start = max(0, -(-(first + place.shift) // STORE_STRIDE))
        end = min(len(self.stored), -(-(last + place.shift) // STORE_STRIDE))
        if end - start < _RUN // 2 + 1:
            return np.zeros(0, np.int64)
        numbers = np.arange(start, end) * STORE_STRIDE - place.shift
        rates = np.bitwise_count(self.stored[start:end] ^ items[place.phase, numbers - first]) / _BITS
        sums = np.concatenate([[0.0], np.cumsum(rates)])
        middles = np.arange(len(rates))
        low, high = np.maximum(0, middles - _RUN // 2), np.minimum(len(rates), middles + _RUN // 2 + 1)
        found: NDArray[np.int64] = numbers[(sums[high] - sums[low]) / (high - low) < _LIKE]
        return found

    def unlike(self, place: Place, heard: tuple[int, NDArray[np.uint32]]) -> float:
        """Share of bits in which the heard items differ from the recording's there; 0 when there are none to compare."""
        first, items = heard
        start = max(0, -(-(first + place.shift) // STORE_STRIDE))
        end = max(start, min(len(self.stored), -(-(first + items.shape[1] + place.shift) // STORE_STRIDE)))
        numbers = np.arange(start, end) * STORE_STRIDE - place.shift
        differing = np.bitwise_count(self.stored[start:end] ^ items[place.phase, numbers - first])
        return float(differing.mean()) / _BITS if len(numbers) else 0.0
