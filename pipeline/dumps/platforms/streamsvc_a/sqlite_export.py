"""A SQLite file of the relational layout -> Parquet files of the same tables, block by block of row ids, every value as text.

SQLite types values, not columns, so a number may be stored as text and a text hold any bytes: all is read as text, and judged later in one
place. Blocks are read by several processes, each with a connection of its own; 100,000 rows are in flight per process.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.pending_files import write_aside
from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.streamsvc_a.relational_tables import COLUMNS, SourceTable, list_expected_columns
from pipeline.dumps.readers.parquet_files import KEPT_CHARACTERS
from pipeline.engine.pool import map_ordered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

ROWS_PER_BLOCK = 100_000
ROWS_PER_STEP = 2_000
BLOCK_CHARACTERS = 512 << 20
"""Limit of the values of a block of rows together; ordinary blocks have some 20 million."""
LARGEST_VALUE_BYTES = 64 << 20
"""A row or value with more is refused by SQLite itself, which admits a billion."""
MAGIC = b"SQLite format 3\x00"
_LOG_HEADER_BYTES = 32
"""A write-ahead log without changes has no more (https://www.sqlite.org/fileformat2.html#walformat)."""
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""First bytes of a rollback journal; a settled one that was kept begins with zeros."""
_IS_TABLE = re.compile(r"(?is)^\s*CREATE\s+(TEMP\s+|TEMPORARY\s+)?TABLE\b")


@dataclass(frozen=True)
class _Block:
    table: str
    columns: tuple[str, ...]
    first: int
    last: int
    target: Path


def is_sqlite(path: Path) -> bool:
    """Return whether the file starts as SQLite files do."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def export(database: Path, scratch: Path, out: StagingWriter, workers: int | None = None) -> dict[str, SourceTable]:
    """Write the tables that are read into `scratch` and say where; DumpError when the file is damaged or lacks a column."""
    files: dict[str, list[Path]] = {}
    try:
        _require_settled(database)
        blocks = list(_cut_blocks(database, scratch, out))
        for block, path in zip(blocks, map_ordered(partial(_write, database), blocks, workers=workers), strict=True):
            files.setdefault(block.table, []).append(path)
    except sqlite3.DatabaseError as error:
        raise DumpError(f"{database}: not a readable SQLite file ({error}); fetch it again and compare its checksum") from error
    return {name: SourceTable(name, tuple(paths), database.name) for name, paths in files.items()}


def _require_settled(database: Path) -> None:
    """Raise DumpError when a file beside the database holds changes: it was copied while somebody wrote to it."""
    log = database.with_name(database.name + "-wal")
    journal = database.with_name(database.name + "-journal")
    unsettled = [log] if log.is_file() and log.stat().st_size > _LOG_HEADER_BYTES else []
    if journal.is_file():
        with journal.open("rb") as file:
            unsettled += [journal] if file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC else []
    if unsettled:
        raise DumpError(
            f"{unsettled[0]}: holds changes that {database.name} does not have yet, so old rows would be read; deliver the database after "
            "`PRAGMA wal_checkpoint(TRUNCATE)` or `VACUUM INTO`, without a file beside it"
        )


def _connect(database: Path) -> sqlite3.Connection:
    # immutable: SQLite neither locks nor looks for a journal, so the dump may be on a read-only disk. `_require_settled` has looked.
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE_BYTES)
    # A schema from outside could call functions with side effects in defaults or generated columns.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _cut_blocks(database: Path, scratch: Path, out: StagingWriter) -> Iterator[_Block]:
    connection = _connect(database)
    try:
        for table, wanted in COLUMNS.items():
            present = {row[1].lower() for row in connection.execute(f"PRAGMA table_info({table})")}
            if not present:
                continue
            # A view could run any query over the file, and a virtual table runs a module.
            kinds = [row[0] for row in connection.execute("SELECT coalesce(sql, '') FROM sqlite_master WHERE lower(name) = ?", (table,))]
            if not any(_IS_TABLE.match(sql) for sql in kinds):
                raise DumpError(f"{database}: {table} is a view or a virtual table; deliver a table of rows")
            out.expect(f"table {table}", {*present, "rowid"}, list_expected_columns(table), place=database)
            columns = tuple(column for column in wanted if column in present or column == "rowid")
            first, last = connection.execute(f"SELECT coalesce(min(rowid), 0), coalesce(max(rowid), 0) FROM {table}").fetchone()
            for number, (start, end) in enumerate(_cut_ranges(connection, table, first, last, database.stat().st_size)):
                yield _Block(table, columns, start, end, scratch / f"{table}-{number:06d}.parquet")
    finally:
        connection.close()


def _cut_ranges(connection: sqlite3.Connection, table: str, first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the row ids from `first` to `last` in ranges of up to ROWS_PER_BLOCK rows.

    Row ids that are no more than the bytes of the file are cut evenly. Sparse ones, up to 2^63, are walked through.
    """
    if last - first <= max(size, ROWS_PER_BLOCK):
        for start in range(first, last + 1, ROWS_PER_BLOCK):
            yield start, min(start + ROWS_PER_BLOCK - 1, last)
        return
    # OFFSET within one block only: walking from the last id found, not from the first row.
    following = f"SELECT rowid FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 1 OFFSET {ROWS_PER_BLOCK}"
    while found := connection.execute(following, (first,)).fetchone():
        yield first, found[0] - 1
        first = found[0]
    yield first, last


def _fetch(cursor: sqlite3.Cursor, database: Path, block: _Block) -> list[tuple[str | None, ...]]:
    """Return all rows of a block; DumpError when they do not fit into memory."""
    rows: list[tuple[str | None, ...]] = []
    characters = 0
    while some := cursor.fetchmany(ROWS_PER_STEP):
        characters += sum(len(value) for row in some for value in row if value)
        if characters > BLOCK_CHARACTERS:
            raise DumpError(
                f"{database}: table {block.table}, rowid {block.first} to {block.last}: more than {BLOCK_CHARACTERS:,} characters; "
                "no catalog of titles is that large: the dump is damaged, fetch it again"
            )
        rows += some
    return rows


def _write(database: Path, block: _Block) -> Path:
    columns = ", ".join(f"substr(CAST({column} AS TEXT), 1, {KEPT_CHARACTERS})" for column in block.columns)
    sql = f"SELECT {columns} FROM {block.table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    connection = _connect(database)
    try:
        try:
            rows = _fetch(connection.execute(sql, (block.first, block.last)), database, block)
        except sqlite3.OperationalError as error:
            # A text that is not UTF-8. The second reading replaces its bytes, and `track_conforming` reports such a name.
            if "decode" not in str(error):
                raise
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            rows = _fetch(connection.execute(sql, (block.first, block.last)), database, block)
    finally:
        connection.close()
    values = list(zip(*rows, strict=True)) or [()] * len(block.columns)
    frame = pl.DataFrame({name: pl.Series(name, column, dtype=pl.String) for name, column in zip(block.columns, values, strict=True)})
    with write_aside(block.target) as pending:
        frame.write_parquet(pending, compression="lz4")
    return block.target
