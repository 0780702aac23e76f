"""A dump file cut into blocks of whole records, without parsing it.

Every record of these files starts at the start of a line, so a block ends where the last record start in it is found. Cutting needs no
parser and keeps one block in memory; parsing the blocks is the business of `xml_extraction.py`, in other processes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANCHORS = {"releases": b"<release ", "masters": b"<master ", "artists": b"<artist>", "labels": b"<label>"}
"""Start of a record, by root element. The same names occur further down. There `<label id=...>` differs by its attribute; the others are
in the middle of a line. Text cannot hold a raw `<`, but it can hold a raw line feed."""

BLOCK_BYTES = 8 << 20
"""About 1,800 releases. Smaller blocks pay more for the fixed cost of each frame operation, larger ones only take memory."""
LARGEST_RECORD_BYTES = 64 << 20
"""The largest release is below 2 MB. Without this bound a file of another layout would be gathered in memory as one record."""

_HEAD = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?<(\w+)\s*(/?)>")
_HEAD_BYTES = 4096
_PADDING = b" \t\r\n\0\x1a"
"""Bytes that tapes and old editors append to a file."""
_LINE_FEED, _LESS_THAN = b"\n<"


@dataclass(frozen=True)
class Block:
    """Whole records of one file. `offset` is the byte of the unpacked file at which `data` starts."""

    root: str
    offset: int
    data: bytes

    def find_record_offsets(self) -> list[int]:
        """Return the starts of the records in `data`. The first one need not begin a line."""
        anchor = ANCHORS[self.root]
        # The first record may follow the root element on the same line.
        first = len(self.data) - len(self.data.lstrip())
        # Ten times faster than searching for the anchor itself, whose parts are all over the text.
        raw = np.frombuffer(self.data, dtype=np.uint8)
        tags = np.flatnonzero((raw[:-1] == _LINE_FEED) & (raw[1:] == _LESS_THAN)) + 1
        return [first, *(start for start in tags.tolist() if start > first and self.data.startswith(anchor, start))]


def cut_record_blocks(path: Path, root: str, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the records of the file at `path` in blocks of at least about `size` bytes.

    DumpError when the file has another root than `root`, ends before the root is closed, or holds no record.
    """
    source = read_blocks(path, size)
    data = next(source)
    offset = _find_root_end(path, root, data)
    data = data[offset:]
    anchor = b"\n" + ANCHORS[root]
    is_empty = True
    for more in chain((b"",), source):
        # Only the new bytes are searched, and as many before them as an anchor across the border needs.
        searched = max(len(data) - len(anchor), 0) if more else 0
        data += more
        cut = data.rfind(anchor, searched) + 1
        # The last record of the block stays: its end is not known before the next one starts.
        if cut > 1 and not data[:cut].isspace():
            yield Block(root, offset, data[:cut])
            is_empty = False
            offset += cut
            data = data[cut:]
        elif len(data) > LARGEST_RECORD_BYTES + size:
            raise DumpError(
                f"{path}: no record starts in {len(data)} bytes from byte {offset} on: the layout has changed, see the format notes"
            )
    end = f"</{root}>".encode()
    place = offset + len(data)
    data = data.rstrip(_PADDING)
    # A gzip of half a file is valid gzip. Only the closing root proves that nothing is missing.
    if not data.endswith(end):
        raise DumpError(f"{path}: cut off at byte {place}: the closing </{root}> is missing; fetch the file again and compare its checksum")
    data = data.removesuffix(end)
    if data.strip():
        yield Block(root, offset, data)
    elif is_empty:
        raise DumpError(f"{path}: holds no record; fetch the file again and compare its checksum")


def _find_root_end(path: Path, root: str, head: bytes) -> int:
    """Return the length of the file up to the end of the root's opening tag."""
    match = _HEAD.match(head[:_HEAD_BYTES])
    if match is None or match[1].decode() not in ANCHORS:
        raise DumpError(f"{path}: begins with {head[:60]!r}, not with one of {', '.join(f'<{name}>' for name in ANCHORS)}")
    if match[1].decode() != root:
        raise DumpError(f"{path}: holds <{match[1].decode()}>, its name says <{root}>: deliver each file under its own name")
    if match[2]:
        raise DumpError(f"{path}: holds no record (<{root}/>); fetch the file again and compare its checksum")
    return match.end()
