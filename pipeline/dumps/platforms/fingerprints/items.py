"""Items of fingerprints as columns of unsigned numbers, and the key of a fingerprint, made of its id and items.

The key is part of the format of published indexes: with another hash every fingerprint is indexed again once. Out of scope:
what items mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POSITIVE = np.uint64(2**63 - 1)
_STEP = np.uint64(0x9E3779B97F4A7C15)


def to_unsigned(lists: pl.Series) -> pl.Series:
    """Return lists of 32-bit numbers, signed or not, as lists of uint32 (-1 is 2**32 - 1). No list and no number is null."""
    values, starts = flatten_lists(lists)
    return build_lists(values.astype(np.int64).astype(np.uint32), starts)


def flatten_lists(lists: pl.Series) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return the values of all lists in sequence, and the start of each list (one place more than lists)."""
    lengths = lists.list.len().to_numpy()
    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    # empty_as_null=False: a null for each empty list would shift all later values.
    return lists.explode(empty_as_null=False).to_numpy(), starts


def build_lists(values: NDArray[np.uint32], starts: NDArray[np.int64]) -> pl.Series:
    """Return the lists again from the two arrays of `flat`."""
    array = pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), pa.array(values, pa.uint32()))
    return pl.Series("items", array, dtype=pl.List(pl.UInt32))


def build_fingerprint_keys(ids: pl.Series, items: pl.Series) -> pl.Series:
    """Return a 63-bit hash of each id and its items, equal on every machine and in every version."""
    values, starts = flatten_lists(items)
    # The place of an item goes into its hash, so that another order gives another key although the hashes are summed.
    place = np.arange(len(values), dtype=np.uint64) - np.repeat(starts[:-1], np.diff(starts)).astype(np.uint64)
    mixed = _mix(values.astype(np.uint64) + (place << np.uint64(32)))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    # Unsigned sums wrap around. Differences stay right modulo 2**64, so one running sum serves all lists.
    total = sums[starts[1:]] - sums[starts[:-1]]
    key = _mix(_mix(ids.to_numpy().astype(np.int64).view(np.uint64)) + total)
    return pl.Series("fingerprint_key", (key & _POSITIVE).astype(np.int64))


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the splitmix64 finaliser."""
    value = values + _STEP
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
