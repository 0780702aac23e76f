"""Ranges of recording ids: the unit in which the stages of recordings work, so that memory depends on a range and not on the catalog.

A stage sends rows to ranges with the shuffle, or reads the rows of a range from a table in the order of recordings. Each range makes one
part of the stage's tables. A killed stage goes on behind its finished slices and ranges. Out of scope: what a stage makes of its rows.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import polars as pl

from catalog_store.row_shuffle import read_bucket
from catalog_store.tables.files import list_parts, write_table
from pipeline.engine.checkpoints import open_checkpoints
from pipeline.engine.pool import start_workers
from pipeline.linkage.staged_records import Slice, cut_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from catalog_store.tables.spec import Table
    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.engine.pool import Pool
    from pipeline.paths import BuildPaths

RECORDINGS_PER_RANGE = 100_000
"""Ids of one range. A range is a part of the tables of recordings, so tonight's parts are those of last night where nothing changed."""
ROWS_FOR_A_POOL = 500_000
"""Rows of the largest input below which starting worker processes, 1.8 CPU-s for two, costs more than they save."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class SliceJob(NamedTuple):
    """A slice of a table, its number, and the rows of the table before it."""

    number: int
    rows: Slice
    before: int


class RangeWork(NamedTuple):
    """The folder of a stage's spilled data, the processes that work for it, and what of it is finished."""

    folder: Path
    pool: Pool
    checkpoints: Checkpoints

    def run(self, name: str, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Call the function with each item unless a killed build has; return the results in order. A stage has one call of each name."""
        return self.checkpoints.run(name, function, list(items), self.pool)

    def map_slices(self, name: str, function: Callable[[SliceJob], Result], table_parts: Iterable[Path]) -> list[Result]:
        """Call `run` with each slice of a table."""
        return self.run(name, function, cut_jobs(table_parts))


@contextmanager
def open_range_work(paths: BuildPaths, stage: str, rows: int) -> Iterator[RangeWork]:
    """Yield a folder for spilled data, and processes for an input of so many rows. Only a kill or an interruption leaves the folder."""
    with (
        open_checkpoints(paths.root / "work" / "spill" / stage) as checkpoints,
        start_workers(is_small=rows < ROWS_FOR_A_POOL) as pool,
    ):
        yield RangeWork(checkpoints.folder, pool, checkpoints)


def find_range() -> pl.Expr:
    """Return the range of a recording_id."""
    return pl.col("recording_id") // RECORDINGS_PER_RANGE


def cut_jobs(table_parts: Iterable[Path]) -> list[SliceJob]:
    """Return all rows of a table in slices."""
    slices = list(cut_parts(table_parts))
    before = accumulate((rows.rows for rows in slices), initial=0)
    return [SliceJob(number, rows, first) for number, (rows, first) in enumerate(zip(slices, before, strict=False))]


def read_sent(folder: Path, bucket: int, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return one bucket of a shuffle, even where nobody sent a row: then with columns `schema`."""
    rows = read_bucket(folder, bucket)
    return rows if rows.width else pl.DataFrame(schema=schema)


def list_range_parts(folder: Path) -> dict[int, list[Path]]:
    """Return each range of a table in the order of recordings, with the parts that hold it."""
    # A range opens its own parts only. With all of them, the footers alone would cost time in the square of the catalog.
    found: dict[int, list[Path]] = defaultdict(list)
    for part in list_parts(folder):
        first, last = pl.scan_parquet(part).select(find_range().min().alias("first"), find_range().max().alias("last")).collect().row(0)
        for number in range(first, last + 1) if first is not None else ():
            found[number].append(part)
    return found


def read_range(table: Table, range_parts: list[Path], number: int, columns: Sequence[str] = ()) -> pl.DataFrame:
    """Return the rows of one range, or some columns of them, out of the parts that hold it."""
    first, names = number * RECORDINGS_PER_RANGE, columns or table.column_names
    inside = pl.col("recording_id").is_between(first, first + RECORDINGS_PER_RANGE, closed="left")
    return pl.scan_parquet(range_parts).select(names).filter(inside).collect() if range_parts else table.build_empty().select(names)


def write_range(table: Table, folder: Path, rows: pl.DataFrame) -> None:
    """Write the part of one range as a table in `folder`, for `join_tables`. Equal rows give equal bytes, whatever made the frame."""
    # Polars cuts pages by the size of the buffers behind a column of texts. These may hold other texts as well, after a filter or a sort.
    # The old layout of Arrow has the texts of this frame alone.
    laid_out = cast("pl.DataFrame", pl.from_arrow(rows.to_arrow(compat_level=pl.CompatLevel.oldest())))
    write_table(table, folder, [laid_out])
