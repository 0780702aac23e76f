"""Samples to chroma: the energy of the twelve notes in each frame, the first half of the algorithm.

Each frame is computed in a fixed order, so its row does not depend on the other frames.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from audio_recognition.chromaprint.configuration import FRAME_SAMPLES, HOP_SAMPLES, SAMPLE_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTES: Final = 12

_LOWEST_HZ: Final = 28
_HIGHEST_HZ: Final = 3520
_NOTE_ZERO_HZ: Final = 27.5
"""A0: the twelve notes are counted from there, octaves folded together."""
_LOUDEST_SAMPLE: Final = 32767

_BINS: Final = slice(round(FRAME_SAMPLES * _LOWEST_HZ / SAMPLE_RATE), round(FRAME_SAMPLES * _HIGHEST_HZ / SAMPLE_RATE))
_WINDOW: Final = np.hamming(FRAME_SAMPLES) / _LOUDEST_SAMPLE
MOST_SPEED: Final = 1.05
"""The highest speed at which the spectra of `compute_power` still hold all notes of a recording."""
_MOST_BINS: Final = slice(0, round(_BINS.stop * MOST_SPEED) + 1)
_FRAMES_AT_ONCE: Final = 16
"""Half a megabyte of windowed frames, which fits the processor's cache."""


class _Runs(NamedTuple):
    """Neighbouring bins of one note: runs begin at `starts`; `by_note` orders them, and `note_starts` divides that order."""

    starts: NDArray[np.intp]
    by_note: NDArray[np.intp]
    note_starts: NDArray[np.intp]


def _find_runs(notes: NDArray[np.intp]) -> _Runs:
    starts = np.flatnonzero(np.diff(notes, prepend=-1))
    by_note = np.argsort(notes[starts], kind="stable")
    return _Runs(starts, by_note, np.searchsorted(notes[starts][by_note], np.arange(NOTES)))


_HERTZ: Final = np.arange(_BINS.start, _BINS.stop) * (SAMPLE_RATE / FRAME_SAMPLES)
_NOTES: Final = np.floor(NOTES * np.mod(np.log2(_HERTZ / _NOTE_ZERO_HZ), 1)).astype(np.intp)
"""The note of each bin."""
_RUNS: Final = _find_runs(_NOTES)


@cache
def _weigh_bins(speed: float) -> tuple[NDArray[np.intp], NDArray[np.float64], _Runs]:
    """Return bins, their weights and the runs of notes among them: the chroma of a recording that plays `speed` times as fast.

    A bin of the recording is between two bins here. Its note stays: low notes have few bins, and other limits would change their sums.
    """
    at = np.arange(_BINS.start, _BINS.stop) * speed
    below = at.astype(np.intp)
    keys = np.concatenate([below * NOTES + _NOTES, (below + 1) * NOTES + _NOTES])
    chosen, where = np.unique(keys, return_inverse=True)
    weights = np.zeros(len(chosen))
    np.add.at(weights, where, np.concatenate([1 - (at - below), at - below]))
    return chosen // NOTES, weights, _find_runs(chosen % NOTES)


def count_frames(samples: int) -> int:
    """Return the number of whole frames in that many samples."""
    return max(0, (samples - FRAME_SAMPLES) // HOP_SAMPLES + 1)


def compute_chroma(samples: NDArray[np.int16]) -> NDArray[np.float64]:
    """Return `float64[frames, NOTES]`, the energies of the whole frames in `samples`; an incomplete frame is left out."""
    rows = np.empty((count_frames(len(samples)), NOTES))
    if not len(rows):
        return rows
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::HOP_SAMPLES]
    for start in range(0, len(frames), _FRAMES_AT_ONCE):
        power = _transform(frames[start : start + _FRAMES_AT_ONCE], _BINS)
        _fold(power, _RUNS, rows[start : start + _FRAMES_AT_ONCE])
    return rows


def compute_power(samples: NDArray[np.int16]) -> NDArray[np.float64]:
    """Return `float64[frames, bins]`, the power spectra of the whole frames, for `fold_notes`."""
    if not count_frames(len(samples)):
        return np.empty((0, _MOST_BINS.stop))
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME_SAMPLES)[::HOP_SAMPLES]
    return np.concatenate(
        [_transform(frames[start : start + _FRAMES_AT_ONCE], _MOST_BINS) for start in range(0, len(frames), _FRAMES_AT_ONCE)]
    )


def fold_notes(power: NDArray[np.float64], speed: float) -> NDArray[np.float64]:
    """Return `float64[frames, NOTES]`, the chroma of a recording that plays `speed` times as fast in the frames of `compute_power`."""
    if speed > MOST_SPEED:
        raise ValueError(f"the speed is {speed}: spectra are kept for speeds up to {MOST_SPEED}")
    bins, weights, runs = _weigh_bins(speed)
    rows = np.empty((len(power), NOTES))
    if len(power):
        _fold(np.take(power, bins, axis=1) * weights, runs, rows)
    return rows


def _transform(frames: NDArray[np.int16], bins: slice) -> NDArray[np.float64]:
    # In 64 bits: NumPy takes 12 us a frame, in 32 bits 50. libchromaprint transforms in 32 bits; 11.2 million bits of real music were
    # equal.
    spectrum = np.fft.rfft(frames * _WINDOW)[:, bins]
    power: NDArray[np.float64] = np.square(spectrum.real) + np.square(spectrum.imag)
    return power


def _fold(power: NDArray[np.float64], runs: _Runs, rows: NDArray[np.float64]) -> None:
    """Write the energies of the notes into `rows`."""
    # No matrix product: BLAS starts threads for one, which made it four times slower on a busy machine.
    sums = np.add.reduceat(power, runs.starts, axis=1)
    np.add.reduceat(sums[:, runs.by_note], runs.note_starts, axis=1, out=rows)
