"""Reader of one block of newline-delimited JSON: a frame of the readable records, and rejects of the others.

DuckDB reads a block fast and strictly. A block that is not clean gets a second look. This module knows neither
files, compression nor the meaning of fields.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import duckdb
import msgspec
import numpy as np
import polars as pl

from catalog_store.memory_budget import get_budget
from catalog_store.sql_text import quote_text
from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.json_documents import split_document
from pipeline.dumps.readers.ndjson_lines import Lines, cut_excerpt
from pipeline.dumps.readers.ndjson_shapes import RepairedRecord, Shape
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import FileIO

    from numpy.typing import NDArray

BROKEN_SCHEMA = {"reason": pl.String, "place": pl.String, "excerpt": pl.String}
MISFIT_SCHEMA = {**BROKEN_SCHEMA, "record_id": pl.String, "field": pl.String, "value": pl.String}
MISFITS_PER_BLOCK = 200
"""More records of a block, and more than half of it, with another type in the same field mean a new layout. So do more records that DuckDB
alone refuses: finding each costs some ten small queries."""
_PLACE_IN_LIST = re.compile(r"\[[0-9]+\]")
_LEAST_OBJECT_SIZE = 1 << 20
_WRITE_BYTES = 1 << 30


@dataclass(frozen=True)
class BlockContent:
    """Content of a block: `frame` (the columns and `place`), `broken` (BROKEN_SCHEMA), `misfits` of records in `frame` (MISFIT_SCHEMA)."""

    frame: pl.DataFrame
    broken: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BROKEN_SCHEMA))
    misfits: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MISFIT_SCHEMA))


@dataclass(frozen=True)
class Records:
    """Records taken out of lines and documents: each with its place, as JSON on one line."""

    named: Sequence[tuple[str, bytes]]
    is_cut: bool = False
    of: int = 0
    """Records of the whole block, if these are only its new ones."""


class Layout:
    """The columns to read and the members in which documents hold their records, as DuckDB takes them."""

    def __init__(self, columns: Mapping[str, str], members: Sequence[str] = ()) -> None:
        """Take `columns` (name -> DuckDB type). Scalars should be VARCHAR: a faulty number must reach the adapter, not fail the record."""
        self._columns = dict(columns)
        self.names = list(columns)
        self.members = tuple(members)
        roots = [member.split(".")[0] for member in members]
        self._roots = [root for root in dict.fromkeys(roots) if root not in columns]
        self._texts = {"id", *(name for name, dtype in columns.items() if dtype == "VARCHAR")}
        # An envelope is recognised by the lack of an id, so `id` is read even if the adapter does not want it.
        self._id = ["id"] if members and "id" not in columns else []
        self._typed = {**columns, **dict.fromkeys(self._roots, "JSON"), **dict.fromkeys(self._id, "VARCHAR")}
        self.shape = Shape(self._typed)
        self._member_roots = list(dict.fromkeys(roots))

    def __reduce__(self) -> tuple[type[Layout], tuple[dict[str, str], tuple[str, ...]]]:
        """Travel to other processes as columns and members, because DuckDB's types cannot."""
        return Layout, (self._columns, self.members)

    @property
    def text(self) -> str:
        """All that decides what a line becomes."""
        return f"{self._typed} {self.members} {self.names}"

    def split(self, document: bytes) -> list[bytes] | None:
        """Return the records of a document; None when it is a record itself. Envelopes have none of the texts of records."""
        return split_document(document, self.members, self._texts)

    def build_sql(self, path: str, *, object_size: int, strict: bool = True) -> str:
        """Return the query that reads the file at `path`."""
        columns = ", ".join(f"{quote_text(name)}: {quote_text(dtype)}" for name, dtype in self._typed.items())
        return (
            f"SELECT * FROM read_json({quote_text(path)}, format = 'newline_delimited', compression = 'uncompressed', "
            f"columns = {{{columns}}}, ignore_errors = {not strict}, maximum_object_size = {object_size})"
        )

    def is_clean(self, frame: pl.DataFrame) -> bool:
        """Return whether all rows are records: no document, no row that could not be read at all, no list or object read as text."""
        # DuckDB reads an envelope or an object of another layout as a row of nulls. An empty object looks the same and gets a second
        # reading.
        suspect = pl.all_horizontal(pl.all().is_null())
        if self.members:
            suspect = suspect | (pl.col("id").is_null() & pl.any_horizontal(pl.col(root).is_not_null() for root in self._member_roots))
        return not frame.select(suspect.any()).item() and not self.shape.has_nested_texts(frame)

    def select_columns(self, frame: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
        """Return the wanted columns, and `place`."""
        return frame.select(*self.names, place=places)


class BlockReader:
    """Reads blocks; may be used by several threads at once, each block by one of them."""

    def __init__(self, layout: Layout, source_file: str) -> None:
        """Prepare a reader; `source_file` is named in errors."""
        self.layout = layout
        self.source_file = source_file
        self._connection = connect(threads=1)
        # A cursor and a memory file per thread: DuckDB cursors of one connection run side by side, one cursor does not.
        self._of_thread = threading.local()
        self._memory: list[FileIO] = []
        self._is_faulty = False

    def close(self) -> None:
        """Give back the memory files."""
        for memory in self._memory:
            memory.close()
        self._connection.close()

    def read(self, raw: bytes, first_line: int) -> BlockContent:
        """Read whole lines; only the last line of a file may lack its end."""
        return self.read_lines(Lines(raw, first_line))

    def read_lines(self, lines: Lines, of: int = 0) -> BlockContent:
        """Read these lines; `of`: the lines of the block that they are taken from."""
        # A file with faults has them all over, so later blocks are not first read in vain.
        doubtful = self._find_doubtful(lines) if self._is_faulty else []
        # Doubtful lines may be clean. The block is then read as if no thread had met a fault yet.
        if not doubtful or self._read_clean(b"\n".join(map(lines.get_line, doubtful))) is not None:
            if (frame := self._read_clean(lines.raw)) is not None:
                return BlockContent(self.layout.select_columns(frame, format_line_places(lines.numbers)))
            self._is_faulty = True
            # The strict reading does not say which record failed, so the lines are looked at one by one.
            doubtful = self._find_doubtful(lines)
        return self._read_apart(lines, doubtful, of) or self.read_again(self._take_records(lines, range(len(lines)), of))

    def _read_clean(self, raw: bytes) -> pl.DataFrame | None:
        """Read lines strictly; None when one of them is no clean record."""
        with suppress(duckdb.Error):
            frame = self._parse(raw)
            return frame if self.layout.is_clean(frame) else None
        return None

    def _find_doubtful(self, lines: Lines) -> list[int]:
        can_hold = self.layout.shape.can_hold
        return [index for index, line in enumerate(lines) if not can_hold(line)]

    def _read_apart(self, lines: Lines, doubtful: list[int], of: int) -> BlockContent | None:
        """Read the doubtful lines again and all others strictly; None if the others are not clean either.

        Reading all lines again parses the block twice more. One faulty line in 8 MB is the ordinary case.
        """
        if not 0 < len(doubtful) < len(lines):
            return None
        sound = np.delete(np.arange(len(lines)), doubtful)
        if (frame := self._read_clean(lines.leave_out(doubtful))) is None:
            return None
        records = self._take_records(lines, doubtful, max(of, len(lines)))
        again = self.read_again(records)
        numbers = lines.numbers[sound]
        frame = self.layout.select_columns(frame, format_line_places(numbers))
        return replace(again, frame=merge_lines(frame, numbers, again.frame))

    def _take_records(self, lines: Lines, indexes: Sequence[int], of: int) -> Records:
        """Return the records in these lines. `of`: the lines of the block that they are taken from."""
        named = [record for index in indexes for record in self._split_line(f"line {lines.numbers[index]}", lines.get_line(index))]
        return Records(named, is_cut=len(lines) - 1 in indexes and not lines.raw.endswith(b"\n"), of=of)

    def reject_long_line(self, head: bytes, line: int) -> BlockContent:
        """Return a line that is too long to be read, as a reject with its beginning."""
        empty = self.layout.select_columns(self._parse(b"{}").clear(), pl.Series(dtype=pl.String))
        broken = [(Reason.TOO_LARGE.value, f"line {line}", cut_excerpt(head))]
        return BlockContent(empty, pl.DataFrame(broken, schema=BROKEN_SCHEMA, orient="row"))

    def read_again(self, records: Records) -> BlockContent:
        """Read records of which at least one may be broken; DumpError when the share of misfits shows that the layout is another one."""
        texts = [text for _, text in records.named]
        # DuckDB without strictness skips nothing: it makes rows of nulls, so rows and records stay aligned.
        lenient = self._parse(b"\n".join(texts), strict=False)
        unread = lenient.select(pl.all_horizontal(pl.all().is_null())).to_series()
        shape = self.layout.shape
        # Only records that DuckDB could not read, or read as another type, are parsed in Python.
        repaired = {row: _repair(shape, text) for row, text in enumerate(texts) if unread[row] or not shape.can_hold(text)}
        broken = {row: found for row, found in repaired.items() if isinstance(found, Reason)}
        # The same fault has two names: a broken line inside a file, a cut at its end.
        if records.is_cut and broken.get(len(texts) - 1) is Reason.BROKEN_RECORD:
            broken[len(texts) - 1] = Reason.TRUNCATED_FILE
        whole = {row: found for row, found in repaired.items() if isinstance(found, RepairedRecord)}
        self._refuse_other_layout(records, whole)
        sound = replace(
            records, named=[(place, whole[row].text if row in whole else text) for row, (place, text) in enumerate(records.named)]
        )
        frames = [self.layout.select_columns(lenient.clear(), pl.Series(dtype=pl.String))]
        refused: list[int] = []
        self._fit(sound, [row for row in range(len(texts)) if row not in broken], frames, refused)
        broken |= dict.fromkeys(refused, Reason.BROKEN_RECORD)
        rejects = [(broken[row].value, records.named[row][0], cut_excerpt(texts[row])) for row in sorted(broken)]
        misfits = [
            (Reason.WRONG_TYPE.value, records.named[row][0], cut_excerpt(texts[row]), found.record_id, misfit.field, misfit.value)
            for row, found in whole.items()
            if row not in broken
            for misfit in found.misfits
        ]
        return BlockContent(
            pl.concat(frames),
            pl.DataFrame(rejects, schema=BROKEN_SCHEMA, orient="row"),
            pl.DataFrame(misfits, schema=MISFIT_SCHEMA, orient="row"),
        )

    def _refuse_other_layout(self, records: Records, repaired: Mapping[int, RepairedRecord]) -> None:
        """Raise DumpError when most of the records have another type in the same field."""
        fields = Counter(
            name for found in repaired.values() for name in {_PLACE_IN_LIST.sub("[]", misfit.field) for misfit in found.misfits}
        )
        name, count = fields.most_common(1)[0] if fields else ("", 0)
        if count > max(MISFITS_PER_BLOCK, max(len(records.named), records.of) // 2):
            place, text = next(records.named[row] for row, found in repaired.items() if found.misfits)
            raise self._build_layout_error(
                text, f"{count} of {max(len(records.named), records.of)} records, from {place} on, hold another type in `{name}`"
            )

    def _split_line(self, place: str, line: bytes) -> list[tuple[str, bytes]]:
        """Return the line as a record, or the records of the document in it."""
        found = None
        if self.layout.members and line.lstrip().startswith(b"{"):
            with suppress(msgspec.DecodeError):
                found = self.layout.split(line)
        if found is None:
            return [(place, line)]
        return [(f"{place} record {number}", record) for number, record in enumerate(found, start=1)]

    def _fit(self, records: Records, rows: list[int], frames: list[pl.DataFrame], refused: list[int]) -> None:
        """Read the rows strictly, by halves where some do not fit."""
        if not rows:
            return
        try:
            frame = self._parse(b"\n".join(records.named[row][1] for row in rows))
        except duckdb.Error as error:
            if len(rows) > 1:
                # Halving finds one bad record of n in about 2 log n readings, and DuckDB does not say which one it was.
                half = len(rows) // 2
                self._fit(records, rows[:half], frames, refused)
                self._fit(records, rows[half:], frames, refused)
                return
            refused.append(rows[0])
            if len(refused) > MISFITS_PER_BLOCK:
                place, text = records.named[refused[0]]
                finding = f"more than {MISFITS_PER_BLOCK} records from {place} on are of another shape"
                raise self._build_layout_error(text, finding) from error
            return
        frames.append(self.layout.select_columns(frame, pl.Series([records.named[row][0] for row in rows], dtype=pl.String)))

    def _build_layout_error(self, text: bytes, finding: str) -> DumpError:
        remedy = "the platform has changed its layout: compare the format notes"
        return DumpError(f"{self.source_file}: {finding}: {cut_excerpt(text)}; {remedy}")

    def _parse(self, raw: bytes, *, strict: bool = True) -> pl.DataFrame:
        """Return all columns of the layout. Raises duckdb.Error when `strict` and a line is not JSON or does not fit."""
        of_thread = self._of_thread
        if not hasattr(of_thread, "cursor"):
            of_thread.cursor = self._connection.cursor()
            of_thread.memory = os.fdopen(os.memfd_create("block"), "wb", buffering=0)
            self._memory.append(of_thread.memory)
        descriptor = of_thread.memory.fileno()
        # The file is reused: what is left of a longer block would be read as more records.
        os.ftruncate(descriptor, 0)
        # Linux writes at most 2 GiB in one call and then returns a short count.
        for start in range(0, len(raw), _WRITE_BYTES):
            os.pwrite(descriptor, raw[start : start + _WRITE_BYTES], start)
        query = self.layout.build_sql(f"/proc/self/fd/{descriptor}", strict=strict, object_size=max(_LEAST_OBJECT_SIZE, len(raw) + 1))
        frame: pl.DataFrame = of_thread.cursor.sql(query).pl()
        return frame


def number_lines(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Return the line number of each record of a block. The records of a document in a line have its number, too."""
    return frame["place"].str.extract(r"^line (\d+)").cast(pl.Int64).to_numpy()


def merge_lines(frame: pl.DataFrame, numbers: NDArray[np.int64], other: pl.DataFrame) -> pl.DataFrame:
    """Return the records of both frames in the order of their lines. `numbers`: the line of each record of `frame`, ascending."""
    if other.is_empty():
        return frame
    order = np.argsort(np.append(numbers, number_lines(other)), kind="stable")
    both = pl.concat([frame, other])
    # Most columns belong to layouts that the dump does not have, and nulls need no order.
    return both.with_columns(pl.col(column.name).gather(order) for column in both if column.null_count() < both.height)


def format_line_places(numbers: NDArray[np.int64]) -> pl.Series:
    """Return line numbers in the form of `reject.place`."""
    return pl.select(pl.format("line {}", pl.Series(numbers))).to_series()


def connect(*, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB that hands text over to Polars without copying it."""
    limit: dict[str, str | bool | int | float | list[str]] = {"memory_limit": get_budget().database_limit}
    connection = duckdb.connect(config=limit | ({"threads": threads} if threads else {}))
    # String views let Polars take the text as it is; they exist since version 1.4 of the Arrow format.
    connection.execute("SET arrow_output_version = '1.4'; SET produce_arrow_string_view = true; SET enable_progress_bar = false")
    return connection


def _repair(shape: Shape, text: bytes) -> RepairedRecord | Reason:
    """Return the record without fields that do not fit, or why it cannot be read."""
    try:
        return shape.repair(text.decode()) or Reason.BROKEN_RECORD
    except UnicodeDecodeError:
        return Reason.INVALID_UTF8
