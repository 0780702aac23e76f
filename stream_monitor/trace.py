"""What was heard last and is of no airing yet, for ears that come after: of the next connection, or of the worker that takes over.

A track is known 8 to 15 s after it began. When the connection or the worker ends before that, the next one recognises it; since when it
played then, the trace tells. It has times of its own, so that sound which was lost in between is lost and not closed up. What must not live
here: where it is stored (account_store/streams/traces.py), what an airing is (tracker.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from account_store.streams.traces import Left
from audio_recognition.chromaprint import HOP_SAMPLES, ITEMS_PER_SECOND, PHASES, SAMPLE_RATE
from stream_monitor.ear import middle
from stream_monitor.references import FEWEST_ITEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stream_monitor.clock import AirClock
    from stream_monitor.ear import Ear
    from stream_monitor.references import Place, Reference

_MOST_ITEMS = round(30 * ITEMS_PER_SECOND)
"""3.9 kB."""
_FEWEST_ITEMS = 14
"""With fewer there is nothing to tell."""
_SEARCHES = ((FEWEST_ITEMS, 80, 0.2), (20, 16, 0.18), (_FEWEST_ITEMS, 8, 0.16))
"""Of so many items at the end, so many places to either side of where they should be; the share of bits that may differ. Through codecs
the same music made .05 at most, other music .21 and more (16 tracks with each other)."""
_LITTLE_ENDIAN = "<u4"


@dataclass(frozen=True, slots=True)
class Since:
    """Since when a recording played, as far as a trace knows."""

    at_ms: int
    is_cut: bool
    """The trace begins with it: it may have played before."""


@dataclass(frozen=True)
class Trace:
    """`items` uint32 [phases, n], on end, the first of which begins at `first_ms` (Unix milliseconds on the air)."""

    first_ms: int
    items: NDArray[np.uint32]

    @classmethod
    def of(cls, ear: Ear, clock: AirClock, since: int) -> Trace | None:
        """Of what was heard from the item `since` on, its last half minute; None while that is too little to tell anything."""
        first, items = ear.since(max(since, ear.end - _MOST_ITEMS))
        return cls(clock.at(first * HOP_SAMPLES), items.copy()) if items.shape[1] >= _FEWEST_ITEMS else None

    @classmethod
    def found(cls, left: Left | None) -> Trace | None:
        """As a worker left it; None when what it left is no trace of this version's."""
        if left is None or not left.heard or len(left.heard) % (4 * len(PHASES)):
            return None
        return cls(left.first_ms, np.frombuffer(left.heard, _LITTLE_ENDIAN).astype(np.uint32).reshape(len(PHASES), -1))

    @property
    def left(self) -> Left:
        """For who comes after."""
        return Left(self.first_ms, self.items.astype(_LITTLE_ENDIAN).tobytes())

    @property
    def until_ms(self) -> int:
        """When the middle of its last item was on the air."""
        return self._at(middle(self.items.shape[1] - 1, 0))

    def since(self, references: Sequence[Reference], anchor_ms: int) -> Since | None:
        """Since when a recording played that is taken to have begun at `anchor_ms`; None when it is not what the trace ends with."""
        expected = round((self.first_ms - anchor_ms) / 1000 * ITEMS_PER_SECOND)
        for reference in references:
            place = self._place(reference, expected)
            if place is not None and len(like := reference.like(place, (0, self.items))):
                return Since(self._at(middle(int(like[0]), place.phase)), bool(like[0] <= 1))
        return None

    def _place(self, reference: Reference, expected: int) -> Place | None:
        count = self.items.shape[1]
        for fewest, near, most_unlike in _SEARCHES:
            if count >= fewest:
                ending = (count - fewest, self.items[:, count - fewest :])
                place = reference.place(ending, np.arange(expected - near, expected + near + 1))
                if place is not None and place.bit_error_rate <= most_unlike:
                    return place
        return None

    def _at(self, sample: float) -> int:
        return self.first_ms + round(sample * 1000 / SAMPLE_RATE)
