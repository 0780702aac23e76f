"""The slices of a long recording and their answers, for files that the operator trusts: everything runs in the calling process.

Sound is decoded once, in order, and held for one window. Uploads of strangers are decoded in a sandbox (audio_recognition/uploads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint_phases_softly
from audio_recognition.decoding import decode
from audio_recognition.landmarks import find_peaks
from audio_recognition.timeline.entries import Slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.matching import Answer, Matcher

SLICE_SECONDS: Final = 10.0
_SLICE: Final = round(SLICE_SECONDS * SAMPLE_RATE)
_SHORTEST: Final = 5 * SAMPLE_RATE
"""A shorter rest belongs to the slice before it."""


def iterate_slices(matcher: Matcher, file: Path) -> Iterator[Slice]:
    """Yield the slices of a file with their answers. UnsupportedAudioError, UndecodableAudioError."""
    start = 0
    for sound in _cut(decode(file)):
        answer = match_sound(matcher, sound)
        yield Slice(start / SAMPLE_RATE, (start + len(sound)) / SAMPLE_RATE, answer.matches, answer.reason)
        start += len(sound)


def match_sound(matcher: Matcher, sound: NDArray[np.int16]) -> Answer:
    """Return the answer about one piece of sound at its own pace: by its fingerprint, then by its landmarks."""
    phases = fingerprint_phases_softly(sound)
    items = [one.items for one in phases]
    answer = matcher.match(items, weak_bits=[one.weak_bits for one in phases])
    return matcher.match_landmarks(items, find_peaks(sound)) if answer.has_landmarks else answer


def _cut(pieces: Iterable[NDArray[np.int16]]) -> Iterator[NDArray[np.int16]]:
    """Yield the sound in slices; the last one is longer or shorter."""
    held: list[NDArray[np.int16]] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= _SLICE + _SHORTEST:
            sound = np.concatenate(held)
            yield sound[:_SLICE]
            held, count = [sound[_SLICE:]], count - _SLICE
    if count:
        yield np.concatenate(held)
