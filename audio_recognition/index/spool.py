"""Incoming fingerprints, stored on disk so that they can be read again in the order of an index.

Ids and places are in memory (26 bytes a fingerprint), items never are.
"""

from __future__ import annotations

import os
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import MAXIMUM_ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.index.batches import FingerprintBatch


ITEM_BYTES = 4
ITEMS_PER_STRIPE = 1 << 24
"""64 MB. A stripe is deleted when it has been read: later writes reuse its pages in memory, and less is on disk at once."""
_ITEMS_AT_ONCE = 1 << 15
"""128 kB per write. Writes of tens of MB took pages that the system had not used for long, at up to six times the cost."""


class Spool:
    """All fingerprints of some batches, in the order of ordinals: by recording id, then by items; no empty ones, no duplicates."""

    def __init__(self, batches: Iterable[FingerprintBatch], folder: Path) -> None:
        """Write stripes into `folder`; the caller deletes what is left of them."""
        ids, starts, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        seconds = [np.zeros(0, np.uint16)]
        at = 0
        self._folder = folder
        for batch in batches:
            first, last = int(batch.starts[0]), int(batch.starts[-1])
            self._write(at, batch.items[first:last])
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
        # Sort by id first, so only fingerprints with equal ids must be read and compared.
        self._keep(np.argsort(self.recording_ids, kind="stable"))
        self._keep(self._order_equals())

    def _keep(self, order: NDArray[np.int64]) -> None:
        self.recording_ids, self.seconds = self.recording_ids[order], self.seconds[order]
        self._starts, self.lengths = self._starts[order], self.lengths[order]

    def _order_equals(self) -> NDArray[np.int64]:
        order = np.arange(len(self.recording_ids))
        is_repeat = np.zeros(len(order), dtype=np.bool_)
        bounds = np.flatnonzero(np.diff(self.recording_ids, prepend=-1, append=-1))
        for start in np.flatnonzero(np.diff(bounds) > 1):
            rows = range(bounds[start], bounds[start + 1])
            # Fingerprints of one recording are ordered by content, so the order of batches does not change the index.
            # The first of equal ones stays: the one whose audio lasts longest.
            members = sorted((self._read(slice(at, at + 1)).tobytes(), -int(self.seconds[at]), at) for at in rows)
            order[bounds[start] : bounds[start + 1]] = [at for _, _, at in members]
            is_repeat[bounds[start] + 1 : bounds[start + 1]] = [before[0] == after[0] for before, after in pairwise(members)]
        return order[~is_repeat]

    def iterate_blocks(self, items: int, fingerprints: int) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]:
        """Yield (first ordinal, lengths, items one after the other) of runs of fingerprints with about this many items together.

        Each has at most `fingerprints`. Blocks are deleted from disk when they were read, so this works once.
        """
        first, deleted = 0, 0
        ends = np.cumsum(self.lengths)
        needed = self._find_last_uses()
        while first < len(ends):
            reached = ends[first] - self.lengths[first] + items
            last = min(max(first + 1, int(np.searchsorted(ends, reached, side="right"))), first + fingerprints)
            yield first, self.lengths[first:last], self._read(slice(first, last))
            first = last
            # Later writes reuse the pages that a deleted stripe frees; fresh ones cost a virtual machine several times as much.
            for stripe in range(deleted, int(np.searchsorted(needed, first, side="right"))):
                self._get_stripe_path(stripe).unlink()
                deleted = stripe + 1

    def _find_last_uses(self) -> NDArray[np.int64]:
        """Return for each stripe the ordinal from which neither it nor any before it is read."""
        stripes = self._starts // ITEMS_PER_STRIPE
        needed = np.zeros(int(stripes.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(needed, stripes, np.arange(1, len(stripes) + 1))
        return np.maximum.accumulate(needed)

    def _get_stripe_path(self, number: int) -> Path:
        return self._folder / f"items-{number:06d}"

    def _write(self, at: int, items: NDArray[np.uint32]) -> None:
        """Write items, the first of which is number `at` of all."""
        while len(items):
            stripe, before = divmod(at, ITEMS_PER_STRIPE)
            piece = items[: ITEMS_PER_STRIPE - before]
            with self._get_stripe_path(stripe).open("ab") as file:
                for start in range(0, len(piece), _ITEMS_AT_ONCE):
                    file.write(np.ascontiguousarray(piece[start : start + _ITEMS_AT_ONCE], dtype="<u4").data)
            items, at = items[len(piece) :], at + len(piece)

    def _read(self, rows: slice) -> NDArray[np.uint32]:
        # Not by memory map: its pages would count as the program's memory, and mapping costs more than reading.
        items = np.empty(int(self.lengths[rows].sum()), dtype="<u4")
        for stripe, pieces in groupby(sorted(self._iterate_pieces(rows)), key=itemgetter(0)):
            with self._get_stripe_path(stripe).open("rb", buffering=0) as file:
                for _, start, count, to in pieces:
                    os.preadv(file.fileno(), [items[to : to + count].data], start * ITEM_BYTES)
        return items

    def _iterate_pieces(self, rows: slice) -> Iterator[tuple[int, int, int, int]]:
        """Yield the pieces of some rows: stripe, first item in it, number of items, target position."""
        starts, ends = self._starts[rows], self._starts[rows] + self.lengths[rows]
        # Fingerprints that are neighbours on disk are read in one piece.
        breaks = np.flatnonzero(starts[1:] != ends[:-1])
        to = 0
        for start, end in zip(starts[np.append(0, breaks + 1)].tolist(), ends[np.append(breaks, -1)].tolist(), strict=True):
            at = start
            while at < end:
                stripe, before = divmod(at, ITEMS_PER_STRIPE)
                count = min(end - at, ITEMS_PER_STRIPE - before)
                yield stripe, before, count, to
                at, to = at + count, to + count

    def __len__(self) -> int:
        """Return the number of fingerprints."""
        return len(self.recording_ids)
