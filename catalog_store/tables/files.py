"""A table on disk: `<folder>/part-00000.parquet ...`, written aside and renamed, so a reader never sees half a table.

Format: Parquet, zstd level 1 (level 3 takes half as much processor time again and saves 3 % of the bytes), row groups as in the spec, no
writer-dependent metadata beyond the library's version string. The same rows give the same bytes. A folder without parts does not exist: an
empty table is one part without rows.
"""

from __future__ import annotations

import os
import shutil
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import polars as pl

from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.pending_files import PENDING_SUFFIX
from catalog_store.sql_text import quote_list, quote_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from catalog_store.tables.spec import Table

TAIL = 1 << 16
"""Bytes at the end of a part that identify its content. A smaller part is read whole."""


class TableWriter:
    """Writes one table part by part; nothing is visible under `folder` until the `with` block ends without an error.

    Each `write` makes one part, in call order. Where the order matters, rows must already be in the table's order across parts.
    """

    def __init__(self, table: Table, folder: Path) -> None:
        """Prepare to write to `folder`, the final place; its parent is created."""
        self.table = table
        self.folder = folder
        self.rows = 0
        self._parts = 0
        self._pending = folder.with_name(folder.name + PENDING_SUFFIX)

    def __enter__(self) -> Self:
        """Remove the remains of a killed writer and start."""
        shutil.rmtree(self._pending, ignore_errors=True)
        self._pending.mkdir(parents=True)
        return self

    def write(self, frame: pl.DataFrame) -> Path | None:
        """Append one part and return its current path; an empty frame writes nothing. ValueError when `frame` does not fit the table."""
        return None if frame.is_empty() else self._write_part(self.table.conform(frame))

    def _write_part(self, frame: pl.DataFrame) -> Path:
        path = self._pending / f"part-{self._parts:05d}.parquet"
        rows = self.table.rows_per_group
        frame.rechunk().write_parquet(path, compression="zstd", compression_level=1, row_group_size=rows, statistics=True)
        self._parts += 1
        self.rows += frame.height
        return path

    def take(self, part: Path) -> None:
        """Append a part of another folder of the same table unchanged: a hard link, or a copy where the file system has no links."""
        target = self._pending / f"part-{self._parts:05d}.parquet"
        try:
            target.hardlink_to(part)
        except OSError:
            shutil.copyfile(part, target)
        self._parts += 1
        self.rows += count_part_rows(part)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Publish the parts under `folder`, or discard them when the block failed."""
        if kind is not None:
            shutil.rmtree(self._pending, ignore_errors=True)
            return
        # A folder without parts would read as a table that was never built.
        if self._parts == 0:
            self._write_part(self.table.build_empty())
        if self.folder.exists():
            retired = self.folder.with_name(self.folder.name + ".retired")
            shutil.rmtree(retired, ignore_errors=True)
            # A folder cannot replace a full one, so the old one moves aside first. A reader that opens the table between the two renames
            # finds none.
            self.folder.rename(retired)
            self._pending.rename(self.folder)
            shutil.rmtree(retired, ignore_errors=True)
        else:
            self._pending.rename(self.folder)


class EvenTableWriter(TableWriter):
    """Writes a table whose rows come in frames of any size, in parts of `rows_per_part` rows. So the frames do not change the bytes."""

    def __init__(self, table: Table, folder: Path) -> None:
        """Prepare to write to `folder`, as TableWriter does."""
        super().__init__(table, folder)
        self._waiting: list[pl.DataFrame] = []
        self._waiting_rows = 0

    def append(self, frame: pl.DataFrame) -> None:
        """Append rows. ValueError when `frame` does not fit the table."""
        self._waiting.append(self.table.conform(frame))
        self._waiting_rows += frame.height
        while self._waiting_rows >= self.table.rows_per_part:
            self._cut_part()

    def end_part(self) -> None:
        """Write the rows that wait as a part, so that the next row begins one."""
        if self._waiting_rows:
            self._cut_part()

    def _cut_part(self) -> None:
        waiting, rows = pl.concat(self._waiting), self.table.rows_per_part
        self.write(waiting[:rows])
        self._waiting, self._waiting_rows = [waiting[rows:]], max(0, self._waiting_rows - rows)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the remaining rows and publish the table, or discard it when the block failed."""
        if kind is None:
            self.end_part()
        super().__exit__(kind, error, trace)


def write_table(table: Table, folder: Path, frames: pl.DataFrame | Iterable[pl.DataFrame]) -> int:
    """Write the whole table and return its row count.

    A single frame is first sorted by the table's order; several must be sorted already.
    """
    with TableWriter(table, folder) as writer:
        if isinstance(frames, pl.DataFrame):
            writer.write(frames.sort(table.order) if table.order else frames)
        else:
            for frame in frames:
                writer.write(frame)
    return writer.rows


def join_tables(table: Table, folder: Path, sources: Iterable[Path]) -> None:
    """Build `table` from the parts of several folders of it, in that order. Parts are linked, so nobody may write into them."""
    with TableWriter(table, folder) as writer:
        for source in sources:
            for part in list_parts(source):
                writer.take(part)


def list_parts(folder: Path) -> list[Path]:
    """Return the Parquet parts of a table in order; FileNotFoundError names the folder when there are none."""
    found = list_folder(folder, "part-*.parquet")
    if not found:
        # No stage writes into a published snapshot.
        is_published = (folder.parent.parent / "manifest.json").is_file()
        remedy = "the snapshot has lost it: roll back to another one" if is_published else "build the stage that writes it first"
        raise FileNotFoundError(f"no table at {folder}: {remedy}")
    return found


def read_blocks(folder: Path, *columns: str, rows: int) -> Iterator[pl.DataFrame]:
    """Yield these columns of a table in blocks of at most `rows`."""
    for part in list_parts(folder):
        yield from pl.read_parquet(part, columns=list(columns)).iter_slices(rows)


def scan_table(table: Table, folder: Path) -> pl.LazyFrame:
    """Scan the table as a LazyFrame with the declared columns."""
    return pl.scan_parquet(list_parts(folder)).select(table.column_names)


def read_table(table: Table, folder: Path) -> pl.DataFrame:
    """Read the whole table into memory."""
    return scan_table(table, folder).collect()


def hash_part_end(part: Path) -> str:
    """Return a name for the content of a part: a hash of its end, which holds offsets, sizes and extremes of all columns."""
    with part.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - TAIL))
        return blake2b(opened.read(), digest_size=16).hexdigest()


def count_part_rows(part: Path) -> int:
    """Return the rows of one part, read from its footer."""
    count: int = pl.scan_parquet(part).select(pl.len()).collect().item()
    return count


def count_rows(*folders: Path) -> int:
    """Return the rows of a table, or of several of one spec together, from the Parquet footers; 0 without a folder."""
    parts = [part for folder in folders for part in list_parts(folder)]
    count: int = pl.scan_parquet(parts).select(pl.len()).collect().item() if parts else 0
    return count


def measure_parts(folder: Path) -> dict[str, int]:
    """Return the bytes of each part of a table by its name; empty without a table."""
    return {part.name: part.stat().st_size for part in list_folder(folder, "part-*.parquet")}


def measure_bytes(folder: Path) -> int:
    """Return the bytes of all files below `folder`."""
    return sum(file.stat().st_size for file in list_tree(folder) if file.is_file())


def render_sql_source(*folders: Path) -> str:
    """Return the table, or several of one spec, as a DuckDB table function to select from."""
    paths = [folder / "part-*.parquet" for folder in folders]
    return f"read_parquet({quote_text(paths[0]) if len(paths) == 1 else quote_list(paths)})"
