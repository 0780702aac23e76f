"""Sorting numbers and finding runs among them: what a group-by of Polars costs several times as much for, once rows are in order.

What must not live here: what the numbers mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Numbers = npt.NDArray[np.integer[Any]]
    Places = npt.NDArray[np.int64]


SUM_BITS = 20
"""A million sums stay in the cache of a processor."""
NUMBERS_PER_CHUNK = 1 << 14
LOW_BITS = np.uint64((1 << 24) - 1)
"""Room for a duration of up to 4.6 hours behind the upper bits of a hash."""


def listed_from(ends: Numbers, values: pl.Series) -> pl.Series:
    """A column of lists: values laid end to end, cut at each of `ends` (the first is 0, the last their number).

    By way of a table: Polars imports pyarrow.compute, 70 ms, to take over a column by itself.
    """
    texts = values.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    listed = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), texts)
    return cast("pl.DataFrame", pl.from_arrow(pa.table({"listed": listed})))["listed"]


def run_starts(*columns: Numbers) -> Places:
    """Where each run of rows begins that are equal in all columns; of no rows none."""
    rows = len(columns[0])
    is_first = np.zeros(rows, dtype=bool)
    is_first[:1] = True
    for values in columns:
        is_first[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(is_first)


def places_of_runs(starts: Numbers, lengths: Numbers) -> Places:
    """The places of all rows of some runs, given by where they begin and how many rows they have, one run after the other."""
    before = np.cumsum(lengths) - lengths
    places: Places = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return places


def in_mixed_runs(runs: Numbers, values: Numbers) -> npt.NDArray[np.bool_]:
    """Which rows stand in a run (of equal `runs`) that holds several values."""
    differs = np.zeros(len(runs), dtype=bool)
    differs[1:] = (runs[1:] == runs[:-1]) & (values[1:] != values[:-1])
    starts = run_starts(runs)
    if not len(starts):
        return differs
    found: npt.NDArray[np.bool_] = np.repeat(np.logical_or.reduceat(differs, starts), np.diff(starts, append=len(runs)))
    return found


def in_differing_sums(one: pl.Series, other: pl.Series) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which numbers (i64, evenly spread) may stand on one side only: few, if the sides differ little.

    Summed up by their upper bits, both sides agree where they hold the same (in all but 1 of 2^64 cases if not): an eighth of the time that
    it takes to look each number up among the others.
    """
    sums = np.zeros((2, 1 << SUM_BITS), dtype=np.uint64)
    for held, ids in zip(sums, (one, other), strict=True):
        for chunk in _chunks(ids):
            np.add.at(held, _slots(chunk), chunk)
    differ = sums[0] != sums[1]
    found = [np.concatenate([differ[:0], *(differ[_slots(chunk)] for chunk in _chunks(ids))]) for ids in (one, other)]
    return found[0], found[1]


def _chunks(ids: pl.Series) -> Iterator[npt.NDArray[np.uint64]]:
    """Some that stay in the cache: to get fresh memory for the slots of all takes longer than to fill it."""
    for numbers in (held.to_numpy().view(np.uint64) for held in ids.get_chunks()):
        yield from (numbers[start : start + NUMBERS_PER_CHUNK] for start in range(0, len(numbers), NUMBERS_PER_CHUNK))


def _slots(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (ids >> np.uint64(64 - SUM_BITS)).view(np.int64)


def packed_with_duration(hashes: Numbers, durations: Numbers) -> Numbers:
    """Hashes (u64) and durations (ms) for `places_in_order`."""
    return (hashes & ~LOW_BITS) | np.minimum(durations, int(LOW_BITS)).astype(np.uint64)


def places_in_order(packed: Numbers, first: Numbers, then: Numbers) -> Places:
    """Places of the rows in the order of `first`, of equal ones in the order of `then`.

    `packed`: as much of both as one 64-bit number holds, `first` in its upper bits: it sorts in half the time of two columns. Where that
    was not enough to tell rows apart, which is rare, the two columns are sorted.
    """
    order = pl.Series(packed).arg_sort().to_numpy()
    one, other = first[order], then[order]
    is_astray = (one[1:] < one[:-1]) | ((one[1:] == one[:-1]) & (other[1:] < other[:-1]))
    return np.lexsort((then, first)) if is_astray.any() else order
