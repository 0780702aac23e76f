"""Air time of a connection's samples.

A server sends its buffer at once (burst on connect), then as fast as the stream plays. So the clock counts from the first sample, whose
time is the earliest that any later arrival allows. Out of scope: reading the time (the caller passes it).
"""

from __future__ import annotations

from collections import deque

from audio_recognition.chromaprint import SAMPLE_RATE

_SPAN_MS = 1000
_SPANS = 30
"""Seconds of arrivals that count: after that a stall of the source is time that passed on the air."""


class AirClock:
    """Converts sample numbers of one connection to Unix milliseconds."""

    def __init__(self) -> None:
        """Start before the first arrival."""
        self._earliest: deque[tuple[int, float]] = deque(maxlen=_SPANS)
        """For each second of arrivals: the second, and the earliest time of sample 0 that they allow."""

    def note_arrival(self, samples: int, now_ms: int) -> None:
        """Note that `samples` samples in all have arrived by `now_ms`."""
        # A late arrival gives a later origin. Only stalls and buffers delay sound, so the earliest origin is nearest to the truth.
        origin = now_ms - samples * 1000 / SAMPLE_RATE
        span = now_ms // _SPAN_MS
        # One entry a second bounds the memory for any number of packets.
        if self._earliest and self._earliest[-1][0] == span:
            origin = min(origin, self._earliest.pop()[1])
        self._earliest.append((span, origin))

    def convert_sample(self, sample: float) -> int:
        """Return when a sample was on the air. The sample may be before the first one."""
        return round(min(origin for _, origin in self._earliest) + sample * 1000 / SAMPLE_RATE)


class SampleClock(AirClock):
    """Counts samples from the first arrival on, however fast they come: for recordings of streams played faster than real time."""

    def note_arrival(self, samples: int, now_ms: int) -> None:
        """Note the first arrival; ignore the others."""
        if not self._earliest:
            self._earliest.append((0, now_ms - samples * 1000 / SAMPLE_RATE))
