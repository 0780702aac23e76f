"""Differences between two large columns of numbers that are nearly equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.linkage.sorted_runs import SUM_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

NUMBERS_PER_CHUNK = 1 << 14


def find_differing_ids(before: pl.Series, after: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the numbers that are in `before` only, and those in `after` only."""
    one, other = (ids.filter(pl.Series(differ)) for ids, differ in zip((before, after), mark_differing_sums(before, after), strict=True))
    # Sums only narrow the search; the few numbers in differing slots are looked up exactly.
    return one.filter(~one.is_in(other.implode())), other.filter(~other.is_in(one.implode()))


def mark_differing_sums(one: pl.Series, other: pl.Series) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Mark the numbers (i64, evenly spread) that may be on one side only: few, if the sides differ little.

    Both sides are summed by their upper bits. Equal contents give equal sums; different contents give equal sums in 1 of 2^64 cases. That
    takes an eighth of the time of a lookup of each number.
    """
    sums = np.zeros((2, 1 << SUM_BITS), dtype=np.uint64)
    # Addition has no order: the sides may hold equal numbers in any.
    for held, ids in zip(sums, (one, other), strict=True):
        for chunk in _cut_chunks(ids):
            np.add.at(held, _find_slots(chunk), chunk)
    differ = sums[0] != sums[1]
    # The empty start gives a mask even if a side has no number.
    found = [np.concatenate([differ[:0], *(differ[_find_slots(chunk)] for chunk in _cut_chunks(ids))]) for ids in (one, other)]
    return found[0], found[1]


def _cut_chunks(ids: pl.Series) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield pieces that stay in the cache: fresh memory for the slots of all takes longer to get than to fill."""
    for numbers in (held.to_numpy().view(np.uint64) for held in ids.get_chunks()):
        yield from (numbers[start : start + NUMBERS_PER_CHUNK] for start in range(0, len(numbers), NUMBERS_PER_CHUNK))


def _find_slots(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (ids >> np.uint64(64 - SUM_BITS)).view(np.int64)
