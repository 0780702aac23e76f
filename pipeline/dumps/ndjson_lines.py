"""Where the records of newline-delimited text stand: line numbers and raw excerpts, for rejects.

What lives here: finding the lines that are no blank ones, in one block or forward through one file, once something was rejected.
What must not live here: what a line means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.dumps.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

STEP_BYTES = 4 << 20
EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS
"""No character of UTF-8 is longer than four bytes."""
PLACE_SCHEMA = {"row": pl.Int64, "place": pl.String, "excerpt": pl.String}
_BLANKS = b" \t\r\n"


def excerpt_of(record: bytes) -> str:
    """The beginning of a raw record as text; bytes that are not UTF-8 are shown by their numbers."""
    return record[:EXCERPT_BYTES].strip().decode("utf-8", "backslashreplace")[:EXCERPT_CHARACTERS]


@dataclass(frozen=True)
class Lines:
    """The lines of `raw` that hold more than blanks; `first_line` is the file's line number of its first line."""

    raw: bytes
    first_line: int

    @cached_property
    def _all(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Start, end and line number of each line that is not blank."""
        data = np.frombuffer(self.raw, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n")).astype(np.int64)
        if not self.raw.endswith(b"\n"):
            ends = np.append(ends, len(self.raw))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])
        keep = np.ones(len(ends), dtype=bool)
        for number in np.flatnonzero(np.isin(data[np.minimum(starts, len(data) - 1)], np.frombuffer(_BLANKS, dtype=np.uint8))):
            keep[number] = bool(self.raw[starts[number] : ends[number]].strip())
        return starts[keep], ends[keep], np.flatnonzero(keep).astype(np.int64) + self.first_line

    def __len__(self) -> int:
        """How many lines hold something."""
        return len(self._all[0])

    def number(self, index: int) -> int:
        """The file's line number of the line at `index`, counted among the lines that hold something."""
        return int(self._all[2][index])

    def line(self, index: int) -> bytes:
        """The bytes of that line, without its end."""
        starts, ends, _ = self._all
        return self.raw[starts[index] : ends[index]]

    def start(self, index: int) -> int:
        """Offset of that line in `raw`."""
        return int(self._all[0][index])

    def places(self, rows: Sequence[int], first_row: int = 0) -> pl.DataFrame:
        """`row`, `place`, `excerpt` of the rows asked for; `first_row` is the row of the first line."""
        found = [(row, f"line {self.number(row - first_row)}", excerpt_of(self.line(row - first_row))) for row in rows]
        return pl.DataFrame(found, schema=PLACE_SCHEMA, orient="row")


class LineFinder:
    """Places of rows in one plain file; the rows of a file count its lines that hold something, from 0."""

    def __init__(self, path: Path) -> None:
        """`path` is opened by each question."""
        self._path = path
        self._mark = (0, 0, 1)

    def places(self, first_row: int, rows: Sequence[int]) -> pl.DataFrame:
        """`row`, `place`, `excerpt` of `rows` (ascending), all at or behind `first_row`; later questions start there, never before."""
        found = [pl.DataFrame(schema=PLACE_SCHEMA)]
        waiting = list(rows)
        self._mark = (first_row, *self.position(first_row))
        for row, _, lines in self._steps():
            here = [wanted for wanted in waiting if wanted < row + len(lines)]
            found.append(lines.places(here, row))
            waiting = waiting[len(here) :]
            if not waiting:
                break
        return pl.concat(found)

    def position(self, row: int) -> tuple[int, int]:
        """Byte offset and line number of a row; of the end of the file when the file has fewer rows."""
        _, offset, line = self._mark
        for first_row, start, lines in self._steps():
            if row < first_row + len(lines):
                return start + lines.start(row - first_row), lines.number(row - first_row)
            offset, line = start + len(lines.raw), lines.first_line + lines.raw.count(b"\n")
        return offset, line

    def _steps(self) -> Iterator[tuple[int, int, Lines]]:
        """First row, byte offset and lines of each stretch of the file from the mark on."""
        row, offset, line = self._mark
        with self._path.open("rb") as file:
            file.seek(offset)
            for raw in whole_lines(iter(lambda: file.read(STEP_BYTES), b"")):
                lines = Lines(raw, line)
                yield row, offset, lines
                row, offset, line = row + len(lines), offset + len(raw), line + raw.count(b"\n")


def whole_lines(blocks: Iterator[bytes], longest: int | None = None) -> Iterator[bytes]:
    """The same bytes cut behind line ends; the last block may lack one. A line longer than a block comes as one longer block.

    Without a line end in more than `longest` bytes what there is comes as it is, for the caller to refuse.
    """
    parts: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, block[:cut]])
            parts = []
        if cut < len(block):
            parts.append(block[cut:])
            if longest is not None and sum(map(len, parts)) > longest:
                break
    if parts:
        yield b"".join(parts)
