"""Trace: the last fingerprints of a stream that belong to no airing yet, for the next connection or for the worker that takes over.

A track is recognised 8 to 15 s after it began. When the connection or the worker ends before that, the next one recognises the track, and
the trace shows since when it has played. A trace has times of its own, so that a gap in the sound stays a gap. Out of scope:
storage (account_store/streams/traces.py), the meaning of an airing (tracker.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from account_store.streams.traces import StoredTrace
from audio_recognition.chromaprint import HOP_SAMPLES, ITEMS_PER_SECOND, PHASES, SAMPLE_RATE
from stream_monitor.fingerprint_buffer import find_middle
from stream_monitor.references import FEWEST_ITEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stream_monitor.clock import AirClock
    from stream_monitor.fingerprint_buffer import FingerprintBuffer
    from stream_monitor.references import Place, Reference

_MOST_ITEMS = round(30 * ITEMS_PER_SECOND)
"""3.9 kB."""
_FEWEST_ITEMS = 14
"""Fewer items match by chance."""
_SEARCHES = ((FEWEST_ITEMS, 80, 0.2), (20, 16, 0.18), (_FEWEST_ITEMS, 8, 0.16))
"""Items compared at the end, places searched to either side of the expected one, share of bits that may differ. Through codecs the same
music differed by .05 at most, other music by .21 and more (16 tracks with each other)."""
_LITTLE_ENDIAN = "<u4"


@dataclass(frozen=True, slots=True)
class EarlierStart:
    """The earliest moment at which a trace holds a recording."""

    at_ms: int
    is_cut: bool
    """The trace begins with the recording, which may have played before."""


@dataclass(frozen=True)
class Trace:
    """Consecutive items, uint32 [phases, n]. The first begins at `first_ms` (Unix milliseconds on the air)."""

    first_ms: int
    items: NDArray[np.uint32]

    @classmethod
    def of(cls, buffer: FingerprintBuffer, clock: AirClock, since: int) -> Trace | None:
        """Return the last half minute of the items from `since` on; None when they are too few."""
        first, items = buffer.read_since(max(since, buffer.end - _MOST_ITEMS))
        # A copy: the buffer moves its items when it has no room (`FingerprintBuffer._make_room`).
        return cls(clock.convert_sample(first * HOP_SAMPLES), items.copy()) if items.shape[1] >= _FEWEST_ITEMS else None

    @classmethod
    def load(cls, stored: StoredTrace | None) -> Trace | None:
        """Return the trace that a worker stored; None when another version wrote it in another form."""
        # Another release may have other phases. A trace is a convenience of seconds, so it is dropped, not converted.
        if stored is None or not stored.items or len(stored.items) % (4 * len(PHASES)):
            return None
        return cls(stored.first_ms, np.frombuffer(stored.items, _LITTLE_ENDIAN).astype(np.uint32).reshape(len(PHASES), -1))

    @property
    def stored(self) -> StoredTrace:
        """The form in which the account store keeps it."""
        return StoredTrace(self.first_ms, self.items.astype(_LITTLE_ENDIAN).tobytes())

    @property
    def until_ms(self) -> int:
        """Air time of the middle of its last item."""
        return self._convert_sample(find_middle(self.items.shape[1] - 1, 0))

    def find_start(self, references: Sequence[Reference], anchor_ms: int) -> EarlierStart | None:
        """Return the earliest moment at which the trace holds a recording with that anchor; None when the trace does not end with it."""
        expected = round((self.first_ms - anchor_ms) / 1000 * ITEMS_PER_SECOND)
        for reference in references:
            place = self._find_place(reference, expected)
            if place is not None and len(matching := reference.find_matching_items(place, (0, self.items))):
                # Every second item is compared: a match from item 0 or 1 on is a match from the beginning of the trace.
                return EarlierStart(self._convert_sample(find_middle(int(matching[0]), place.phase)), bool(matching[0] <= 1))
        return None

    def _find_place(self, reference: Reference, expected: int) -> Place | None:
        count = self.items.shape[1]
        # The fewer items are compared, the fewer places and differing bits are allowed: chance matches grow with places.
        for fewest, near, most_different in _SEARCHES:
            if count >= fewest:
                ending = (count - fewest, self.items[:, count - fewest :])
                place = reference.find_place(ending, np.arange(expected - near, expected + near + 1))
                if place is not None and place.bit_error_rate <= most_different:
                    return place
        return None

    def _convert_sample(self, sample: float) -> int:
        return self.first_ms + round(sample * 1000 / SAMPLE_RATE)
