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

    from numpy.typing import NDArray

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


def _is_utf8(content: bytes, start: int = 0, end: int | None = None) -> bool:
    """Return whether a part of `content` is UTF-8. Arrow checks it without a copy: 10 times as fast as decoding to a string."""
    offsets = pa.py_buffer(np.array([start, len(content) if end is None else end], np.int64).tobytes())
    try:
        pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(content)]).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _find_no_text(content: bytes, bounds: NDArray[np.int64], first: int, end: int) -> Iterator[int]:
    """Yield which of the lines `first` to `end` are not UTF-8, by halves. Line n is between `bounds` n and n + 1."""
    if _is_utf8(content, int(bounds[first]), int(bounds[end])):
        return
    if end - first == 1:
        yield first
        return
    middle = (first + end) // 2
    yield from _find_no_text(content, bounds, first, middle)
    yield from _find_no_text(content, bounds, middle, end)


def _take_out_faults(content: bytes, text: NDArray[np.uint8], cells: int, first_line: int) -> RowBlock:
    # In columns: one faulty line among 16 MB is the ordinary case, and a loop over all lines took twice as long as parsing them.
    bounds = np.append(0, np.flatnonzero(text == _LINE_END) + 1)
    # Tabs before each line end; their differences are the tabs of each line.
    tab_counts = np.diff(np.searchsorted(np.flatnonzero(text == _TAB), bounds))
    is_miscounted = tab_counts != cells - 1
    no_text = list(_find_no_text(content, bounds, 0, len(tab_counts)))
    is_faulty = is_miscounted.copy()
    is_faulty[no_text] = True
    good: list[bytes] = []
    faults: list[tuple[int, str, str]] = []
    start = 0
    for index in np.flatnonzero(is_faulty).tolist():
        reason = Reason.WRONG_COLUMN_COUNT if is_miscounted[index] else Reason.INVALID_UTF8
        good.append(content[start : bounds[index]])
        start = int(bounds[index + 1])
        faults.append((first_line + index, reason.value, _cut_excerpt(content[bounds[index] : start])))
    good.append(content[start:])
    numbers = first_line + np.flatnonzero(~is_faulty)
    return RowBlock(b"".join(good), pl.Series("line", numbers, dtype=pl.Int64), pl.DataFrame(faults, schema=FAULT_SCHEMA, orient="row"))


def _cut_excerpt(line: bytes) -> str:
    return line[: 4 * EXCERPT_CHARACTERS].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")[:EXCERPT_CHARACTERS]
