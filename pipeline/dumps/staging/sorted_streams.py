"""Two streams of frames sorted by one key, read side by side: parents in blocks, each block with its children.

Records are nested this way with one block in memory: a database sorts both sides and spills, and Polars nests the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


def pair_blocks(parents: Iterator[pl.DataFrame], children: Iterator[pl.DataFrame], key: str) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield each block of `parents` with the rows of `children` whose `key` is in it; both sides ascend by `key`.

    Children without a parent are skipped. Parents with a null key come last and have no children; no child has a null key.
    """
    rest: pl.DataFrame | None = None
    for block in parents:
        last = cast("int | None", block[key].max())
        taken: list[pl.DataFrame] = []
        # Invariant: `rest` holds the first children that no block has taken. A block whose keys are all null takes none.
        while last is not None:
            if rest is None:
                rest = next(children, None)
                if rest is None:
                    break
            # Children with the last key of the block belong to it; a later block never begins with that key except as a repeated parent.
            cut = rest[key].search_sorted(last, side="right")
            taken.append(rest.head(cut))
            if cut < rest.height:
                rest = rest.slice(cut)
                break
            rest = None
        rows = pl.concat(taken) if taken else pl.DataFrame()
        # Children whose key is between those of two parents have none.
        yield block, rows.join(block, on=key, how="semi", maintain_order="left") if rows.height else rows


def nest_rows(block: pl.DataFrame, rows: pl.DataFrame, key: str, fields: list[str]) -> pl.Series:
    """Return a list of structs of `fields` per row of `block`, in the order of `rows`; empty where `rows` has none.

    `block` and `rows` are a pair of `pair_blocks`. If several rows of `block` share a key, the first one gets all children.
    """
    # Null sorts last in the block, so the largest number keeps the keys ascending for the search.
    keys = block[key].fill_null(np.iinfo(np.int64).max).to_numpy()
    children = rows[key].to_numpy()
    starts = np.searchsorted(children, keys, side="left")
    # A record that is delivered twice must not show its children twice: the second list starts where the children end, so it is empty.
    repeated = np.append(False, keys[1:] == keys[:-1])
    starts = np.where(repeated, np.searchsorted(children, keys, side="right"), starts)
    # Arrow lists are offsets into one array. Building them costs no copy of the children and no Python object per row.
    offsets = np.append(starts, rows.height)
    values = rows.select(pl.struct(fields).alias("value"))["value"].to_arrow()
    lists = pa.LargeListArray.from_arrays(cast("pa.Int64Array", pl.Series(offsets, dtype=pl.Int64).to_arrow()), values)
    return pl.Series(pl.from_arrow(lists))
