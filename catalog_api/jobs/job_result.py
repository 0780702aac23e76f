"""Write the result of a bulk job: NDJSON with the rows of bulk resolve, or a table in CSV or Parquet with one row each.

The columns of a table are `row`, from 1 on, `input`, `status`, `id`, `name` (the title of a track or release), `isrc`, `match_class`,
`match_score`, and `result`, the row of bulk resolve as JSON.
"""

from __future__ import annotations

import csv
import io
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_api.jobs.job_input import CSV, NDJSON
from catalog_store.formula_cells import neutralise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

COLUMNS = ("row", "input", "status", "id", "name", "isrc", "match_class", "match_score", "result")
_WHOLE, _TEXT, _FLOAT = pa.int64(), pa.string(), pa.float64()
_TYPES: tuple[pa.DataType, ...] = (_WHOLE, _TEXT, _TEXT, _WHOLE, _TEXT, _TEXT, _TEXT, _FLOAT, _TEXT)
_SCHEMA = pa.schema([pa.field(name, kind) for name, kind in zip(COLUMNS, _TYPES, strict=True)])


class _Named(msgspec.Struct):
    id: int
    title: str | None = None
    name: str | None = None
    isrc: str | None = None


class _Match(msgspec.Struct):
    score: float
    match_class: str = msgspec.field(name="class")


class _Row(msgspec.Struct):
    input: msgspec.Raw
    status: str
    track: _Named | None = None
    artist: _Named | None = None
    release: _Named | None = None
    match: _Match | None = None


_ROW = msgspec.json.Decoder(_Row)


def write_result(file: BinaryIO, form: str, chunks: Sequence[Path], *, after_chunk: Callable[[], None]) -> None:
    """Write the results of all chunks, in order, into `file`; `after_chunk` is called after each."""
    if form == NDJSON:
        for chunk in chunks:
            with chunk.open("rb") as rows:
                shutil.copyfileobj(rows, file)
            after_chunk()
    elif form == CSV:
        file.write(_encode_csv([COLUMNS]))
        file.writelines(_encode_csv([_neutralise_cells(row) for row in cells]) for cells in _read_chunks(chunks, after_chunk))
    else:
        with pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer:
            for cells in _read_chunks(chunks, after_chunk):
                columns = [pa.array(column, kind) for column, kind in zip(zip(*cells, strict=True), _TYPES, strict=True)]
                writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))


def _read_chunks(chunks: Sequence[Path], after_chunk: Callable[[], None]) -> Iterator[list[tuple[Any, ...]]]:
    number = 0
    for chunk in chunks:
        # JSON holds no line feed. `splitlines` would also split at carriage returns, which cannot occur either.
        lines = chunk.read_bytes().splitlines()
        yield [_read_cells(number + place, line) for place, line in enumerate(lines, start=1)]
        number += len(lines)
        after_chunk()


def _read_cells(number: int, line: bytes) -> tuple[Any, ...]:
    row = _ROW.decode(line)
    named = row.track or row.artist or row.release
    sent = bytes(row.input)
    # A text comes back as it was sent; an object of names as JSON.
    text = msgspec.json.decode(sent) if sent.startswith(b'"') else sent.decode()
    facts = (None, None, None) if named is None else (named.id, named.title or named.name, named.isrc)
    match = (None, None) if row.match is None else (row.match.match_class, row.match.score)
    return (number, text, row.status, *facts, *match, line.decode())


def _neutralise_cells(row: Sequence[Any]) -> list[Any]:
    return [neutralise(cell) if isinstance(cell, str) else cell for cell in row]


def _encode_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
