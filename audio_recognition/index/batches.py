"""Batches of fingerprints on their way into an index, as flat columns: the shape of Arrow lists in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from audio_recognition.index.index_errors import FingerprintsInvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class FingerprintBatch:
    """Fingerprint i belongs to recording_ids[i] and is items[starts[i]:starts[i + 1]].

    recording_ids: int64 [k], none negative; starts: int64 [k + 1]; items: uint32; seconds: uint16 [k], the length of the whole audio (a
    fingerprint often covers only its first two minutes), 0 for unknown. A recording may have several fingerprints.
    """

    recording_ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    items: NDArray[np.uint32]
    seconds: NDArray[np.uint16]

    def __post_init__(self) -> None:
        """Raise FingerprintsInvalidError when the columns do not fit together."""
        ids, starts = self.recording_ids, self.starts
        if len(starts) != len(ids) + 1 or starts[0] < 0 or starts[-1] > len(self.items) or (np.diff(starts) < 0).any():
            raise FingerprintsInvalidError(f"starts must be {len(ids) + 1} ascending places within {len(self.items)} items")
        if len(ids) and ids.min() < 0:
            raise FingerprintsInvalidError(f"recording id {ids.min()} is negative")
        if len(self.seconds) != len(ids):
            raise FingerprintsInvalidError(f"there are {len(self.seconds)} durations for {len(ids)} fingerprints")
        if self.items.dtype != np.uint32:
            raise FingerprintsInvalidError(f"items are {self.items.dtype}, not uint32")

    @classmethod
    def of(cls, recording_ids: Sequence[int], fingerprints: Sequence[NDArray[np.uint32]], seconds: Sequence[float] | None = None) -> Self:
        """Build a batch of one array per fingerprint."""
        known = np.zeros(len(recording_ids)) if seconds is None else np.asarray(seconds)
        starts = np.zeros(len(fingerprints) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in fingerprints], out=starts[1:])
        items = np.concatenate(fingerprints).astype(np.uint32, copy=False) if fingerprints else np.zeros(0, np.uint32)
        # 16 bits hold 18 hours; longer audio counts as that long.
        return cls(
            np.asarray(recording_ids, dtype=np.int64), starts, items, np.clip(known.round(), 0, np.iinfo(np.uint16).max).astype(np.uint16)
        )
