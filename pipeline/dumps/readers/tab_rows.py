"""Tab-separated lines in large blocks, every row checked for its cell count and its UTF-8 before a parser sees it.

In scope: cutting a byte stream at line ends, finding the lines that do not fit, exact line numbers. Out of scope: what a cell means
(`copy_text.py` for PostgreSQL's COPY text, the adapters for the rest). Quoting does not exist in these files: `"` is a letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.line_blocks import LongLine, cut_lines
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 16 << 20
"""Bytes per block. 8 to 32 MB parse equally fast (measured on 233 MB); memory is about ten times a block."""
LONGEST_LINE_BYTES = 64 << 20
"""A longer line is rejected unread: a file without line ends would fill the memory."""

_TAB, _LINE_END = 9, 10
FAULT_SCHEMA = pl.Schema({"line": pl.Int64, "reason": pl.String, "excerpt": pl.String})


@dataclass(frozen=True)
class RowBlock:
    """Rows of the right shape: `content` is UTF-8 text of whole lines, `lines` their numbers in the file, `faults` the lines left out."""

    content: bytes
    lines: pl.Series
    faults: pl.DataFrame


def read_rows(
    stream: BinaryIO, cells: int, source: str, *, has_heading: bool = False, is_ended: bool = False, block_bytes: int = BLOCK_BYTES
) -> Iterator[RowBlock]:
    """Yield the lines of `stream` with exactly `cells` cells, block by block in file order; the others are in `faults`.

    `has_heading` skips the first line. Lines may end in LF or CRLF (the parser cuts the CR); the last one may have no end, unless
    `is_ended`: then a file without one was cut off, and a DumpError names `source`. A line of more than LONGEST_LINE_BYTES is a fault.
    """
    first_line = 1
    # Line numbers come from counting good lines and faults, so every line must be one or the other.
    for piece in cut_lines(iter(lambda: stream.read(block_bytes), b""), LONGEST_LINE_BYTES):
        if is_ended:
            _refuse_cut(piece, source)
        if isinstance(piece, LongLine):
            fault = (first_line, Reason.TOO_LARGE.value, _cut_excerpt(piece.head))
            block = RowBlock(b"", pl.Series("line", dtype=pl.Int64), pl.DataFrame([fault], schema=FAULT_SCHEMA, orient="row"))
        else:
            content = piece if piece.endswith(b"\n") else piece + b"\n"
            if first_line == 1 and has_heading:
                content = content[content.index(b"\n") + 1 :]
                first_line = 2
            block = _check(content, cells, first_line)
        first_line += block.lines.len() + block.faults.height
        yield block


def _refuse_cut(piece: bytes | LongLine, source: str) -> None:
    """Raise DumpError when the last line of a file has no end."""
    head, has_end = (piece.head, piece.has_end) if isinstance(piece, LongLine) else (piece, piece.endswith(b"\n"))
    if not has_end:
        raise DumpError(f"{source}: cut off in the last line ({_cut_excerpt(head)[:60]!r} has no end); fetch the file again")


def _check(content: bytes, cells: int, first_line: int) -> RowBlock:
    text = np.frombuffer(content, np.uint8)
    # All rows of a block are checked at once on its separators, without splitting it.
    separators = text[(text == _TAB) | (text == _LINE_END)]
    row_count, remainder = divmod(separators.size, cells)
    fits = remainder == 0
    if fits:
        # Exactly `cells` cells in every row <=> the separators are cells-1 tabs and a line end, over and over.
        grid = separators.reshape(row_count, cells)
        fits = bool((grid[:, -1] == _LINE_END).all() and (grid[:, :-1] == _TAB).all())
    if fits and _is_utf8(content):
        lines = pl.int_range(first_line, first_line + row_count, dtype=pl.Int64, eager=True)
        return RowBlock(content, lines, pl.DataFrame(schema=FAULT_SCHEMA))
    return _take_out_faults(content, text, cells, first_line)


def _is_utf8(content: bytes) -> bool:
    """Return whether `content` is UTF-8. Arrow checks it without a copy: 10 times as fast as decoding to a string."""
    offsets = pa.py_buffer(np.array([0, len(content)], np.int64).tobytes())
    try:
        pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(content)]).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _take_out_faults(content: bytes, text: np.ndarray[tuple[int], np.dtype[np.uint8]], cells: int, first_line: int) -> RowBlock:
    ends = np.flatnonzero(text == _LINE_END)
    # Tabs before each line end; their differences are the tabs of each line.
    tabs = np.searchsorted(np.flatnonzero(text == _TAB), ends)
    tab_counts = np.diff(tabs, prepend=0)
    good: list[bytes] = []
    lines: list[int] = []
    faults: list[tuple[int, str, str]] = []
    start = 0
    for number, (end, tab_count) in enumerate(zip(ends.tolist(), tab_counts.tolist(), strict=True), first_line):
        line = content[start : end + 1]
        start = end + 1
        if tab_count != cells - 1:
            faults.append((number, Reason.WRONG_COLUMN_COUNT.value, _cut_excerpt(line)))
        # `isascii` first: most lines are ASCII, and it needs no Arrow array.
        elif not line.isascii() and not _is_utf8(line):
            faults.append((number, Reason.INVALID_UTF8.value, _cut_excerpt(line)))
        else:
            good.append(line)
            lines.append(number)
    return RowBlock(b"".join(good), pl.Series("line", lines, dtype=pl.Int64), pl.DataFrame(faults, schema=FAULT_SCHEMA, orient="row"))


def _cut_excerpt(line: bytes) -> str:
    return line[: 4 * EXCERPT_CHARACTERS].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")[:EXCERPT_CHARACTERS]
