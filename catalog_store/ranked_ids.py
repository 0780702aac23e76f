"""Ids in the order of a number, most of it first: the order of search documents, of keys and of lists.

Key and id are packed into one integer each and sorted in place, so a row costs 8 bytes. A sorted frame of Polars takes 30. Tables are read
part by part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Ids = NDArray[np.unsignedinteger]
    Block = tuple[NDArray[np.integer], NDArray[np.uint32]]

_ID_BITS = np.uint64(32)
_LARGEST_PACKED = (1 << 32) - 1


def rank_by_popularity(tables: Mapping[str, Path]) -> tuple[Ids, NDArray[np.float32]]:
    """Return the recording ids, most popular first, ties by id, and the popularity of each.

    Popularities are equal here when they are equal as 32-bit numbers, as readers see them.
    """
    found = list_parts(tables["recording"])
    ordered, keys = sort_blocks(lambda: map(_read_popularities, found), sum(pq.read_metadata(part).num_rows for part in found))
    return ordered, keys.view(np.float32)


def _read_popularities(part: Path) -> Block:
    read = pl.read_parquet(part, columns=["recording_id", "popularity"])
    # The bits of numbers from 0 on sort as the numbers do. Adding 0 turns -0 into 0.
    keys = (read["popularity"].cast(pl.Float32).to_numpy() + np.float32(0)).view(np.uint32)
    return read["recording_id"].to_numpy(), keys


def sort_blocks(read: Callable[[], Iterable[Block]], rows: int) -> tuple[Ids, NDArray[np.uint32]]:
    """Return all ids by key descending, ties by id ascending, and the keys in that order: 16 bytes a row at the peak.

    `read` yields blocks of (ids, keys), `rows` in all. It is called again when an id takes more than 32 bits.
    """
    packed, filled = np.empty(rows, dtype=np.uint64), 0
    for ids, keys in read():
        if len(ids) and int(ids.max()) > _LARGEST_PACKED:
            return _sort_wide(read)
        block = packed[filled : filled + len(ids)]
        block[:] = ~keys
        block <<= _ID_BITS
        block |= ids.astype(np.uint32)
        filled += len(ids)
    packed.sort()
    # The casts drop the upper half, and after the shift there is none.
    ordered = packed.astype(np.uint32)
    packed >>= _ID_BITS
    sorted_keys = packed.astype(np.uint32)
    np.invert(sorted_keys, out=sorted_keys)
    return ordered, sorted_keys


def _sort_wide(read: Callable[[], Iterable[Block]]) -> tuple[Ids, NDArray[np.uint32]]:
    ids, keys = (np.concatenate(columns) for columns in zip(*read(), strict=True))
    order = np.lexsort((ids, ~keys))
    return ids[order].astype(np.uint64), keys[order]


def number_ids(ordered: Ids) -> NDArray[np.uint32]:
    """Return the place of each id in `ordered`, by id. Ids come from a registry that counts up, so the array has few gaps."""
    places = np.zeros(int(ordered.max(initial=0)) + 1, dtype=np.uint32)
    places[ordered] = np.arange(len(ordered), dtype=np.uint32)
    return places
