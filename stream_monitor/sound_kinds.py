"""Tells talk, music and silence apart, for the time in which nothing known plays.

Speech changes its loudness from syllable to syllable and falls silent between words; vowels and consonants in turns move its zero
crossings. Three numbers of a few seconds tell it from music, without a spectrum. Talk over music counts as music. Out of scope: storing
segments (account_store/streams/segments.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from account_store.streams.segments import MUSIC_UNKNOWN, SILENCE, TALK
from audio_recognition.chromaprint import SAMPLE_RATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_SILENT_RMS: Final = 33.0
"""A second below this (-60 dB) is silent."""
_SHORTEST_SILENCE: Final = 2
"""Seconds; a shorter pause belongs to the sound around it."""
_STEP: Final = 256
"""Samples from one frame to the next; a frame has two steps, 46 ms."""
_QUIETEST: Final = 0.05
"""Quieter frames, relative to the mean, count as so loud: digital silence between words says no more than a room does."""
_WEIGHTS: Final = (6.66, 15.7, 38.64)
_BIAS: Final = -14.66
"""A logistic fit to 144 windows of talk (recorded prompts in English, a speaking program) and 266 of music of three packages."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A stretch of one kind; samples of the connection."""

    kind: str
    start: int
    end: int


class SoundKinds:
    """Collects a connection's samples until somebody asks what they are."""

    def __init__(self) -> None:
        """Start empty."""
        self._pending: list[NDArray[np.int16]] = []
        self._first = 0
        """Number of the first pending sample."""

    def feed(self, samples: NDArray[np.int16]) -> None:
        """Append samples: `int16[n]`, mono, SAMPLE_RATE."""
        self._pending.append(samples)

    def take(self, *, is_wanted: bool) -> list[Kind]:
        """Drop all samples; return what they were, in order, if that is wanted."""
        start = self._first
        self._first += sum(len(one) for one in self._pending)
        pending, self._pending = self._pending, []
        return list(_split(np.concatenate(pending), start)) if is_wanted and pending else []


def _split(sound: NDArray[np.int16], start: int) -> Iterator[Kind]:
    seconds = max(1, round(len(sound) / SAMPLE_RATE))
    edges = np.linspace(0, len(sound), seconds + 1).astype(int)
    parts = [sound[low:high].astype(np.float32) for low, high in pairwise(edges)]
    is_silent = _drop_short([float(np.sqrt(np.mean(np.square(part)))) < _SILENT_RMS for part in parts])
    # One verdict for all that sounds: it needs seconds.
    heard = [part for part, silent in zip(parts, is_silent, strict=True) if not silent]
    kind = (TALK if is_talk(np.concatenate(heard)) else MUSIC_UNKNOWN) if heard else SILENCE
    at = 0
    for number in range(1, seconds + 1):
        if number == seconds or is_silent[number] != is_silent[at]:
            yield Kind(SILENCE if is_silent[at] else kind, start + int(edges[at]), start + int(edges[number]))
            at = number


def _drop_short(is_silent: list[bool]) -> list[bool]:
    """Count short pauses as sound, but those at an edge, which may go on."""
    kept, at = list(is_silent), 0
    for number in range(1, len(is_silent) + 1):
        if number == len(is_silent) or is_silent[number] != is_silent[at]:
            is_inside = at > 0 and number < len(is_silent)
            if is_silent[at] and is_inside and number - at < _SHORTEST_SILENCE:
                kept[at:number] = [False] * (number - at)
            at = number
    return kept


def is_talk(sound: NDArray[np.float32]) -> bool:
    """Return whether seconds of sound, float32[n] at SAMPLE_RATE, are speech rather than music."""
    count = len(sound) // _STEP
    if count < 3:  # noqa: PLR2004 -- no change of loudness to measure
        return False
    blocks = sound[: count * _STEP].reshape(count, _STEP)
    power = np.square(blocks).mean(axis=1)
    loudness = np.sqrt((power[:-1] + power[1:]) / 2) + 1
    decibels = np.log(np.maximum(loudness, _QUIETEST * loudness.mean()))
    crossings = (np.diff(np.signbit(blocks), axis=1) != 0).mean(axis=1)
    features = (decibels.std(), np.abs(np.diff(decibels)).mean(), ((crossings[:-1] + crossings[1:]) / 2).std())
    return float(np.dot(_WEIGHTS, features)) + _BIAS > 0
