"""A peer that identifies whole files, as AcoustID does: 120 hashes a recording from item 80 on, no positions.

Its candidates are the recordings that share most hashes with the query. The right one counts as found among the ten best, without any
comparison or gate. Its recall here is therefore higher than that of such a service, and it has no false accepts to report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from audio_recognition.index.batches import FingerprintBatch

_FIRST, _HASHES, _BEST = 80, 120, 10
_SHIFT = np.uint32(4)
_LONGEST = 16_384


def compute_hashes(items: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the hashes of a fingerprint or a clip."""
    start = max(0, min(_FIRST, len(items) - _HASHES))
    return np.unique(items[start : start + _HASHES] >> _SHIFT)


class WholeFiles:
    """Sorted (hash, recording) pairs in memory."""

    def __init__(self, batches: Iterable[FingerprintBatch]) -> None:
        """Collect all recordings of the batches."""
        kept = []
        for batch in batches:
            for number, recording in enumerate(batch.recording_ids.tolist()):
                mine = compute_hashes(batch.items[batch.starts[number] : batch.starts[number + 1]])
                kept.append((mine.astype(np.uint64) << np.uint64(32)) | np.uint64(recording))
        self._pairs = np.concatenate(kept)
        self._pairs.sort()

    def find_best(self, items: NDArray[np.uint32]) -> list[int]:
        """Return the recordings that share most hashes, most first."""
        asked = compute_hashes(items).astype(np.uint64)
        starts = np.searchsorted(self._pairs, asked << np.uint64(32))
        ends = np.searchsorted(self._pairs, (asked + np.uint64(1)) << np.uint64(32))
        shared = [
            self._pairs[start:end] & np.uint64(0xFFFF_FFFF) for start, end in zip(starts, ends, strict=True) if end - start < _LONGEST
        ]
        if not shared:
            return []
        recordings, counts = np.unique(np.concatenate(shared), return_counts=True)
        return [int(one) for one in recordings[np.argsort(-counts, kind="stable")[:_BEST]]]
