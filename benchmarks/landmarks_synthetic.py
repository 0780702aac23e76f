"""Generated landmarks beside generated recordings: peaks of real tracks in another key, at another pace, mixed with those of another track.

They have the density of real peaks and their repeats over time, unlike random ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.landmarks import HOP_SAMPLES, find_peaks
from audio_recognition.landmarks.peaks import BIN_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Peaks = tuple[NDArray[np.int64], NDArray[np.int64]]

SECONDS = 120
_FRAMES = SECONDS * SAMPLE_RATE // HOP_SAMPLES
_LOWEST_BIN, _BINS = 20, 980
_PACES = (0.7, 1.4)
_SEMITONES = 12
_SECOND_TRACK = (0.1, 0.6)
"""Share of the second track's peaks that stand out; so many of the first are hidden."""
_PER_BATCH = 10_000


def make_landmarks(sounds: Sequence[NDArray[np.int16]], file: Path, recordings: int, *, seed: int) -> None:
    """Write the peaks of generated recordings into `file`, unless it is there."""
    if file.exists():
        return
    tracks = [_split(find_peaks(sound)) for sound in sounds if len(sound) > SECONDS * _PACES[1] * SAMPLE_RATE]
    draw = np.random.default_rng(seed)
    made = [_make_recording(draw, tracks) for _ in range(recordings)]
    partial = file.with_suffix(".partial.npz")
    np.savez(partial, peaks=np.concatenate(made), lengths=np.array([len(one) for one in made]))
    partial.rename(file)


def read_landmark_batches(file: Path, *, first_id: int, apart: int) -> Iterator[FingerprintBatch]:
    """Yield the output of `make_landmarks`; recording ids are `apart`."""
    with np.load(file) as kept:
        peaks, starts = kept["peaks"], np.concatenate([np.zeros(1, np.int64), np.cumsum(kept["lengths"])])
    count = len(starts) - 1
    for start in range(0, count, _PER_BATCH):
        end = min(count, start + _PER_BATCH)
        ids = first_id + apart * np.arange(start, end)
        mine = peaks[starts[start] : starts[end]]
        yield FingerprintBatch(ids, starts[start : end + 1] - starts[start], mine, np.zeros(end - start, np.uint16))


def _split(peaks: NDArray[np.uint32]) -> Peaks:
    return (peaks >> np.uint32(BIN_BITS)).astype(np.int64), (peaks & np.uint32((1 << BIN_BITS) - 1)).astype(np.int64)


def _make_recording(draw: np.random.Generator, tracks: Sequence[Peaks]) -> NDArray[np.uint32]:
    second = draw.uniform(*_SECOND_TRACK)
    parts = [_draw_excerpt(draw, tracks, share) for share in (1 - second, second)]
    # Sorted, and each once.
    return np.unique(np.concatenate(parts)).astype(np.uint32)


def _draw_excerpt(draw: np.random.Generator, tracks: Sequence[Peaks], share: float) -> NDArray[np.int64]:
    frames, bins = tracks[int(draw.integers(len(tracks)))]
    pace, pitch = draw.uniform(*_PACES), 2.0 ** (draw.integers(-_SEMITONES // 2, _SEMITONES // 2) / _SEMITONES)
    start = draw.uniform(0, max(1.0, frames[-1] - _FRAMES * pace))
    first, last = np.searchsorted(frames, (start, start + _FRAMES * pace))
    at = ((frames[first:last] - start) / pace).astype(np.int64)
    moved = np.round((bins[first:last] + _LOWEST_BIN) * pitch).astype(np.int64) - _LOWEST_BIN
    kept = (moved >= 0) & (moved < _BINS) & (at < _FRAMES) & (draw.random(len(at)) < share)
    chosen: NDArray[np.int64] = at[kept] << BIN_BITS | moved[kept]
    return chosen
