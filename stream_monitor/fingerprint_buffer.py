"""The fingerprints of one connection's sound so far, at all phases: its last minutes.

Items are numbered from the connection's first; item i of a phase begins at sample PHASES[phase] + i * HOP_SAMPLES. Out of scope:
comparing items (references.py), the time at which they were on the air (clock.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, HOP_SAMPLES, ITEMS_PER_SECOND, PHASES, SAMPLE_RATE, Incremental

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT_ITEMS = round(300 * ITEMS_PER_SECOND)
"""Five minutes, 40 kB: enough to find the beginning of a track that was recognised late."""
HALF_ITEM_SAMPLES = FIRST_ITEM_SECONDS * SAMPLE_RATE / 2
"""From an item's first sample to the middle of the sound that it describes."""


class FingerprintBuffer:
    """Fingerprints a connection's samples, fed in order."""

    def __init__(self) -> None:
        """Start empty."""
        self._phases = [Incremental(phase) for phase in PHASES]
        # Twice the kept items: they are moved once in five minutes, not at each feed.
        self._items = np.zeros((len(PHASES), 2 * KEPT_ITEMS), np.uint32)
        self._counts = [0] * len(PHASES)
        self._pending: list[NDArray[np.int16]] = []
        self.first = 0
        """Number of the oldest item that is kept."""
        self.samples = 0
        """Samples fed so far."""

    def feed(self, samples: NDArray[np.int16]) -> None:
        """Append samples: `int16[n]`, mono, SAMPLE_RATE."""
        self._pending.append(samples)
        self.samples += len(samples)

    @property
    def end(self) -> int:
        """Number of the next item: all below it exist at every phase."""
        self._fingerprint_pending()
        return min(self._counts)

    def _fingerprint_pending(self) -> None:
        # Seconds of sound at once cost half as much CPU as the same sound in pieces of half a second. So nothing is done
        # until somebody reads.
        if not self._pending:
            return
        samples, self._pending = np.concatenate(self._pending), []
        for phase, incremental in enumerate(self._phases):
            items = incremental.feed(samples)
            self._make_room(len(items))
            start = self._counts[phase] - self.first
            self._items[phase, start : start + len(items)] = items
            self._counts[phase] += len(items)

    def _make_room(self, count: int) -> None:
        surplus = max(self._counts) + count - self.first - self._items.shape[1]
        if surplus > 0:
            moved = surplus + KEPT_ITEMS
            self._items[:, :-moved] = self._items[:, moved:].copy()
            self.first += moved

    def read_since(self, item: int) -> tuple[int, NDArray[np.uint32]]:
        """Return the kept items from `item` on: number of the first, uint32 [phases, n]. A view: use it before feeding more."""
        end = self.end
        first = max(item, self.first)
        return first, self._items[:, first - self.first : max(0, end - self.first)]


def find_middle(item: float, phase: int) -> float:
    """Return the sample in the middle of an item's sound. An item whose middle is at a change of sound is half of each."""
    return PHASES[phase] + item * HOP_SAMPLES + HALF_ITEM_SAMPLES
