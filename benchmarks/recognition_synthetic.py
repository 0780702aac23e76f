"""Generated recordings to fill an index: real tracks' chroma in another key, at another pace, mixed with that of another track.

Their items have the distribution of real fingerprints (distinct items, runs), unlike random bits. The classifiers are the
product's, computed in single precision and column by column: 0.1 ms a recording instead of 4.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint.chroma import NOTES
from audio_recognition.chromaprint.classifiers import CLASSIFIERS, INTEGRAL_COLUMNS
from audio_recognition.chromaprint.configuration import ROWS_BEFORE_FIRST_ITEM
from audio_recognition.index.batches import FingerprintBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ITEMS = 948
"""Items of two minutes, as in the public dumps."""
SECONDS = 210
PER_BATCH = 24
"""Their integral image fits the processor's cache."""
PER_PART = 24_000
PROCESSES = 2
_ROWS = ITEMS + ROWS_BEFORE_FIRST_ITEM
_PACES = (0.7, 1.4)
_SECOND_TRACK = (0.1, 0.7)
_SMOOTHING = (0.25, 0.75, 1.0, 0.75, 0.25)
_GRAY_CODE = np.array([0, 1, 3, 2], dtype=np.uint32)


class Material:
    """The chroma of the tracks from which recordings are generated."""

    def __init__(self, chroma: Sequence[NDArray[np.float64]]) -> None:
        """Take `chroma`, float [rows, NOTES] of each track; tracks too short for the quickest pace are left out."""
        needed = int(_ROWS * _PACES[1]) + 2
        # Twice side by side, so any key is a slice.
        self._tracks = [np.tile((rows / rows.mean()).astype(np.float32), 2) for rows in chroma if len(rows) > needed]

    def make_items(self, recordings: int, *, seed: Sequence[int]) -> NDArray[np.uint32]:
        """Return uint32 [recordings, ITEMS]; the same for the same seed."""
        made = np.empty((recordings, ITEMS), dtype=np.uint32)
        for start in range(0, recordings, PER_BATCH):
            draw = np.random.default_rng([*seed, start])
            rows = [self._make_recording(draw) for _ in range(min(PER_BATCH, recordings - start))]
            made[start : start + len(rows)] = _compute_items(np.concatenate(rows)).reshape(len(rows), _ROWS)[:, :ITEMS]
        return made

    def _make_recording(self, draw: np.random.Generator) -> NDArray[np.float32]:
        first, second = self._draw_excerpt(draw), self._draw_excerpt(draw)
        mixed: NDArray[np.float32] = first + np.float32(draw.uniform(*_SECOND_TRACK)) * second
        return mixed

    def _draw_excerpt(self, draw: np.random.Generator) -> NDArray[np.float32]:
        track = self._tracks[draw.integers(len(self._tracks))]
        key, pace = draw.integers(NOTES), draw.uniform(*_PACES)
        start = draw.uniform(0, len(track) - _ROWS * pace - 1)
        at = start + pace * np.arange(_ROWS)
        before = at.astype(np.int64)
        share = (at - before).astype(np.float32)[:, None]
        lower, upper = track[before, key : key + NOTES], track[before + 1, key : key + NOTES]
        between: NDArray[np.float32] = lower + share * (upper - lower)
        return between


def make_recordings(chroma: Sequence[NDArray[np.float64]], folder: Path, recordings: int, *, seed: int) -> None:
    """Write generated recordings into parts in `folder`; existing parts stay."""
    folder.mkdir(parents=True, exist_ok=True)
    material = Material(chroma)
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(partial(_make_part, material, folder, recordings, seed), range(-(-recordings // PER_PART))))


def _make_part(material: Material, folder: Path, recordings: int, seed: int, part: int) -> None:
    file = _get_part_path(folder, seed, part)
    count = min(PER_PART, recordings - part * PER_PART)
    if not file.exists() or len(np.load(file, mmap_mode="r")) < count:
        # An interrupted run must not leave a part that the next run takes for complete.
        partial_file = file.with_suffix(".partial.npy")
        np.save(partial_file, material.make_items(count, seed=(seed, part)))
        partial_file.rename(file)


def _get_part_path(folder: Path, seed: int, part: int) -> Path:
    return folder / f"seed-{seed}-{part:05d}.npy"


def read_batches(folder: Path, recordings: int, *, first_id: int, seed: int, apart: int = 1) -> Iterator[FingerprintBatch]:
    """Yield the output of `make_recordings`; recording ids are `apart`."""
    for start in range(0, recordings, PER_PART):
        items = np.load(_get_part_path(folder, seed, start // PER_PART), mmap_mode="r")[: recordings - start]
        count = len(items)
        ids = first_id + apart * np.arange(start, start + count)
        yield FingerprintBatch(ids, np.arange(count + 1) * ITEMS, items.reshape(-1), np.full(count, SECONDS, np.uint16))


def _compute_items(rows: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return one item for each row, of the window that begins there.

    The last ROWS_BEFORE_FIRST_ITEM are wrong: their windows are cut off.
    """
    count = len(rows)
    padded = np.concatenate([rows, np.zeros((ROWS_BEFORE_FIRST_ITEM + 1, NOTES), np.float32)])
    smoothed = np.zeros((len(padded) - len(_SMOOTHING) + 1, NOTES), np.float32)
    for at, weight in enumerate(_SMOOTHING):
        smoothed += np.float32(weight) * padded[at : at + len(smoothed)]
    smoothed /= np.sqrt(np.square(smoothed).sum(axis=1, keepdims=True)) + np.float32(1e-9)
    image = np.zeros((INTEGRAL_COLUMNS, len(smoothed) + 1), dtype=np.float32)
    np.cumsum(smoothed.T, axis=0, out=image[1:, 1:])
    np.cumsum(image, axis=1, out=image)
    bands: dict[tuple[int, int], NDArray[np.float32]] = {}

    def sum_area(x0: int, y0: int, x1: int, y1: int) -> NDArray[np.float32]:
        if (y0, y1) not in bands:
            bands[y0, y1] = image[y1] - image[y0]
        return bands[y0, y1][x1 : x1 + count] - bands[y0, y1][x0 : x0 + count]

    items = np.zeros(count, dtype=np.uint32)
    for classifier in CLASSIFIERS:
        first, second = (1 + sum((sum_area(*one) for one in side), np.float32(0)) for side in classifier.list_areas())
        level = np.zeros(count, dtype=np.uint8)
        for threshold in classifier.thresholds:
            level += first >= np.float32(np.exp(threshold)) * second
        items <<= np.uint32(2)
        items |= _GRAY_CODE[level]
    return items
