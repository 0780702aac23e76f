"""A SQLite file of the relational layout -> Parquet files of the same tables, block by block of row ids, every value as text.

SQLite types values, not columns, so a number may be stored as text and a text hold any bytes: all is read as text, and judged later in one
place. Blocks are read by several processes, each with a connection of its own; 100,000 rows are in flight per process.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.streamsvc_a.relational import COLUMNS, REQUIRED_COLUMNS, SourceTable
from pipeline.engine.local import map_ordered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS_PER_BLOCK = 100_000
MAGIC = b"SQLite format 3\x00"


@dataclass(frozen=True)
class _Block:
    table: str
    columns: tuple[str, ...]
    first: int
    last: int
    target: Path


def is_sqlite(path: Path) -> bool:
    """Whether the file starts as SQLite files do."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def export(database: Path, scratch: Path, workers: int | None = None) -> dict[str, SourceTable]:
    """Write the tables that are read into `scratch` and say where; DumpError when the file is damaged or lacks a column."""
    files: dict[str, list[Path]] = {}
    try:
        blocks = list(_blocks(database, scratch))
        for block, path in zip(blocks, map_ordered(partial(_write, database), blocks, workers=workers), strict=True):
            files.setdefault(block.table, []).append(path)
    except sqlite3.DatabaseError as error:
        raise DumpError(f"{database}: not a readable SQLite file ({error}); fetch it again and compare its checksum") from error
    return {name: SourceTable(name, tuple(paths), database.name) for name, paths in files.items()}


def _connect(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)


def _blocks(database: Path, scratch: Path) -> Iterator[_Block]:
    connection = _connect(database)
    try:
        for table, wanted in COLUMNS.items():
            present = {row[1].lower() for row in connection.execute(f"PRAGMA table_info({table})")}
            if not present:
                continue
            missing = [column for column in REQUIRED_COLUMNS[table] if column not in present and column != "rowid"]
            if missing:
                raise DumpError(f"{database}: table {table} has no column {', '.join(missing)}; see docs/formats/streamsvc_a.md")
            columns = tuple(column for column in wanted if column in present or column == "rowid")
            first, last = connection.execute(f"SELECT coalesce(min(rowid), 0), coalesce(max(rowid), 0) FROM {table}").fetchone()
            for start in range(first, last + 1, ROWS_PER_BLOCK):
                target = scratch / f"{table}-{(start - first) // ROWS_PER_BLOCK:06d}.parquet"
                yield _Block(table, columns, start, start + ROWS_PER_BLOCK - 1, target)
    finally:
        connection.close()


def _write(database: Path, block: _Block) -> Path:
    columns = ", ".join(f"CAST({column} AS TEXT)" for column in block.columns)
    sql = f"SELECT {columns} FROM {block.table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    connection = _connect(database)
    try:
        try:
            rows = connection.execute(sql, (block.first, block.last)).fetchall()
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            rows = connection.execute(sql, (block.first, block.last)).fetchall()
    finally:
        connection.close()
    values = list(zip(*rows, strict=True)) or [()] * len(block.columns)
    frame = pl.DataFrame({name: pl.Series(name, column, dtype=pl.String) for name, column in zip(block.columns, values, strict=True)})
    frame.write_parquet(block.target, compression="lz4")
    return block.target
