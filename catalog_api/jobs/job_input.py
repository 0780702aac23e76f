"""Read the input of a bulk job: CSV, NDJSON or Parquet to rows as bulk resolve takes them.

CSV and Parquet name their columns: `artist` and `title` for rows of names, else one of the name of the input type, or a single column.
Further columns are ignored. A line of NDJSON is a row.
"""

from __future__ import annotations

import csv
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_api.bulk_rows import RowForm, find_row_problem
from catalog_api.jobs.job_folder import CHUNK_ROWS, JobFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

CSV, NDJSON, PARQUET = JOB_FORMATS = ("csv", "ndjson", "parquet")
_PAIR = ("artist", "title")
_LONGEST_LINE = 64 * 1024
"""Bytes of a line of NDJSON. 1,000 characters fit in any spelling."""
_WHOLE_NUMBER = re.compile(r"[0-9]{1,19}")


class InvalidInputError(Exception):
    """The input cannot be read; the message names the row and the remedy."""


def prepare_input(
    folder: JobFolder, form: str, input_type: str, row_form: RowForm, *, most_rows: int, after_chunk: Callable[[], None]
) -> int:
    """Write the rows of the input in chunks; return how many. `after_chunk` is called after each. InvalidInputError.

    A repeat after a kill writes the same chunks again.
    """
    rows, chunk = 0, 0
    waiting: list[object] = []
    for item in _read_rows(folder.input, form, input_type, row_form):
        rows += 1
        if rows > most_rows:
            raise InvalidInputError(f"the input has more than {most_rows} rows, the limit of the plan: split it")
        problem = find_row_problem(row_form, item)
        if problem:
            raise InvalidInputError(f"row {rows}: {problem}")
        waiting.append(item)
        if len(waiting) == CHUNK_ROWS:
            folder.write_items(chunk, waiting)
            chunk, waiting = chunk + 1, []
            after_chunk()
    if not rows:
        raise InvalidInputError("the input has no rows")
    if waiting:
        folder.write_items(chunk, waiting)
    folder.write_prepared(rows)
    return rows


def _read_rows(file: Path, form: str, input_type: str, row_form: RowForm) -> Iterator[Any]:
    if form == NDJSON:
        return _read_ndjson(file)
    return _read_cells(_read_csv(file) if form == CSV else _read_parquet(file), input_type, row_form)


def _read_ndjson(file: Path) -> Iterator[object]:
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LONGEST_LINE + 1):
            number += 1
            if len(line) > _LONGEST_LINE:
                raise InvalidInputError(f"line {number} is longer than {_LONGEST_LINE} bytes")
            if line.isspace():
                continue
            try:
                item = msgspec.json.decode(line)
                # An escaped half of a surrogate pair, which no text can hold.
                msgspec.json.encode(item)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise InvalidInputError(f"line {number} is not JSON: {error}") from None
            yield item


def _read_cells(table: Iterable[Sequence[Any]], input_type: str, row_form: RowForm) -> Iterator[object]:
    """Yield rows of a table, whose first row names the columns."""
    cells = iter(table)
    names = [str(name).strip().lower() for name in next(cells, [])]
    if row_form is RowForm.ARTIST_AND_TITLE:
        artist, title = _find_columns(names, _PAIR)
        for row in cells:
            yield {"artist": row[artist], "title": row[title]}
        return
    [place] = [0] if len(names) == 1 else _find_columns(names, (input_type,))
    for row in cells:
        yield _read_code(row[place], row_form)


def _read_code(cell: object, row_form: RowForm) -> object:
    """Return a cell as bulk resolve takes it: numbers of Parquet may be codes, digits of CSV may be our ids."""
    if cell is None:
        return ""
    if row_form is RowForm.ID:
        return int(cell) if isinstance(cell, str) and _WHOLE_NUMBER.fullmatch(cell.strip()) else cell
    return str(cell) if type(cell) is int else cell


def _find_columns(names: list[str], wanted: Sequence[str]) -> list[int]:
    missing = [name for name in wanted if names.count(name) != 1]
    if missing:
        raise InvalidInputError(f"the input needs one column {missing[0]!r}, and has {', '.join(map(repr, names[:20])) or 'none'}")
    return [names.index(name) for name in wanted]


def _read_csv(file: Path) -> Iterator[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, strict=True)
        columns = 0
        try:
            for row in reader:
                # Empty lines are no rows.
                if row:
                    columns = columns or len(row)
                    if len(row) != columns:
                        raise InvalidInputError(f"line {reader.line_num} has {len(row)} cells instead of {columns}")
                    yield row
        except csv.Error as error:
            raise InvalidInputError(f"line {reader.line_num} is not CSV: {error}") from None
        except UnicodeDecodeError:
            raise InvalidInputError(f"the text behind line {reader.line_num} is not UTF-8") from None


def _read_parquet(file: Path) -> Iterator[Sequence[Any]]:
    with _refuse_damage(), pq.ParquetFile(file) as table:
        yield table.schema_arrow.names
        for batch in table.iter_batches(CHUNK_ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@contextmanager
def _refuse_damage() -> Iterator[None]:
    try:
        yield
    # The reader reports some damages as errors of the system.
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInputError(f"the input is not Parquet: {error}") from None
