"""Fingerprints as they come, put aside on disk, so that they can be read again in the order of an index.

Ids and places are held in memory (26 bytes a fingerprint), items never are.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import MAXIMUM_ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.index.batches import FingerprintBatch


ITEM_BYTES = 4


class Spool:
    """All fingerprints of some batches, in the order of ordinals: by recording id, then by items; no empty one, none twice."""

    def __init__(self, batches: Iterable[FingerprintBatch], file: Path) -> None:
        """`file` is written; whoever made the spool deletes it."""
        ids, starts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        seconds = [np.zeros(0, np.uint16)]
        at = 0
        self._file = file
        with file.open("wb") as out:
            for batch in batches:
                first, last = int(batch.starts[0]), int(batch.starts[-1])
                out.write(np.ascontiguousarray(batch.items[first:last], dtype="<u4").data)
                ids.append(batch.recording_ids)
                starts.append(batch.starts[:-1] - first + at)
                lengths.append(np.minimum(np.diff(batch.starts), MAXIMUM_ITEMS))
                seconds.append(batch.seconds)
                at += last - first
        self.recording_ids = np.concatenate(ids)
        self._starts = np.concatenate(starts)
        self.lengths = np.concatenate(lengths)
        self.seconds = np.concatenate(seconds)
        self._keep(np.flatnonzero(self.lengths))
        self._keep(np.argsort(self.recording_ids, kind="stable"))
        self._keep(self._order_of_equals())

    def _keep(self, order: NDArray[np.int64]) -> None:
        self.recording_ids, self.seconds = self.recording_ids[order], self.seconds[order]
        self._starts, self.lengths = self._starts[order], self.lengths[order]

    def _order_of_equals(self) -> NDArray[np.int64]:
        order = np.arange(len(self.recording_ids))
        is_repeat = np.zeros(len(order), dtype=np.bool_)
        bounds = np.flatnonzero(np.diff(self.recording_ids, prepend=-1, append=-1))
        for start in np.flatnonzero(np.diff(bounds) > 1):
            rows = range(bounds[start], bounds[start + 1])
            members = sorted((self._read(slice(at, at + 1)).tobytes(), -int(self.seconds[at]), at) for at in rows)
            order[bounds[start] : bounds[start + 1]] = [at for _, _, at in members]
            is_repeat[bounds[start] + 1 : bounds[start + 1]] = [before[0] == after[0] for before, after in pairwise(members)]
        return order[~is_repeat]

    def blocks(self, items: int) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]:
        """(first ordinal, lengths, items one after the other) of runs of fingerprints that hold about so many items together."""
        first = 0
        ends = np.cumsum(self.lengths)
        while first < len(ends):
            reached = ends[first] - self.lengths[first] + items
            last = max(first + 1, int(np.searchsorted(ends, reached, side="right")))
            yield first, self.lengths[first:last], self._read(slice(first, last))
            first = last

    def _read(self, rows: slice) -> NDArray[np.uint32]:
        # Not by memory map: pages of it would count as the program's memory, and cost more to map than to read.
        starts, ends = self._starts[rows], self._starts[rows] + self.lengths[rows]
        breaks = np.flatnonzero(starts[1:] != ends[:-1])
        items = np.empty(int(self.lengths[rows].sum()), dtype="<u4")
        at = 0
        with self._file.open("rb", buffering=0) as file:
            number = file.fileno()
            for start, end in zip(starts[np.append(0, breaks + 1)].tolist(), ends[np.append(breaks, -1)].tolist(), strict=True):
                at += os.preadv(number, [items[at : at + end - start].data], start * ITEM_BYTES) // ITEM_BYTES
        return items

    def __len__(self) -> int:
        """Number of fingerprints."""
        return len(self.recording_ids)
