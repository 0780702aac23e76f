"""Sounds for fingerprint tests: silence, noise, tones, clipping, interrupted sound, odd lengths. They are the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE
from tests.audio_recognition.audio import melody, noise

if TYPE_CHECKING:
    from numpy.typing import NDArray


def tone(hertz: float, seconds: float, *, loudness: float = 20000) -> NDArray[np.int16]:
    return (
        np.round(loudness * np.sin(2 * np.pi * hertz * np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE))
        .clip(-32768, 32767)
        .astype(np.int16)
    )


def sweep(seconds: float) -> NDArray[np.int16]:
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return np.round(20000 * np.sin(2 * np.pi * (30 * time + 60 * time * time))).astype(np.int16)


def gated(seconds: float) -> NDArray[np.int16]:
    """Return a tone that is on and off for four seconds each: rows of silence beside rows of sound."""
    sound = tone(440, seconds)
    sound[np.arange(len(sound)) // SAMPLE_RATE % 8 >= 4] = 0
    return sound


SOUNDS: dict[str, NDArray[np.int16]] = {
    "silence": np.zeros(5 * SAMPLE_RATE, np.int16),
    "constant": np.full(5 * SAMPLE_RATE, -32768, np.int16),
    "noise": noise(6 * SAMPLE_RATE, loudest=9000),
    "faint": noise(6 * SAMPLE_RATE, loudest=1),
    "tone": tone(440, 5),
    "tone on a bin": tone(100 * SAMPLE_RATE / 4096, 5),
    "clipped": tone(441, 5, loudness=5_000_000),
    "sweep": sweep(20),
    "gated": gated(20),
    "music": melody(30),
    "odd length": noise(50_021, loudest=20000, seed=2),
}
