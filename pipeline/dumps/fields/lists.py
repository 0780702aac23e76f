"""Construction of list columns from entries or from other lists.

Polars' `concat_list` takes 2 to 4 us a row for lists of structs, more than all else that is done to a record.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa


def list_entries(*entries: pl.Expr) -> pl.Expr:
    """Return an expression for a list of these values, one of each; they have one type."""
    return pl.concat_arr(*entries).arr.to_list()


def concat_lists(first: pl.Expr, second: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return an expression for the entries of `first`, then those of `second`. Both are lists of `dtype` and never null."""
    both = pl.struct(first=first.cast(dtype), second=second.cast(dtype))
    return both.map_batches(_concat, return_dtype=dtype, is_elementwise=True)


def _concat(both: pl.Series) -> pl.Series:
    lists = [cast("pa.LargeListArray[Any]", both.struct.field(name).to_arrow()) for name in ("first", "second")]
    lengths = [pl.Series(pl.from_arrow(one.value_lengths())).to_numpy() for one in lists]
    rows = np.arange(len(both))
    order = np.argsort(np.concatenate([np.repeat(rows, length) for length in lengths]), kind="stable")
    entries = pl.concat([pl.Series(pl.from_arrow(one.flatten())) for one in lists]).gather(order)
    offsets = pl.Series(np.append(0, np.cumsum(lengths[0] + lengths[1])), dtype=pl.Int64)
    joined = pa.LargeListArray.from_arrays(cast("pa.Int64Array", offsets.to_arrow()), entries.to_arrow())
    return pl.Series(pl.from_arrow(joined))
