"""Work on the rows of a frame that names the row on which it fails.

Out of scope: which source record such a row stands for (failing_records.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Result = TypeVar("Result")

SHOWN_ROWS = 10
_SHOWN_CHARACTERS = 300
# A panic inside Polars derives from BaseException, so `Exception` alone would miss it.
_FAULTS = (Exception, pl.exceptions.PanicException)
# No row is to blame for these.
_MACHINE_FAULTS = (MemoryError, OSError)


class FailingRowsError(Exception):
    """Rows on which work fails: `named` holds the columns that identify them, `cause` the text of the error."""

    def __init__(self, named: dict[str, list[object]], cause: str) -> None:
        """Keep both unchanged, so that the error survives the way from another process."""
        # Exceptions are pickled by their arguments.
        super().__init__(named, cause)
        self.named = named
        self.cause = cause


def run_on_rows(rows: pl.DataFrame, work: Callable[[pl.DataFrame], Result], by: Sequence[str], unit: str | None = None) -> Result:
    """Return `work(rows)`.

    Args:
        rows: what to work on.
        work: fails for each faulty row, whichever other rows come with it.
        by: the columns that identify a row: of records (platform, external_id), of artist names (name), or of atoms (any others).
        unit: a column whose rows of one value are worked on together; None: each row is its own unit.

    Raises:
        FailingRowsError: when `work` fails on one unit too; a binary search finds the first. An error that needs all rows together, or
            that memory or disk causes, is raised unchanged.
    """
    try:
        return work(rows)
    except _MACHINE_FAULTS:
        raise
    except _FAULTS as error:
        failing = _find_failing_unit(rows, work, unit)
        if failing is None:
            raise
        named = failing.select(by).head(SHOWN_ROWS).to_dict(as_series=False)
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:_SHOWN_CHARACTERS]}"
        raise FailingRowsError(named, cause) from error


def _find_failing_unit(rows: pl.DataFrame, work: Callable[[pl.DataFrame], object], unit: str | None) -> pl.DataFrame | None:
    """Return the first row, or rows of one `unit`, on which the work fails; None when it fails on no half of the rows."""
    numbers = rows.select(pl.int_range(pl.len()) if unit is None else pl.col(unit).rank("dense").cast(pl.Int64) - 1).to_series()
    first, end = 0, int(numbers.n_unique())
    while end - first > 1:
        middle = (first + end) // 2
        # Invariant: some unit in [first, end) fails, unless the fault needs all rows together. The last check finds
        # that out.
        if _is_failing(rows.filter(numbers.is_between(first, middle - 1)), work):
            end = middle
        else:
            first = middle
    failing = rows.filter(numbers == first)
    return failing if failing.height and _is_failing(failing, work) else None


def _is_failing(rows: pl.DataFrame, work: Callable[[pl.DataFrame], object]) -> bool:
    try:
        work(rows)
    except _FAULTS:  # any error counts: the search looks for the row, not for the cause
        return True
    return False
