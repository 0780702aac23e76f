"""Ids in the order of a number, most of it first: the order of search documents, of keys and of lists.

Key and id are packed into one integer each and sorted in place, so a row costs 8 bytes. A sorted frame of Polars takes 30.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.tables.files import parts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Ids = NDArray[np.unsignedinteger]

_ID_BITS = np.uint64(32)
_LARGEST_PACKED = (1 << 32) - 1


def rank_by_popularity(tables: Mapping[str, Path]) -> tuple[Ids, NDArray[np.float32]]:
    """Return the recording ids, most popular first, ties by id, and the popularity of each.

    Popularities are equal here when they are equal as 32-bit numbers, as readers see them.
    """
    rows = sum(pq.read_metadata(part).num_rows for part in parts(tables["recording"]))
    ids, keys, filled = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.uint32), 0
    for part in parts(tables["recording"]):
        read = pl.read_parquet(part, columns=["recording_id", "popularity"])
        block = slice(filled, filled := filled + read.height)
        ids[block] = read["recording_id"].to_numpy()
        # The bits of numbers from 0 on sort as the numbers do. Adding 0 turns -0 into 0.
        keys[block] = (read["popularity"].cast(pl.Float32).to_numpy() + np.float32(0)).view(np.uint32)
    ordered, sorted_keys = sort_ids(ids, keys)
    return ordered, sorted_keys.view(np.float32)


def sort_ids(ids: NDArray[np.integer], keys: NDArray[np.uint32]) -> tuple[Ids, NDArray[np.uint32]]:
    """Return `ids` by key descending, ties by id ascending, and the keys in that order."""
    if len(ids) and int(ids.max()) > _LARGEST_PACKED:
        order = np.lexsort((ids, ~keys))
        return ids[order].astype(np.uint64), keys[order]
    packed = (~keys).astype(np.uint64)
    packed <<= _ID_BITS
    packed |= ids.astype(np.uint32)
    packed.sort()
    # The casts drop the upper half and the shifted-out lower half.
    return packed.astype(np.uint32), ~(packed >> _ID_BITS).astype(np.uint32)


def number_ids(ordered: Ids) -> NDArray[np.uint32]:
    """Return the place of each id in `ordered`, by id. Ids come from a registry that counts up, so the array has few gaps."""
    places = np.zeros(int(ordered.max(initial=0)) + 1, dtype=np.uint32)
    places[ordered] = np.arange(len(ordered), dtype=np.uint32)
    return places
