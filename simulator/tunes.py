"""Made-up audio, as WAV files: chords that change three times a second. It is not music, but its fingerprints resemble those of music."""

from __future__ import annotations

import wave
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

RATE = 11_025
CHORDS_PER_SECOND = 3
LOUDNESS = 8_000


def make_tune(seed: int, seconds: float) -> npt.NDArray[np.int16]:
    """Return mono samples at RATE."""
    rng = np.random.default_rng(seed)
    times = np.arange(RATE // CHORDS_PER_SECOND) / RATE
    # Three notes out of three octaves above A3, in the equal temperament of twelve steps.
    notes = 220.0 * 2.0 ** (rng.integers(0, 36, (int(seconds * CHORDS_PER_SECOND), 3, 1)) / 12)
    sound = np.sin(2 * np.pi * notes * times).sum(axis=1).ravel()
    samples: npt.NDArray[np.int16] = (sound * LOUDNESS).astype(np.int16)
    return samples


def write_wav(path: Path, samples: npt.NDArray[np.int16]) -> None:
    """Write a WAV file of mono samples at RATE, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
