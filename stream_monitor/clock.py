"""What time it was on the air when a sample was: of one connection.

A server sends what it has buffered at once (burst on connect), then as fast as it is played. So the time of a sample is counted from the
first one, whose time is the earliest that any later arrival allows. What must not live here: reading the time (the caller passes it).
"""

from __future__ import annotations

from collections import deque

from audio_recognition.chromaprint import SAMPLE_RATE

_SPAN_MS = 1000
_SPANS = 30
"""Arrivals of so many seconds are looked at: after that a stall of the source counts as time that passed on the air."""


class AirClock:
    """Times of samples, counted from the connection's first, in Unix milliseconds."""

    def __init__(self) -> None:
        """Nothing has arrived yet."""
        self._earliest: deque[tuple[int, float]] = deque(maxlen=_SPANS)
        """Per second of arrival: the second, and the earliest time of sample 0 that its arrivals allow."""

    def arrived(self, samples: int, now_ms: int) -> None:
        """So many samples have arrived by now."""
        origin = now_ms - samples * 1000 / SAMPLE_RATE
        span = now_ms // _SPAN_MS
        if self._earliest and self._earliest[-1][0] == span:
            origin = min(origin, self._earliest.pop()[1])
        self._earliest.append((span, origin))

    def at(self, sample: float) -> int:
        """When that sample was on the air; it may lie before the first one."""
        return round(min(origin for _, origin in self._earliest) + sample * 1000 / SAMPLE_RATE)


class SampleClock(AirClock):
    """Counts samples from the first arrival on, however fast they come: for recordings of streams that are played faster than time."""

    def arrived(self, samples: int, now_ms: int) -> None:
        """Only the first arrival counts."""
        if not self._earliest:
            self._earliest.append((0, now_ms - samples * 1000 / SAMPLE_RATE))
