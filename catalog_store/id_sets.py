"""Sets of ids as arrays, to compare millions of references: a byte per id when ids count up, else eight.

Ids come from tables and serving files; snapshot_invariants.py decides what must hold between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from catalog_store.sorted_search import search_many
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

ROWS_PER_BATCH = 500_000
SHOWN = 3
"""Wrong ids that a message names."""
LARGEST_COUNTED = 1 << 33
"""Ids from a registry count up and stay below this; ids that are hashes do not."""


class IdSet:
    """A set of ids; `repeated` counts the given ids that were already in it."""

    def __init__(self, blocks: Iterable[NDArray[np.int64]], *, rows: int, is_counted: bool = True) -> None:
        """Collect `blocks` of ids in any order, `rows` in all. `is_counted`: from a registry that counts up, else any 64 bits.

        ValueError for an id that no registry issues.
        """
        self._present = np.zeros(0, dtype=np.bool_)
        self._sorted = np.empty(0 if is_counted else rows, dtype=np.int64)
        self._is_counted = is_counted
        count = 0
        for block in blocks:
            if is_counted:
                self._add(block)
            else:
                self._sorted[count : count + len(block)] = block
            count += len(block)
        self._sorted = self._sorted[:count]
        self._sorted.sort()
        self.count = int(np.count_nonzero(self._present)) if is_counted else sum(map(len, self.read_blocks()))
        self.repeated = count - self.count

    def _add(self, ids: NDArray[np.int64]) -> None:
        if not len(ids):
            return
        smallest, largest = int(ids.min()), int(ids.max())
        if smallest < 0 or largest >= LARGEST_COUNTED:
            raise ValueError(
                f"id {smallest if smallest < 0 else largest} was never issued: ids are 0 to {LARGEST_COUNTED - 1}, so the file is damaged"
            )
        if largest >= len(self._present):
            # Growth by a quarter keeps the number of copies logarithmic when blocks ascend.
            grown = np.zeros(max(largest + 1, len(self._present) * 5 // 4), dtype=np.bool_)
            grown[: len(self._present)] = self._present
            self._present = grown
        self._present[ids] = True

    def find_unknown(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of `ids` that are not in the set."""
        if self._is_counted:
            inside = (ids >= 0) & (ids < len(self._present))
            inside[inside] = self._present[ids[inside]]
            outside: NDArray[np.int64] = ids[~inside]
            return outside
        if not len(self._sorted):
            return ids
        # A search after the end has no entry; the last one stands in and differs.
        at = np.minimum(search_many(self._sorted, ids), len(self._sorted) - 1)
        lacked: NDArray[np.int64] = ids[self._sorted[at] != ids]
        return lacked

    def find_missing(self, other: IdSet) -> tuple[int, list[int]]:
        """Return (how many ids of this set `other` lacks, the first of them)."""
        count, shown = 0, list[int]()
        for ids in self.read_blocks():
            lacked = other.find_unknown(ids)
            count += len(lacked)
            shown += lacked[: SHOWN - len(shown)].tolist()
        return count, shown

    def read_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the ids ascending, block by block."""
        length = len(self._present) if self._is_counted else len(self._sorted)
        for start in range(0, length, ROWS_PER_BATCH):
            end = start + ROWS_PER_BATCH
            if self._is_counted:
                yield start + np.flatnonzero(self._present[start:end])
            else:
                block = self._sorted[start:end]
                yield block[np.concatenate([[start == 0 or block[0] != self._sorted[start - 1]], block[1:] != block[:-1]])]


def read_batches(table: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a table, block by block; "releases.list.element.release_id" names a field in a list."""
    for part in list_parts(table):
        with pq.ParquetFile(part) as file:
            yield from file.iter_batches(ROWS_PER_BATCH, columns=columns)
