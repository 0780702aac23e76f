"""Places of records in newline-delimited text, for rejects: line numbers and raw excerpts.

In scope: finding the lines that are not blank, in one block or forward through one file. Out of scope: what a line
means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pipeline.dumps.readers.compressed_files import DumpFile, detect_packing
from pipeline.dumps.readers.line_blocks import HEAD_BYTES
from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.dumps.readers.line_blocks import LineSample

STEP_BYTES = 512 << 10
"""Bytes that fit into the second-level cache."""


def cut_excerpt(record: bytes) -> str:
    """Return the beginning of a raw record as text; bytes that are not UTF-8 are shown by their numbers."""
    # `backslashreplace` shows the very bytes, which an operator can search for in the file.
    return record[:HEAD_BYTES].strip().decode("utf-8", "backslashreplace")[:EXCERPT_CHARACTERS]


@dataclass(frozen=True)
class Lines:
    """Lines of `raw` that hold more than blanks; `first_line` is the line number of its first line in the file."""

    raw: bytes
    first_line: int

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Line numbers in the file, ascending."""
        return self._spans[2]

    @cached_property
    def _spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Start, end and line number of each line that is not blank."""
        data = np.frombuffer(self.raw, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        if self.raw and not self.raw.endswith(b"\n"):
            ends = np.append(ends, len(self.raw))
        starts = np.append(0, ends[:-1] + 1)[: len(ends)]
        numbers = np.arange(self.first_line, self.first_line + len(ends))
        first_bytes = data[np.minimum(starts, len(data) - 1)]
        # Lines of JSON begin with a brace. Only lines that begin with a blank are looked at one by one.
        if not (first_bytes <= ord(" ")).any():
            return starts, ends, numbers
        keep = first_bytes > ord(" ")
        for index in np.flatnonzero(~keep):
            keep[index] = bool(self.raw[starts[index] : ends[index]].strip())
        return starts[keep], ends[keep], numbers[keep]

    def __len__(self) -> int:
        """Return the number of lines that are not blank."""
        return len(self.numbers)

    def get_line(self, index: int) -> bytes:
        """Return the bytes of a line without its end; `index` counts lines that are not blank."""
        starts, ends, _ = self._spans
        return self.raw[starts[index] : ends[index]]


class LineCounter:
    """Counter of the line numbers of a file's records, forward only, beside a reader that skips blank lines.

    It reads the file once more, looking only for line ends in what was read a moment ago: a tenth of the cost of parsing. Where the file is
    compressed it thereby notices a cut or a wrong checksum, as `DumpFile` does.
    """

    def __init__(self, path: Path, sample: LineSample | None = None) -> None:
        """Count in `path`, which is read as far as `take` asks; `sample` gets what is read."""
        self._steps = _find_line_starts(path, sample)
        self._starts = self._numbers = np.empty(0, dtype=np.int64)

    def take(self, count: int) -> NDArray[np.int64]:
        """Return line numbers of the next `count` records. Raises EOFError when the file has fewer."""
        found = []
        while True:
            found.append(self._numbers[:count])
            count -= len(found[-1])
            self._starts, self._numbers = self._starts[len(found[-1]) :], self._numbers[len(found[-1]) :]
            if count == 0:
                return np.concatenate(found)
            self._read_step()

    def find_position(self) -> tuple[int, int] | None:
        """Return byte offset (unpacked) and line number of the next record; None at the end of the file."""
        try:
            while not len(self._starts):
                self._read_step()
        except EOFError:
            return None
        return int(self._starts[0]), int(self._numbers[0])

    def _read_step(self) -> None:
        step = next(self._steps, None)
        if step is None:
            raise EOFError("the file has fewer records now than were read from it: it changed meanwhile")
        self._starts, self._numbers = step


def _find_line_starts(path: Path, sample: LineSample | None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield byte offset and number of each line that is not blank, step by step."""
    buffer = bytearray(STEP_BYTES)
    is_plain = detect_packing(path) == "plain"
    offset, line, is_at_start = 0, 1, True
    undecided: tuple[int, int] | None = None
    with path.open("rb", buffering=0) if is_plain else DumpFile(path) as file:
        while size := file.readinto(buffer):
            if sample:
                sample.look_at(buffer, size)
            data = np.frombuffer(buffer, dtype=np.uint8, count=size)
            starts = np.flatnonzero(data == ord("\n")) + 1
            if is_at_start:
                starts = np.append(0, starts)
            # A line feed at the very end of a step starts a line in the next one.
            is_at_start = len(starts) > 0 and starts[-1] == size
            if is_at_start:
                starts = starts[:-1]
            numbers = np.arange(line, line + len(starts))
            line += len(starts)
            keep = data[starts] > ord(" ")
            # A line of blanks may go on in the next step: it is held until its first other byte is seen.
            held = [] if undecided is None or _find_first_text(buffer, 0, size) in (b"", b"\n") else [undecided]
            undecided = undecided if _find_first_text(buffer, 0, size) == b"" else None
            for index in np.flatnonzero(~keep):
                first = _find_first_text(buffer, int(starts[index]), size)
                keep[index] = first not in (b"", b"\n")
                if first == b"":
                    undecided = offset + int(starts[index]), int(numbers[index])
            yield (
                np.append([start for start, _ in held], starts[keep] + offset).astype(np.int64),
                np.append([number for _, number in held], numbers[keep]).astype(np.int64),
            )
            offset += size


def _find_first_text(buffer: bytearray, start: int, end: int) -> bytes:
    """Return the first byte from `start` on that is not blank: a line end for a blank line, nothing when the step ends before."""
    for length in (64, end):
        text = bytes(buffer[start : min(start + length, end)]).lstrip(b" \t\r")
        if text:
            return text[:1]
    return b""
