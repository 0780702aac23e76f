"""Audio to items: of a whole piece, or of a stream in pieces. Both use the same code, so they give the same items.

Decoding, the text form and matching do not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from audio_recognition.chromaprint.chroma import NOTES, compute_chroma, count_frames
from audio_recognition.chromaprint.classifiers import INTEGRAL_COLUMNS, classify, classify_with_weak_bits, extend_integral_image
from audio_recognition.chromaprint.configuration import HOP_SAMPLES, PHASES, SMOOTHED_ROWS, WINDOW_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMOOTHING: Final = (0.25, 0.75, 1.0, 0.75, 0.25)
_QUIETEST_ROW: Final = 0.01
"""Rows with a smaller length (L2) are silence and become zeros."""


def fingerprint(samples: NDArray[np.int16], *, phase: int = 0) -> NDArray[np.uint32]:
    """Return the items of `int16[n]` samples (mono, `SAMPLE_RATE`) without the first `phase`; empty below `FIRST_ITEM_SECONDS` of audio."""
    return Incremental(phase).feed(samples)


def fingerprint_phases(samples: NDArray[np.int16]) -> tuple[NDArray[np.uint32], ...]:
    """Return one fingerprint for each of `PHASES`, for audio that was cut anywhere."""
    return tuple(fingerprint(samples, phase=phase) for phase in PHASES)


class SoftFingerprint(NamedTuple):
    """The items of one phase, `uint32[n]`, and the bits of each that a little damage flips first, `uint8[n, WEAK_BITS]`, weakest first."""

    items: NDArray[np.uint32]
    weak_bits: NDArray[np.uint8]


def fingerprint_phases_softly(samples: NDArray[np.int16]) -> tuple[SoftFingerprint, ...]:
    """Return the fingerprints of `fingerprint_phases` with their weak bits, for searches of damaged audio."""
    return tuple(SoftFingerprint(*classify_with_weak_bits(Incremental(phase).extend_image(samples))) for phase in PHASES)


def fingerprint_chroma_softly(rows: NDArray[np.float64]) -> SoftFingerprint:
    """Return the fingerprint of chroma rows, `float64[frames, NOTES]`."""
    image = extend_integral_image(_normalise(_smooth(rows)), np.zeros((1, INTEGRAL_COLUMNS)))
    return SoftFingerprint(*classify_with_weak_bits(image))


class Incremental:
    """A fingerprint that grows with its audio. Each frame is transformed once, for any pieces; the state is 40 kB at most."""

    def __init__(self, phase: int = 0) -> None:
        """Start before the first sample; `phase` samples will be skipped."""
        if phase < 0:
            raise ValueError(f"the phase is {phase}: it counts samples to skip, so it must be 0 or more")
        self._to_skip = phase
        self._samples = np.empty(0, np.int16)
        self._chroma = np.empty((0, NOTES))
        self._image = np.zeros((1, INTEGRAL_COLUMNS))

    def feed(self, samples: NDArray[np.int16]) -> NDArray[np.uint32]:
        """Return the items that `int16[n]` more samples complete: `uint32[new]`, possibly none."""
        return classify(self.extend_image(samples))

    def extend_image(self, samples: NDArray[np.int16]) -> NDArray[np.float64]:
        """Return the integral image of the items that more samples complete (classifiers.py)."""
        if samples.dtype != np.int16 or samples.ndim != 1:
            raise ValueError(f"samples must be int16[n], mono; got {samples.dtype}{list(samples.shape)}")
        skipped = min(self._to_skip, len(samples))
        self._to_skip -= skipped
        held = np.concatenate([self._samples, samples[skipped:]])
        rows = np.concatenate([self._chroma, compute_chroma(held)])
        # Copies, because a view would keep the whole piece alive.
        self._samples = held[count_frames(len(held)) * HOP_SAMPLES :].copy()
        self._chroma = rows[max(0, len(rows) - SMOOTHED_ROWS + 1) :].copy()
        image = extend_integral_image(_normalise(_smooth(rows)), self._image)
        self._image = image[max(0, len(image) - WINDOW_ROWS) :].copy()
        return image


def _smooth(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weigh each row with its neighbours; the result has `SMOOTHED_ROWS - 1` rows fewer, or none."""
    count = max(0, len(rows) - SMOOTHED_ROWS + 1)
    smoothed = np.zeros((count, NOTES))
    # One weight after the other, for all rows: a fixed order of sums gives a row the same bits in any piece.
    for start, weight in enumerate(_SMOOTHING):
        smoothed += weight * rows[start : start + count]
    return smoothed


def _normalise(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale rows to length 1, or to zeros where there is next to no sound."""
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.where(length < _QUIETEST_ROW, 0.0, rows / np.maximum(length, _QUIETEST_ROW))
