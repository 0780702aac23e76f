"""Differences between two large tables that are nearly equal, neither of which is in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.frame_texts import copy_texts
from pipeline.linkage.sorted_runs import SUM_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    ReadPieces = Callable[[], Iterable[pl.DataFrame]]
    """Reads the rows of a table from its start, at least one piece; pieces may be empty."""

NUMBERS_PER_CHUNK = 1 << 14
SLOTS_PER_NUMBER = 2
"""Slots to which each number is added. The upper SUM_BITS bits choose the first, the bits below them the second. With one slot, a night
of 213,499 changed records looks up some 9 million numbers of 28.2 million on each side; with two, some 3 million."""


def find_differing_rows(before: ReadPieces, after: ReadPieces, number: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that are in `before` only, and those in `after` only, in their order. Each side is read twice, piece by piece.

    `number` stands for a row: 64 bits, evenly spread. Two columns of content hashes took 45 bytes a recording in memory.
    """
    # The first time for sums, which say where the sides differ, and the second time for the rows there.
    differ = _sum_numbers(before, number) != _sum_numbers(after, number)
    one, other = (_read_marked_rows(side, number, differ) for side in (before, after))
    # Sums only narrow the search; the few numbers in differing slots are looked up exactly.
    numbers = [rows.select(number).to_series().implode() for rows in (one, other)]
    return one.filter(~number.is_in(numbers[1])), other.filter(~number.is_in(numbers[0]))


def _sum_numbers(side: ReadPieces, number: pl.Expr) -> npt.NDArray[np.uint64]:
    """Return the sums of the numbers in each slot: a row of slots for each of SLOTS_PER_NUMBER.

    Equal contents give equal sums in any order; different contents do so in 1 of 2^64 cases.
    """
    sums = np.zeros((SLOTS_PER_NUMBER, 1 << SUM_BITS), dtype=np.uint64)
    for rows in side():
        for chunk in _cut_chunks(rows, number):
            for place, held in enumerate(sums):
                np.add.at(held, _find_slots(chunk, place), chunk)
    return sums


def _read_marked_rows(side: ReadPieces, number: pl.Expr, marked: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Return the rows whose number has only marked slots: few, if the sides differ little."""
    found = []
    for rows in side():
        masks = [
            np.logical_and.reduce([held[_find_slots(chunk, place)] for place, held in enumerate(marked)])
            for chunk in _cut_chunks(rows, number)
        ]
        # The empty start gives a mask even if a piece has no row. Rows that a filter left keep all texts of their piece.
        found.append(copy_texts(rows.filter(pl.Series(np.concatenate([marked[0, :0], *masks])))))
    return pl.concat(found)


def _cut_chunks(rows: pl.DataFrame, number: pl.Expr) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the numbers in chunks that stay in the cache: fresh memory for the slots of all takes longer to get than to fill."""
    for numbers in (held.to_numpy().view(np.uint64) for held in rows.select(number).to_series().get_chunks()):
        yield from (numbers[start : start + NUMBERS_PER_CHUNK] for start in range(0, len(numbers), NUMBERS_PER_CHUNK))


def _find_slots(numbers: npt.NDArray[np.uint64], place: int) -> npt.NDArray[np.int64]:
    """Return the slots by the upper bits (place 0), or by the bits below those."""
    shift, mask = np.uint64(64 - (place + 1) * SUM_BITS), np.uint64((1 << SUM_BITS) - 1)
    return ((numbers >> shift) & mask).view(np.int64)
