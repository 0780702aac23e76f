"""PostgreSQL `COPY ... TO` text -> Polars frames, block by block: the row encoding of database dumps.

Columns are in table order after tabs, there is no heading and no quoting. Backslash-N alone is NULL, and an empty cell is the empty
text. With one more backslash in front, backslash-N is that very text. Escapes are undone in the rows that have one.
Out of scope: which tables a dump has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import polars as pl

from pipeline.dumps.readers.tab_rows import BLOCK_BYTES, FAULT_SCHEMA, RowBlock, read_rows
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ESCAPES = {r"\\": "\\", r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\b": "\b", r"\f": "\f", r"\v": "\v"}
"""Escapes that COPY writes. They are replaced in one pass from the left, so that an escaped backslash never starts another escape."""
_EXCERPT_SEPARATOR = "\t"


@dataclass(frozen=True)
class CopyBlock:
    """`frame`: a `line` column (number in the file) and the wanted columns; `faults`: lines left out (see `tab_rows.FAULT_SCHEMA`)."""

    frame: pl.DataFrame
    faults: pl.DataFrame


def read_copy_text(
    stream: BinaryIO, columns: Mapping[str, pl.DataType], wanted: Sequence[str], source: str, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[CopyBlock]:
    """Yield the rows of one table in file order.

    `columns` names all columns of the file in order with their types (integers, String, Boolean); only `wanted` ones are parsed. A line
    with another number of cells, with bytes that are not UTF-8 or with a cell that does not fit its type goes to `faults`.
    DumpError naming `source` when the stream is not a table at all. Memory is bounded by `block_bytes`, not by the file.
    """
    # COPY ends every row with a line feed, so a last line without one is a cut.
    for block in read_rows(stream, len(columns), source, is_ended=True, block_bytes=block_bytes):
        yield _parse(block, columns, wanted)


def _parse(block: RowBlock, columns: Mapping[str, pl.DataType], wanted: Sequence[str]) -> CopyBlock:
    if not block.content:
        return CopyBlock(pl.DataFrame(schema={"line": pl.Int64, **{name: columns[name] for name in wanted}}), block.faults)
    try:
        # Booleans are `t` and `f` here, which the parser does not take for booleans.
        frame = _read_frame(block, {name: pl.String() if dtype == pl.Boolean else dtype for name, dtype in columns.items()}, wanted)
        faults = block.faults
    except pl.exceptions.ComputeError:
        # A cell that is not a number: read as text, cast leniently, and leave out the rows where that lost something.
        frame, unfit = _cast(_read_frame(block, dict.fromkeys(columns, pl.String()), wanted), columns)
        faults = pl.concat([block.faults, unfit]).sort("line")
    texts = [name for name in wanted if columns[name] == pl.String]
    return CopyBlock(_unescape(_convert_booleans(frame, columns), texts), faults)


def _read_frame(block: RowBlock, schema: Mapping[str, pl.DataType], wanted: Sequence[str]) -> pl.DataFrame:
    places = [list(schema).index(name) for name in wanted]
    frame = pl.read_csv(
        block.content,
        separator="\t",
        has_header=False,
        # Quoting off: `"` is a letter in COPY text, and a lone one would swallow the lines after it.
        quote_char=None,
        null_values=[r"\N"],
        # An empty cell is the empty text and not NULL: a barcode of \N is unknown, an empty one says that there is none.
        empty_string_is_null=False,
        schema=schema,
        columns=places,
    )
    return frame.select(block.lines.alias("line"), *wanted)


def _cast(texts: pl.DataFrame, columns: Mapping[str, pl.DataType]) -> tuple[pl.DataFrame, pl.DataFrame]:
    # Only numbers can lose a value by the cast; texts and booleans take anything.
    numbers = [name for name in texts.columns if name != "line" and columns[name].is_integer()]
    cast = texts.with_columns(pl.col(name).cast(columns[name], strict=False) for name in numbers)
    lost = pl.any_horizontal(pl.col(name).is_not_null() & cast[name].is_null() for name in numbers)
    unfit = texts.select("line", *texts.columns[1:], lost=lost)
    excerpt = pl.concat_str(pl.col(texts.columns[1:]), separator=_EXCERPT_SEPARATOR, ignore_nulls=True)
    faults = unfit.filter("lost").select("line", reason=pl.lit(Reason.BROKEN_RECORD.value), excerpt=excerpt)
    return cast.filter(~unfit["lost"]), faults.match_to_schema(FAULT_SCHEMA)


def _convert_booleans(frame: pl.DataFrame, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    return frame.with_columns(pl.col(name) == "t" for name in frame.columns if name != "line" and columns[name] == pl.Boolean)


def _unescape(frame: pl.DataFrame, texts: Sequence[str]) -> pl.DataFrame:
    # Hardly any column of a block has a backslash. Those that have one are replaced only in the rows concerned.
    escaped = frame.select(pl.col(name).str.contains("\\", literal=True).any() for name in texts).row(0) if texts else ()
    found = [name for name, has_escape in zip(texts, escaped, strict=True) if has_escape]
    return frame.with_columns(
        pl.when(pl.col(name).str.contains("\\", literal=True)).then(pl.col(name).str.replace_many(_ESCAPES)).otherwise(pl.col(name))
        for name in found
    )
