"""Fingerprints of a piece of audio as it would be at other speeds, for recordings that are played too fast or too slow.

The spectra are computed once. At another speed the notes have other frequencies and the frames other distances, so notes are folded and
rows chosen anew. Resampling the audio gives nearly the same items at seven times the cost, most of it in transforms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from audio_recognition.chromaprint.chroma import compute_power, fold_notes
from audio_recognition.chromaprint.configuration import PHASES
from audio_recognition.chromaprint.fingerprinter import SoftFingerprint, fingerprint_chroma_softly

if TYPE_CHECKING:
    from numpy.typing import NDArray


SPEED_PHASES: Final = PHASES[::2]
"""Two phases find as many clips as four here, at half the cost: rows between those of the grid are interpolated anyway."""


class SpeedFingerprinter:
    """The spectra of a piece at the phases: a grid of two rows a hop. They take 5 MB for 30 s."""

    def __init__(self, samples: NDArray[np.int16]) -> None:
        """Transform `int16[n]` samples, mono at SAMPLE_RATE."""
        phases = [compute_power(samples[phase:]) for phase in SPEED_PHASES]
        frames = min(map(len, phases))
        self._grid = np.stack([one[:frames] for one in phases], axis=1).reshape(len(SPEED_PHASES) * frames, phases[0].shape[1])

    def fingerprint(self, speed: float) -> tuple[SoftFingerprint, ...]:
        """Return the fingerprints, one for each phase, of the recording that plays `speed` times as fast here; `speed` is near 1."""
        rows = fold_notes(self._grid, speed)
        return tuple(fingerprint_chroma_softly(_interpolate(rows, phase, speed)) for phase in range(len(SPEED_PHASES)))


def _interpolate(rows: NDArray[np.float64], phase: int, speed: float) -> NDArray[np.float64]:
    """Return the rows of one phase at every hop of the recording, between those of the grid."""
    at = np.arange(phase, (len(rows) - 1) * speed, len(SPEED_PHASES)) / speed
    before = at.astype(np.intp)
    between: NDArray[np.float64] = rows[before] + (at - before)[:, None] * (rows[before + 1] - rows[before])
    return between


def choose_places(grid: int, phase: int, phases: int, speed: float) -> NDArray[np.int64]:
    """Return the places in a grid of `phases` rows a hop that are nearest to every hop of a recording `speed` times as fast."""
    places = np.round(np.arange(phase, grid * speed, phases) / speed).astype(np.int64)
    return places[places < grid]
