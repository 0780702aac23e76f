r"""NDJSON, COPY text and EPF to Parquet: by our readers, and by DuckDB's own `COPY (FROM read_...) TO`, which checks nothing.

Both sides write the same columns with the same compression. Ours also gives every record its place, keeps broken records, and undoes
escapes; DuckDB's side neither looks for dirt nor knows that `\x02` ends an EPF record.
"""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from benchmarks.dump_files import COPY_COLUMNS, EPF_COLUMNS, NDJSON_COLUMNS
from pipeline.dumps.readers.compressed_files import DumpFile
from pipeline.dumps.readers.copy_text import read_copy_text
from pipeline.dumps.readers.epf import EpfFile
from pipeline.dumps.readers.ndjson import read_json_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

_COPY_TYPES: dict[str, pl.DataType] = {
    name: {"i": pl.Int64(), "t": pl.String(), "b": pl.Boolean()}[letter]
    for name, letter in (column.split(":") for column in COPY_COLUMNS.split())
}
_ROWS_PER_PART = 122_880
"""A row group."""


def read_ndjson_file(path: str, folder: str) -> int:
    """Read newline-delimited JSON with our reader."""
    return _write((block.frame for block in read_json_blocks(Path(path), NDJSON_COLUMNS)), folder)


def read_copy_text_file(path: str, folder: str) -> int:
    """Read COPY text with our reader."""
    with DumpFile(Path(path)) as stream:
        return _write((block.frame for block in read_copy_text(BufferedReader(stream), _COPY_TYPES, list(_COPY_TYPES), path)), folder)


def read_epf_file(path: str, folder: str) -> int:
    """Read EPF with our reader."""
    with DumpFile(Path(path)) as stream:
        return _write((block.rows for block in EpfFile(BufferedReader(stream), path).read_blocks()), folder)


def _write(frames: Iterable[pl.DataFrame], folder: str) -> int:
    rows = part = waiting_rows = 0
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        waiting_rows += frame.height
        if waiting_rows >= _ROWS_PER_PART:
            rows += _write_part(waiting, folder, part)
            waiting, waiting_rows, part = [], 0, part + 1
    return rows + (_write_part(waiting, folder, part) if waiting else 0)


def _write_part(frames: list[pl.DataFrame], folder: str, part: int) -> int:
    frame = pl.concat(frames)
    frame.write_parquet(Path(folder) / f"part-{part:05d}.parquet", compression="snappy", row_group_size=_ROWS_PER_PART)
    return frame.height


def read_ndjson_with_duckdb(path: str, folder: str) -> int:
    """Read it with DuckDB's `read_json` and the same columns."""
    return _open_duckdb(f"read_json('{path}', format='newline_delimited', columns={NDJSON_COLUMNS})", folder)


def read_copy_text_with_duckdb(path: str, folder: str) -> int:
    """Read it with DuckDB's `read_csv`, quoting off, types given."""
    types = {name: "VARCHAR" if dtype == pl.String else "BIGINT" if dtype == pl.Int64 else "BOOLEAN" for name, dtype in _COPY_TYPES.items()}
    form = r"delim='\t', header=false, quote='', escape='', nullstr='\N', auto_detect=false"
    return _open_duckdb(f"read_csv('{path}', {form}, columns={types})", folder)


def read_epf_with_duckdb(path: str, folder: str) -> int:
    """Read it with DuckDB's `read_csv` split at line feeds, all text."""
    form = "delim='\x01', header=false, quote='', escape='', comment='#', auto_detect=false"
    return _open_duckdb(f"read_csv('{path}', {form}, columns={dict.fromkeys(EPF_COLUMNS, 'VARCHAR')})", folder)


def _open_duckdb(source: str, folder: str) -> int:
    with duckdb.connect() as connection:
        copied = connection.execute(f"COPY (FROM {source}) TO '{folder}/all.parquet' (FORMAT parquet, COMPRESSION snappy)").fetchall()
    return int(copied[0][0])
