"""What one connection has given so far, as fingerprints at all phases: the last minutes of it.

Items are numbered from the connection's first; item i of a phase begins at sample PHASES[phase] + i * HOP_SAMPLES. What must not live here:
what the items are like (references.py), what time they were on the air (clock.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, HOP_SAMPLES, ITEMS_PER_SECOND, PHASES, SAMPLE_RATE, Incremental

if TYPE_CHECKING:
    from numpy.typing import NDArray

REMEMBERED_ITEMS = round(300 * ITEMS_PER_SECOND)
"""Five minutes, 40 kB: to find where a track began that was recognised late."""
HALF_ITEM_SAMPLES = FIRST_ITEM_SECONDS * SAMPLE_RATE / 2
"""From an item's first sample to the middle of what it has seen."""


class Ear:
    """Feed it a connection's samples in order."""

    def __init__(self) -> None:
        """Nothing heard yet."""
        self._phases = [Incremental(phase) for phase in PHASES]
        self._held = np.zeros((len(PHASES), 2 * REMEMBERED_ITEMS), np.uint32)
        self._counts = [0] * len(PHASES)
        self._fed: list[NDArray[np.int16]] = []
        self.first = 0
        """Number of the oldest item that is remembered."""
        self.samples = 0
        """Heard so far."""

    def feed(self, samples: NDArray[np.int16]) -> None:
        """`int16[n]`, mono, SAMPLE_RATE."""
        self._fed.append(samples)
        self.samples += len(samples)

    @property
    def end(self) -> int:
        """Number of the next item: those below are there at every phase."""
        self._digest()
        return min(self._counts)

    def _digest(self) -> None:
        """Fingerprint what was fed since it was last asked for: some seconds at once cost half of what pieces of half a second do."""
        if not self._fed:
            return
        samples, self._fed = np.concatenate(self._fed), []
        for phase, incremental in enumerate(self._phases):
            items = incremental.feed(samples)
            self._make_room(len(items))
            start = self._counts[phase] - self.first
            self._held[phase, start : start + len(items)] = items
            self._counts[phase] += len(items)

    def _make_room(self, count: int) -> None:
        surplus = max(self._counts) + count - self.first - self._held.shape[1]
        if surplus > 0:
            moved = surplus + REMEMBERED_ITEMS
            self._held[:, :-moved] = self._held[:, moved:].copy()
            self.first += moved

    def since(self, item: int) -> tuple[int, NDArray[np.uint32]]:
        """Items from `item` on, if remembered: number of the first, uint32 [phases, n]. A view: use it before feeding more."""
        end = self.end
        first = max(item, self.first)
        return first, self._held[:, first - self.first : max(0, end - self.first)]


def middle(item: float, phase: int) -> float:
    """The sample in the middle of what an item has seen: the item is half one thing and half the next where they change there."""
    return PHASES[phase] + item * HOP_SAMPLES + HALF_ITEM_SAMPLES
