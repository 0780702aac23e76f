r"""EPF flat files -> frames of text: `\x01` between cells, `\x02\n` after records, `#` lines around the data, no quoting.

In scope: the syntax, and the dirt that the syntax alone reveals. Out of scope: what a column means.

A file: `#<column>\x01<column>...` first, then `#primaryKey`, `#dbTypes`, `#exportMode` and `##legal` lines in any order, the records,
at last `#recordsWritten:<n>`. Cells may hold line breaks, so a CSV reader that splits at `\n` miscounts: here blocks are cut at `\x02\n`
and parsed with `\x02` for the end of a line. An empty cell is null. Records with too many cells are cut to the columns, ones with too few
are out, and so are records in which the exporter wrote `<UnknownKeyException>` for a number. A byte order mark, and `\r` before the `\n`
after a record, are not part of the data: `\x02` occurs nowhere else, so nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.line_blocks import LongLine, cut_lines
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 16 << 20
"""Bytes that are parsed at a time. Twice that, and the frame, are in memory."""
LONGEST_RECORD_BYTES = 64 << 20
"""A longer record is rejected unread: a file without record ends would fill the memory."""
CELL, RECORD = b"\x01", b"\x02\n"
_WINDOWS_RECORD = b"\x02\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_HEADER_BYTES = 4 << 20
"""Most bytes of one header line; the legal notes have some kilobytes."""
EXPORTER_ERROR = "<UnknownKeyException>"
FULL = "FULL"
_COUNT_LINE = b"#recordsWritten:"


@dataclass(frozen=True)
class EpfHeader:
    """The `#` lines above the records; `export_mode` is null when the file does not say."""

    columns: tuple[str, ...]
    export_mode: str | None


@dataclass(frozen=True)
class EpfBlock:
    """Some records in file order.

    `rows` has the columns asked for as text and `record`, the number of the record in the file from 1; `rejects` has the columns reason,
    record, value, excerpt.
    """

    rows: pl.DataFrame
    rejects: pl.DataFrame


REJECT_SCHEMA = pl.Schema({"reason": pl.String, "record": pl.Int64, "value": pl.String, "excerpt": pl.String})


class EpfFile:
    """One table of an EPF delivery, read forward only."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Read the header of `file`; errors call it `name`. Raises DumpError for another format and for partial exports."""
        self.name = name
        self._rest = file.read(1 << 16).removeprefix(_BYTE_ORDER_MARK)
        # The first record end decides for the whole file.
        mark = self._rest.find(RECORD[:1])
        is_windows = self._rest.startswith(_WINDOWS_RECORD, mark) if mark >= 0 else False
        self._file = _UnixEnds(self._rest, file) if is_windows else file
        # The wrapper hands out the head again, so it must not be held here, too.
        self._rest = b"" if is_windows else self._rest
        self.header = self._read_header()
        # A daily export has only what changed. Read as a dump it would remove all other records from the catalog.
        if self.header.export_mode != FULL:
            raise DumpError(f"{name}: an export of mode {self.header.export_mode}, not {FULL}; deliver the full export of the week")

    def _read_header(self) -> EpfHeader:
        while RECORD not in self._rest and len(self._rest) < _LONGEST_HEADER_BYTES and (data := self._file.read(1 << 16)):
            self._rest += data
        lines: list[bytes] = []
        # A table without records has its count right after the header, and that line begins with # as well.
        while self._rest.startswith(b"#") and not self._rest.startswith(_COUNT_LINE):
            line, found, rest = self._rest.partition(RECORD)
            if not found:
                if len(self._rest) > _LONGEST_HEADER_BYTES or not (data := self._file.read(1 << 16)):
                    raise DumpError(f"{self.name}: cut off inside the header lines; fetch the file again")
                self._rest += data
                continue
            lines.append(line)
            self._rest = rest
            if not rest:
                self._rest = self._file.read(1 << 16)
        if not lines:
            raise DumpError(f"{self.name}: no EPF file: it does not start with a '#' line of column names and \\x02\\n; fetch it again")
        words = [line.decode("utf-8", "replace") for line in lines]
        mode = next((line.partition(":")[2].strip().upper() for line in words if line.startswith("#exportMode:")), None)
        return EpfHeader(tuple(words[0].removeprefix("#").strip().split("\x01")), mode)

    def read_blocks(self, columns: tuple[str, ...] | None = None) -> Iterator[EpfBlock]:
        """Yield all records in order, with the named columns (default: all).

        DumpError after the last record when the file is cut off or holds another number of records than it says.
        """
        wanted = columns or self.header.columns
        seen = 0
        stated: int | None = None
        rest = b""
        for piece in cut_lines(self._read_rest(), LONGEST_RECORD_BYTES, RECORD):
            # It counts as a record: the number at the end of the file includes it.
            if isinstance(piece, LongLine) and piece.has_end:
                seen += 1
                yield _reject_long_record(piece.head, wanted, seen)
            elif isinstance(piece, LongLine):
                rest = piece.head
            elif not piece.endswith(RECORD):
                rest = piece
            else:
                block, stated = _split_count(piece, stated)
                if block:
                    parsed, records = _parse(block, self.header.columns, wanted, seen)
                    seen += records
                    yield parsed
        # The count is the last line, so a file without it lost at least its end. Without this check a cut between records would go
        # unnoticed.
        if rest.strip(b"\n") or stated is None:
            raise DumpError(f"{self.name}: cut off after record {seen} (no #recordsWritten line at the end); fetch the file again")
        if stated != seen:
            raise DumpError(f"{self.name}: holds {seen} records but says that {stated} were written; fetch the file again")

    def _read_rest(self) -> Iterator[bytes]:
        """Yield the bytes after the header, in blocks."""
        yield self._rest
        yield from iter(lambda: self._file.read(BLOCK_BYTES), b"")


class _UnixEnds:
    r"""A file whose records end in `\x02\r\n`, `head` being read of it already, as if they ended in `\x02\n`."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._held = head
        self._file = file

    def read(self, size: int) -> bytes:
        data = b""
        while not data:
            more = self._file.read(size)
            data, self._held = self._held + more, b""
            if not more:
                return data.replace(_WINDOWS_RECORD, RECORD)
            # A record end may span two reads: hold back its beginning until the rest has come.
            cut = next((end for end in (_WINDOWS_RECORD[:2], _WINDOWS_RECORD[:1]) if data.endswith(end)), b"")
            data, self._held = data.removesuffix(cut), cut
        return data.replace(_WINDOWS_RECORD, RECORD)


def _split_count(block: bytes, stated: int | None) -> tuple[bytes, int | None]:
    """Return the block without a `#recordsWritten` line at its end, and the number in that line."""
    start = block.rfind(_COUNT_LINE)
    # A title may contain the words. Only a whole line at the end of the block is the count.
    if start < 0 or (start > 0 and block[start - len(RECORD) : start] != RECORD) or block.find(RECORD, start) + len(RECORD) != len(block):
        return block, stated
    number = block[start + len(_COUNT_LINE) : -len(RECORD)].strip()
    return block[:start], int(number) if number.isdigit() else stated


def _reject_long_record(head: bytes, wanted: tuple[str, ...], number: int) -> EpfBlock:
    """Return a block without rows and with record `number`, which begins with `head`, as a reject."""
    rows = pl.DataFrame(schema={**dict.fromkeys(wanted, pl.String), "record": pl.Int64})
    out = [(Reason.TOO_LARGE.value, number, None, _cut_excerpt(head))]
    return EpfBlock(rows, pl.DataFrame(out, schema=REJECT_SCHEMA, orient="row"))


def _parse(block: bytes, columns: tuple[str, ...], wanted: tuple[str, ...], seen: int) -> tuple[EpfBlock, int]:
    """Parse whole records into the `wanted` columns. Return the block and the number of records, rejected ones included."""
    raw = np.frombuffer(block, dtype=np.uint8)
    # `\x02` occurs nowhere but after a record, so counting bytes counts records without parsing.
    records = int(np.count_nonzero(raw == RECORD[0]))
    rejects = REJECT_SCHEMA.to_frame()
    # The exporter writes this text for a number that it cannot name; such a record is rejected as a whole.
    rows = None if EXPORTER_ERROR.encode() in block else _read_regular(block, columns, wanted)
    # No record has too many cells (that would be an error), so the right number of separators says that none has too few.
    if rows is None or rows.height != records or int(np.count_nonzero(raw == CELL[0])) != records * (len(columns) - 1):
        block, rejects = _take_out(block, columns, seen)
        rows = _read_cells(block, columns, wanted)
    rows = rows.with_columns(record=pl.int_range(seen + 1, seen + 1 + records, dtype=pl.Int64))
    if rejects.height:
        rows = rows.join(rejects, on="record", how="anti", maintain_order="left")
    return EpfBlock(rows, rejects), records


def _take_out(block: bytes, columns: tuple[str, ...], seen: int) -> tuple[bytes, pl.DataFrame]:
    """Return the block with cells cut to the columns and blanks in place of rejected records, and the rejects. Checks each record."""
    kept: list[bytes] = []
    out: list[tuple[str, int, str | None, str]] = []
    for number, record in enumerate(block.removesuffix(RECORD).split(RECORD), start=seen + 1):
        cells = record.split(CELL)
        reason, value = None, None
        if len(cells) < len(columns):
            reason, value = Reason.WRONG_COLUMN_COUNT, f"{len(cells)} cells of {len(columns)}"
        elif EXPORTER_ERROR.encode() in cells:
            reason, value = Reason.INVALID_NUMBER, EXPORTER_ERROR
        elif not _is_utf8(record):
            reason = Reason.INVALID_UTF8
        if reason is not None:
            out.append((reason.value, number, value, _cut_excerpt(record)))
        # A rejected record stays as an empty row, so that rows and record numbers keep in step. The join by `record` removes it.
        kept.append(CELL.join(cells[: len(columns)]) if reason is None else CELL * (len(columns) - 1))
    return RECORD.join([*kept, b""]), pl.DataFrame(out, schema=REJECT_SCHEMA, orient="row")


def _read_regular(block: bytes, columns: tuple[str, ...], wanted: tuple[str, ...]) -> pl.DataFrame | None:
    try:
        return _read_cells(block, columns, wanted)
    except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
        return None


def _read_cells(block: bytes, columns: tuple[str, ...], wanted: tuple[str, ...]) -> pl.DataFrame:
    rows = pl.read_csv(
        # Without the last `\n`, which would parse as one more record of one cell.
        block[:-1],
        has_header=False,
        schema=dict.fromkeys(columns, pl.String),
        columns=[columns.index(name) for name in wanted],
        separator="\x01",
        eol_char="\x02",
        quote_char=None,
    ).select(wanted)
    # The parser takes the `\n` after each `\x02` for the start of the next record.
    return rows.with_columns(pl.col(columns[0]).str.strip_prefix("\n").replace("", None)) if columns[0] in wanted else rows


def _is_utf8(record: bytes) -> bool:
    try:
        record.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut_excerpt(record: bytes) -> str:
    """Return a raw record as text with `|` between cells."""
    return record[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").replace("\x01", "|")[:EXCERPT_CHARACTERS]
