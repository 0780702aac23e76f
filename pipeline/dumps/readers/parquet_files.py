"""Delivered Parquet files within a bounded memory: what a file's pages may unpack to is looked at before they are unpacked.

A column chunk stores a repeated value once, in its dictionary, so a file of some megabytes can hold terabytes of text.
Out of scope: what a column means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog_store.tables.staging import LONGEST_CREDIT
from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_CHUNK_BYTES = 1 << 30
"""Limit of one column in one row group, unpacked. Writers aim at 128 MB to 1 GB for all columns together."""
BATCH_BYTES = 256 << 20
"""Limit of a batch of rows, unpacked."""
ROWS_PER_BATCH = 100_000
KEPT_CHARACTERS = LONGEST_CREDIT + 1
"""Longer texts are cut: with one character too many for every column, they are rejected later, with the place of their record."""


def require_bounded(path: Path, columns: set[str] | None = None) -> None:
    """Raise DumpError when the footer is unreadable, or announces more for one of `columns` (lower case) than fits into memory."""
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise DumpError(f"{path}: not a readable Parquet file ({error}); fetch it again and compare its checksum") from error
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            if columns is not None and chunk.path_in_schema.split(".")[0].lower() not in columns:
                continue
            # The footer is written by whoever wrote the file: the larger of both sizes counts.
            if max(chunk.total_uncompressed_size, chunk.total_compressed_size) > LARGEST_CHUNK_BYTES:
                raise DumpError(
                    f"{path}: column {chunk.path_in_schema} of row group {group} unpacks to {chunk.total_uncompressed_size:,} bytes, "
                    f"at most {LARGEST_CHUNK_BYTES:,} can be read; have it written in smaller row groups"
                )


def read_batches(path: Path, rows: int = ROWS_PER_BATCH) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file in order, in frames of up to `rows` and of about BATCH_BYTES; texts longer than KEPT_CHARACTERS are cut.

    Columns have lower-case names; of columns with equal names the first one counts. DumpError as `require_bounded`; pyarrow's errors when
    a page is damaged.
    """
    require_bounded(path)
    waiting: list[pl.DataFrame] = []
    held, size = 0, 0
    with pq.ParquetFile(path) as file:
        # Reversed, so that the first of two equal names wins.
        places = {name.lower(): place for place, name in reversed(list(enumerate(file.schema_arrow.names)))}
        for group in range(file.num_row_groups):
            # A row may take as much as the longest dictionary value, so it decides how many rows fit into a batch.
            longest = _find_longest_repeated(path, file, group)
            for batch in file.iter_batches(max(1, min(rows, BATCH_BYTES // max(longest, 1))), row_groups=[group]):
                frame = _cut(pl.DataFrame(pl.from_arrow(batch.select(list(places.values())).rename_columns(list(places)))))
                waiting.append(frame)
                held, size = held + frame.height, size + int(frame.estimated_size())
                if held >= rows or size >= BATCH_BYTES:
                    yield pl.concat(waiting)
                    waiting, held, size = [], 0, 0
    if waiting:
        yield pl.concat(waiting)


def _find_longest_repeated(path: Path, file: pq.ParquetFile, group: int) -> int:
    """Return the bytes of the longest dictionary value of a row group. Only dictionary values repeat without taking space."""
    row_group = file.metadata.row_group(group)
    chunks = [row_group.column(number) for number in range(row_group.num_columns)]
    names = [chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page]
    if not names or not row_group.num_rows:
        return 0
    with pq.ParquetFile(path, read_dictionary=names) as encoded:
        # One row is enough: pyarrow hands over the whole dictionary with it.
        first = next(encoded.iter_batches(1, row_groups=[group], columns=names))
    return max((_measure_longest(column) for column in first.columns), default=0)


def _measure_longest(values: Any) -> int:  # noqa: ANN401 - the stubs know no common type of arrays
    if pa.types.is_dictionary(values.type):
        lengths: Any = pc.binary_length(values.dictionary)
        return int(pc.max(lengths).as_py() or 0)
    if pa.types.is_struct(values.type):
        return max((_measure_longest(values.field(number)) for number in range(values.type.num_fields)), default=0)
    if pa.types.is_map(values.type):
        return max(_measure_longest(values.keys), _measure_longest(values.items))
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return _measure_longest(values.values)
    return 0


def _cut(frame: pl.DataFrame) -> pl.DataFrame:
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    longest = frame.select(pl.col(texts).str.len_bytes().max()).row(0) if texts else ()
    long = [name for name, size in zip(texts, longest, strict=True) if size is not None and size > KEPT_CHARACTERS]
    # Concatenation makes new texts: a slice would keep the whole text in memory.
    return frame.with_columns(pl.concat_str(pl.col(name).str.head(KEPT_CHARACTERS), pl.lit("")).alias(name) for name in long)
