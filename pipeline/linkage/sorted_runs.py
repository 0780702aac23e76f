"""Sorted columns of numbers, and runs of equal values in them.

Once rows are in order, a run costs a fraction of a group-by of Polars. Out of scope: what the numbers mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.sorted_search import search_many

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Numbers = npt.NDArray[np.integer[Any]]
    Places = npt.NDArray[np.int64]


SUM_BITS = 20
"""Bits of a slot's number. Numbers are summed in slots, and a million sums stay in the cache of a processor."""
LOW_BITS = np.uint64((1 << 24) - 1)
"""Room for a duration of up to 4.6 hours after the upper bits of a hash."""


def build_lists(ends: Numbers, values: pl.Series) -> pl.Series:
    """Return a column of lists: values laid end to end, cut at each of `ends` (the first is 0, the last their number).

    The column goes through a table, because Polars imports pyarrow.compute, 70 ms, for a column by itself.
    """
    # `newest` keeps Polars' own string layout, so no text is copied.
    texts = values.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    listed = pa.LargeListArray.from_arrays(cast("pa.Int64Array", pl.Series(ends, dtype=pl.Int64).to_arrow()), texts)
    return cast("pl.DataFrame", pl.from_arrow(pa.table({"listed": listed})))["listed"]


def find_run_starts(*columns: Numbers) -> Places:
    """Return the place of the first row of each run: rows in a row that are equal in all columns."""
    rows = len(columns[0])
    is_first = np.zeros(rows, dtype=bool)
    is_first[:1] = True
    for values in columns:
        is_first[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(is_first)


def list_run_places(starts: Numbers, lengths: Numbers) -> Places:
    """Return the places of all rows of some runs, one run after the other."""
    before = np.cumsum(lengths) - lengths
    places: Places = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return places


def mark_known(numbers: pl.Series, known: Numbers) -> npt.NDArray[np.bool_]:
    """Mark the numbers that are among `known`, which are in order.

    For columns that come piece by piece: `Series.is_in` hashes all of `known` again for each piece.
    """
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    values = numbers.to_numpy()
    places = np.minimum(search_many(known, values), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[places] == values
    return found


def sort_distinct(pieces: Iterable[Numbers]) -> Numbers:
    """Return all numbers of the pieces, each once, in order. Pieces that are in order themselves are merged."""
    numbers: Numbers = np.concatenate([*pieces])
    numbers.sort(kind="stable")
    return numbers[find_run_starts(numbers)]


def find_repeated(pieces: Iterable[Numbers]) -> Numbers:
    """Return the numbers that occur several times in all pieces together, each once, in order.

    Polars marks duplicates with a hash table of five times their size.
    """
    numbers: Numbers = np.concatenate([*pieces])
    numbers.sort()
    repeated: Numbers = numbers[1:][numbers[1:] == numbers[:-1]]
    return repeated[find_run_starts(repeated)]


def mark_mixed_runs(runs: Numbers, values: Numbers) -> npt.NDArray[np.bool_]:
    """Mark the rows of each run (of equal `runs`) that holds several values."""
    differs = np.zeros(len(runs), dtype=bool)
    differs[1:] = (runs[1:] == runs[:-1]) & (values[1:] != values[:-1])
    starts = find_run_starts(runs)
    if not len(starts):
        return differs
    found: npt.NDArray[np.bool_] = np.repeat(np.logical_or.reduceat(differs, starts), np.diff(starts, append=len(runs)))
    return found


def pack_with_duration(hashes: Numbers, durations: Numbers) -> Numbers:
    """Pack hashes (u64) and durations (ms) into one number each, for `sort_places`."""
    return (hashes & ~LOW_BITS) | np.minimum(durations, int(LOW_BITS)).astype(np.uint64)


def sort_places(packed: Numbers, first: Numbers, then: Numbers) -> Places:
    """Return the places of the rows in the order of `first`, then of `then`.

    `packed`: as much of both as one 64-bit number holds, `first` in its upper bits. It sorts in half the time of two columns. In the rare
    case that it does not order all rows, the two columns are sorted.
    """
    order = pl.Series(packed).arg_sort().to_numpy()
    one, other = first[order], then[order]
    is_astray = (one[1:] < one[:-1]) | ((one[1:] == one[:-1]) & (other[1:] < other[:-1]))
    return np.lexsort((then, first)) if is_astray.any() else order
