"""Places of records in newline-delimited text, for rejects: line numbers and raw excerpts.

In scope: finding the lines of a block that are not blank. Out of scope: what a line means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pipeline.dumps.readers.line_blocks import HEAD_BYTES
from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def cut_excerpt(record: bytes) -> str:
    """Return the beginning of a raw record as text; bytes that are not UTF-8 are shown by their numbers."""
    # `backslashreplace` shows the very bytes, which an operator can search for in the file.
    return record[:HEAD_BYTES].strip().decode("utf-8", "backslashreplace")[:EXCERPT_CHARACTERS]


@dataclass(frozen=True)
class Lines:
    """Lines of `raw` that hold more than blanks; `first_line` is the line number of its first line in the file.

    `listed`: the number of each line of `raw`, if they do not follow each other in the file.
    """

    raw: bytes
    first_line: int
    listed: NDArray[np.int64] | None = None

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
        numbers = np.arange(self.first_line, self.first_line + len(ends)) if self.listed is None else self.listed
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

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes of each line without its end."""
        starts, ends, _ = self._spans
        return (self.raw[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))

    def get_line(self, index: int, *, with_end: bool = False) -> bytes:
        """Return the bytes of a line; `index` counts lines that are not blank."""
        starts, ends, _ = self._spans
        return self.raw[starts[index] : ends[index] + with_end]

    def leave_out(self, indexes: Sequence[int]) -> bytes:
        """Return the bytes of all other lines; `indexes` ascend and count lines that are not blank."""
        starts, ends, _ = self._spans
        cuts = [0, *(bound for index in indexes for bound in (starts[index], ends[index] + 1)), len(self.raw)]
        return b"".join(self.raw[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True))
