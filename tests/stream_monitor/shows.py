"""A scripted radio show for tests: songs with distinct fingerprints, talk, silence; its sound and its true airings.

Songs are named by number; a song's sound depends on its number alone. Out of scope: encoding and serving (sounds.py,
servers.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from account_store.streams.airings import PlayedTrack
from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

RATE = 2 * SAMPLE_RATE
"""Sample rate of a show, mono."""


UNKNOWN = 90
"""Songs from this number on are in no index."""


@dataclass(frozen=True)
class Part:
    """A number of seconds of a song, from its second `begin` on; `song` None: talk, 0: silence."""

    song: int | None
    seconds: float
    begin: float = 0.0


@dataclass(frozen=True)
class Aired:
    """The true airing of a part of a show, in seconds from the beginning of the show."""

    song: int
    start: float
    seconds: float


@cache
def song(number: int, seconds: float) -> NDArray[np.int16]:
    """Return `int16[n]` at RATE: chords of decaying tones that change three times a second, with a little noise."""
    random = np.random.default_rng(1000 + number)
    count = round(seconds * RATE)
    made = random.normal(scale=0.01, size=count).astype(np.float32)
    since = np.arange(round(1.2 * RATE), dtype=np.float32) / RATE
    fading = 0.2 * np.exp(-3 * since)
    for start in range(0, count, round(0.3 * RATE)):
        hertz = 110 * 2 ** (random.choice(48, 3, replace=False) / 12)
        left = min(len(since), count - start)
        made[start : start + left] += sum(fading[:left] * np.sin(np.float32(2 * np.pi * tone) * since[:left]) for tone in hertz)
    return (np.clip(made, -1, 1) * 32767).astype(np.int16)


def talk(seconds: float, seed: int) -> NDArray[np.int16]:
    """Return something like speech: a buzz whose pitch and loudness wander, broken by pauses, with hiss."""
    random = np.random.default_rng(seed)
    count = round(seconds * RATE)
    steps = count // (RATE // 20) + 2
    pitch = np.interp(np.arange(count), np.arange(steps) * (RATE // 20), 110 + 40 * np.cumsum(random.normal(size=steps)) / np.sqrt(steps))
    loud = np.interp(np.arange(count), np.arange(steps) * (RATE // 20), random.random(steps) * (random.random(steps) > 0.3))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    buzz = sum(np.sin(overtone * phase) / overtone for overtone in range(1, 12)) + random.normal(scale=0.3, size=count)
    return (np.clip(0.25 * loud * buzz, -1, 1) * 32767).astype(np.int16)


def sound(parts: Sequence[Part], lengths: dict[int, float]) -> NDArray[np.int16]:
    """Return the show, `int16[n]` at RATE. `lengths` holds the duration of each song."""
    pieces = []
    for place, part in enumerate(parts):
        count = round(part.seconds * RATE)
        if part.song is None:
            pieces.append(talk(part.seconds, place))
        elif part.song == 0:
            pieces.append(np.zeros(count, np.int16))
        else:
            start = round(part.begin * RATE)
            pieces.append(song(part.song, lengths[part.song])[start : start + count])
    return np.concatenate(pieces)


def truth(parts: Iterable[Part]) -> list[Aired]:
    """Return the true airings of the known songs."""
    found, at = [], 0.0
    for part in parts:
        if part.song and part.song < UNKNOWN:
            found.append(Aired(part.song, at, part.seconds))
        at += part.seconds
    return found


def fingerprints(lengths: dict[int, float]) -> FingerprintBatch:
    """Return the fingerprints of all songs, whole."""
    items = [fingerprint(np.ascontiguousarray(song(number, seconds)[::2])) for number, seconds in lengths.items()]
    return FingerprintBatch.of(list(lengths), items, list(lengths.values()))


def index_of(lengths: dict[int, float], folder: Path) -> Path:
    """Return an index of all songs, under their numbers."""
    build_index([fingerprints(lengths)], folder, partitions=1)
    return folder


def track(number: int, seconds: float) -> PlayedTrack:
    """Return a song as a catalog would describe it."""
    return PlayedTrack(number, f"Song {number}", f"Artist {number}", f"QZAAA26{number:05d}", round(seconds))


def agrees(aired: Sequence[tuple[int, float, float]], parts: Iterable[Part]) -> bool:
    """Return whether airings (song, start, seconds) are those of the show, row for row.

    Starts may differ by 2 s, durations by 3 s.
    """
    wanted = truth(parts)
    return len(aired) == len(wanted) and all(
        found == part.song and abs(start - part.start) <= 2 and abs(seconds - part.seconds) <= 3
        for (found, start, seconds), part in zip(aired, wanted, strict=True)
    )
