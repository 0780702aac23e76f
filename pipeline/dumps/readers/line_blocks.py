"""Blocks of bytes cut after line ends, in bounded memory: a line that is too long is skipped and reported.

In scope: the cutting that all readers of lines and records share, and a sample of lines from all over a file.
Out of scope: what a line means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.dumps.staging.staging_writer import EXCERPT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HEAD_BYTES = 4 * EXCERPT_CHARACTERS
"""Bytes kept of a line that is too long. No character of UTF-8 is longer than four bytes."""


@dataclass(frozen=True)
class LongLine:
    """A line that is too long to be read: its beginning, and whether it has an end (only the last line may lack one)."""

    head: bytes
    has_end: bool = True


def cut_lines(blocks: Iterable[bytes], longest: int, end: bytes = b"\n") -> Iterator[bytes | LongLine]:
    """Yield the same bytes cut after line ends; the last piece may lack one. A line longer than a block is one longer piece.

    A line of more than `longest` bytes, its end included, is yielded as a `LongLine`, with no more than `longest` bytes of it in memory.
    `blocks` are no longer than `longest`.
    """
    parts: list[bytes] = []
    held = 0
    long: bytes | None = None
    # Invariant: `parts` hold a line without its end, of `held` bytes. `long` holds the beginning of a line that is already too long.
    for block in _keep_ends_whole(blocks, end):
        rest = block
        first = rest.find(end) + len(end) if end in rest else 0
        # Decided before the line is complete: that is what bounds the memory.
        if long is None and held + (first or len(rest)) > longest:
            long = b"".join([*parts, rest])[:HEAD_BYTES]
            parts, held = [], 0
        if long is not None:
            if not first:
                continue
            yield LongLine(long)
            rest, long = rest[first:], None
        # Cut at the last end only: the caller gets few large pieces and splits them itself.
        cut = rest.rfind(end) + len(end) if end in rest else 0
        if cut:
            yield b"".join([*parts, rest[:cut]])
            parts, held = [], 0
        if cut < len(rest):
            parts.append(rest[cut:])
            held += len(rest) - cut
    if long is not None:
        yield LongLine(long, has_end=False)
    if parts:
        yield b"".join(parts)


SAMPLE_STEP_BYTES = 1 << 20
"""Bytes between two lines of a sample; 500 times the line taken if that is more. A sample then costs less than 1 % of reading."""
_STEP_LINES = 500


class LineSample:
    """Sample of lines from all over a file, which `look_at` gets in order, block by block."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        """Call `take` with each line of the sample, without its end. Lines that are in two blocks are never in it."""
        self._take = take
        self._skipped = SAMPLE_STEP_BYTES

    def look_at(self, block: bytes | bytearray, size: int) -> None:
        """Take lines from the first `size` bytes of `block`, which are the next ones of the file."""
        while self._skipped < size:
            # The step ends within a line, so the sample takes the next whole one.
            start = block.find(b"\n", self._skipped, size) + 1
            end = block.find(b"\n", start, size) if start else -1
            if end < 0:
                self._skipped = size  # the next block begins with another line
                break
            self._take(bytes(block[start:end]))
            self._skipped = end + max(SAMPLE_STEP_BYTES, _STEP_LINES * (end - start))
        self._skipped -= size


def _keep_ends_whole(blocks: Iterable[bytes], end: bytes) -> Iterator[bytes]:
    """Yield the same bytes in blocks of which only the last may end within `end`."""
    begun = b""
    for block in blocks:
        text = begun + block if begun else block
        # A block that ends in `\x02` may be continued by `\n`: searched apart, neither block would show the record end.
        begun = next((end[:size] for size in range(len(end) - 1, 0, -1) if text.endswith(end[:size])), b"")
        if len(text) > len(begun):
            yield text[: len(text) - len(begun)] if begun else text
    if begun:
        yield begun
