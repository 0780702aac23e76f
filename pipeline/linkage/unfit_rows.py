"""Work on the rows of a table that names the row on which it fails.

What must not live here: which record of which platform such a row stands for (failures.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Result = TypeVar("Result")

SHOWN_ROWS = 10
_SHOWN_CHARACTERS = 300
_FAULTS = (Exception, pl.exceptions.PanicException)
_OF_THE_MACHINE = (MemoryError, OSError)


class UnfitRowsError(Exception):
    """Rows that cannot be worked on: `named` holds the columns that name them, `said` what the work ended in."""

    def __init__(self, named: dict[str, list[object]], said: str) -> None:
        """Both are kept as they are, so that the error can come from another process."""
        super().__init__(named, said)
        self.named = named
        self.said = said


def work_on(rows: pl.DataFrame, work: Callable[[pl.DataFrame], Result], by: Sequence[str], unit: str | None = None) -> Result:
    """Return `work(rows)`.

    UnfitRowsError when it fails on a single row too, or on the rows of one value of `unit`, which is found by halves: it names that row by
    the columns `by`, which are those of records (platform, external_id), names of artists (name), or atoms (any others). An error
    that comes only of all rows together, or of a lack of memory or disk, is raised as it is.
    """
    try:
        return work(rows)
    except _OF_THE_MACHINE:
        raise
    except _FAULTS as error:
        unfit = _first_unfit(rows, work, unit)
        if unfit is None:
            raise
        named = unfit.select(by).head(SHOWN_ROWS).to_dict(as_series=False)
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:_SHOWN_CHARACTERS]}"
        raise UnfitRowsError(named, said) from error


def _first_unfit(rows: pl.DataFrame, work: Callable[[pl.DataFrame], object], unit: str | None) -> pl.DataFrame | None:
    """The first row, or rows of one `unit`, on which the work fails; None when it fails on no half of the rows."""
    numbers = rows.select(pl.int_range(pl.len()) if unit is None else pl.col(unit).rank("dense").cast(pl.Int64) - 1).to_series()
    first, end = 0, int(numbers.n_unique())
    while end - first > 1:
        middle = (first + end) // 2
        if _fails(rows.filter(numbers.is_between(first, middle - 1)), work):
            end = middle
        else:
            first = middle
    unfit = rows.filter(numbers == first)
    return unfit if unfit.height and _fails(unfit, work) else None


def _fails(rows: pl.DataFrame, work: Callable[[pl.DataFrame], object]) -> bool:
    try:
        work(rows)
    except _FAULTS:  # whatever it is, it is what is looked for
        return True
    return False
