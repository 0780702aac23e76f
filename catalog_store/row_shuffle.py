"""Shuffle over shared storage: each writer orders its rows by bucket, a reader gets the rows of one bucket from all writers.

A writer leaves one file, its run: Arrow IPC with a record batch for each bucket that has rows, in order of buckets. The schema's metadata
holds the numbers of the buckets and their rows. So a shuffle makes as many files as it has writers, whatever the number of buckets, and a
reader of a bucket reads the footer and one batch of each run. Out of scope: which key makes the buckets.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.folder_listing import list_folder
from catalog_store.pending_files import write_aside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COUNTS = b"bucket_rows"
"""Metadata of the schema: two rows of little-endian u32, the buckets with rows and their numbers of rows."""
_WRITE_BUFFER = 1 << 20
"""Bytes per write: a batch has two buffers a column, and without this each would be a system call."""
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""A source record takes 193 bytes instead of 322, and .7 us more to write and read. Batches are small, so threads of Arrow would add .4 us.
zstd takes 124 bytes and 2.5 us more. Rows of numbers shrink by half."""


class DamagedRunError(ValueError):
    """A run is not a whole Arrow file, or its rows are not those of its metadata. The message names the file."""


def write_run(folder: Path, number: int, rows: pl.DataFrame, bucket: pl.Expr | pl.Series) -> None:
    """Write `rows` as run `number` of the shuffle in `folder`; rows of one bucket keep their order.

    `number` identifies the writer: a repeated one replaces its run, and a killed one leaves none. `bucket`: the number of each row's
    bucket. ValueError when a row has none.
    """
    numbers = rows.select(bucket).to_series().cast(pl.UInt32)
    if len(numbers) != rows.height or numbers.null_count():
        raise ValueError(f"run {number} in {folder}: {len(numbers) - numbers.null_count()} bucket numbers for {rows.height} rows")
    buckets, counts = np.unique(numbers.to_numpy(), return_counts=True)
    # Moving rows takes longest; those of a small catalog are in one bucket.
    ordered = (rows if numbers.is_sorted() else rows[np.argsort(numbers.to_numpy(), kind="stable")]).rechunk()
    # The old layout of strings: a slice of it holds its own texts alone, and a slice of string views the texts of all rows.
    table = ordered.to_arrow(compat_level=pl.CompatLevel.oldest())
    table = _mend_lists(table)
    table = table.replace_schema_metadata({_COUNTS: np.stack([buckets, counts]).astype("<u4").tobytes()})
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"run-{number:09d}.arrow"
    with (
        write_aside(file) as pending,
        pa.OSFile(str(pending), "wb") as sink,
        pa.BufferedOutputStream(sink, _WRITE_BUFFER) as buffered,
        pa.ipc.new_file(buffered, table.schema, options=_OPTIONS) as writer,
    ):
        for start, count in zip((np.cumsum(counts) - counts).tolist(), counts.tolist(), strict=True):
            (batch,) = table.slice(start, count).to_batches()
            writer.write_batch(batch)


def _mend_lists(table: pa.Table) -> pa.Table:
    """Return the table without lists of no values that begin behind the first one: PyArrow would write the columns after them wrongly."""
    # Polars makes such a list of a column whose null lists hide values and whose other lists are empty, when rows move.
    for number, column in enumerate(table.columns):
        if any(map(_begins_behind_nothing, column.chunks)):
            table = table.set_column(number, table.schema.field(number), pa.chunked_array([pa.array(column.to_pylist(), column.type)]))
    return table


def _begins_behind_nothing(values: pa.Array[Any]) -> bool:
    """Return whether `values`, or what they hold at any depth, are none and have an offset."""
    if len(values) == 0 and values.offset > 0:
        return True
    if isinstance(values, pa.StructArray):
        return any(_begins_behind_nothing(values.field(number)) for number in range(values.type.num_fields))
    return isinstance(values, pa.LargeListArray) and _begins_behind_nothing(values.values)


def read_bucket(folder: Path, bucket: int) -> pl.DataFrame:
    """Return the rows of one bucket, run by run in order of their numbers.

    Without such rows the frame is empty, and without any run it has no columns. DamagedRunError names a run that is torn.
    """
    found = []
    for file in _list_runs(folder):
        with _open_run(file) as run:
            found.append(_read_rows(run, bucket))
    return cast("pl.DataFrame", pl.from_arrow(pa.concat_tables(found))) if found else pl.DataFrame()


def count_bucket_rows(folder: Path) -> dict[int, int]:
    """Return the number of rows of each bucket that has any, in order of buckets; only the footers of the runs are read."""
    found = Counter[int]()
    for file in _list_runs(folder):
        with _open_run(file) as run:
            found.update(_read_counts(run))
    return dict(sorted(found.items()))


def _list_runs(folder: Path) -> list[Path]:
    return list_folder(folder, "run-*.arrow")


@contextmanager
def _open_run(file: Path) -> Iterator[pa.RecordBatchFileReader]:
    try:
        # Reading and not mapping: a mapped file that is cut short ends its reader by SIGBUS.
        with pa.OSFile(str(file), "rb") as source, pa.ipc.open_file(source) as run:
            yield run
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        # Errors of the system (no permission, a broken disk) have a number. Arrow's error for missing bytes has none.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedRunError(f"{file} is damaged ({error}): run the step that writes it again") from error


def _read_counts(run: pa.RecordBatchFileReader) -> dict[int, int]:
    """Return the rows of each bucket, in the order of the batches."""
    buckets, counts = np.frombuffer((run.schema.metadata or {})[_COUNTS], "<u4").reshape(2, -1).tolist()
    return dict(zip(buckets, counts, strict=True))


def _read_rows(run: pa.RecordBatchFileReader, bucket: int) -> pa.Table:
    schema, counts = run.schema.remove_metadata(), _read_counts(run)
    _decode_names(pa.struct(list(schema)))
    if bucket not in counts:
        # Not through `empty_table`, which imports pandas: a fifth of a second in each process.
        return pa.Table.from_batches([], schema)
    rows = pa.Table.from_batches([run.get_batch(list(counts).index(bucket))]).replace_schema_metadata(None)
    # Polars trusts offsets and texts: wrong ones would end the process.
    rows.validate(full=True)
    if rows.num_rows != counts[bucket]:
        raise ValueError(f"bucket {bucket} has {rows.num_rows} rows and not {counts[bucket]}")
    return rows


def _decode_names(columns: pa.DataType) -> None:
    """Decode the names of all columns and their fields: for a name that is no UTF-8 Polars panics, and pyarrow raises ValueError."""
    for number in range(columns.num_fields):
        field = columns.field(number)
        field.name.encode()
        _decode_names(field.type)
