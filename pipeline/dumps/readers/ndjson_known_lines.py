"""A block of lines of which most were parsed for the staging before: only the others are parsed, and all come in the order of the file.

Out of scope: where parsed lines are stored (staging/parsed_lines.py), parsing (ndjson_blocks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pipeline.dumps.readers.ndjson_blocks import BlockContent, format_line_places, merge_lines, number_lines
from pipeline.dumps.readers.ndjson_lines import Lines
from pipeline.dumps.staging.parsed_lines import hash_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.dumps.readers.ndjson_blocks import BlockReader
    from pipeline.dumps.staging.parsed_lines import KnownLines


@dataclass(frozen=True)
class PartlyRead:
    """A block whose new lines are parsed: `content` has these only. `numbers`, `hashes` and `rows` (see `KnownLines.find`) are by line."""

    content: BlockContent
    numbers: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    rows: NDArray[np.int64]


def read_new_lines(reader: BlockReader, known: KnownLines, raw: bytes, first_line: int) -> PartlyRead:
    """Parse the lines of a block that are not stored. May be called by several threads at once."""
    lines = Lines(raw, first_line)
    numbers = lines.numbers
    hashes = hash_lines(raw)[numbers - first_line]
    rows = known.find(hashes)
    new = np.flatnonzero(rows < 0)
    if len(new) < len(lines):
        lines = Lines(b"".join(lines.get_line(index, with_end=True) for index in new.tolist()), first_line, numbers[new])
    return PartlyRead(reader.read_lines(lines, of=len(rows)), numbers, hashes, rows)


def add_stored(block: PartlyRead, known: KnownLines) -> BlockContent:
    """Return the whole block, and store it for the next staging."""
    content = block.content
    is_stored = block.rows >= 0
    if is_stored.any():
        numbers = block.numbers[is_stored]
        stored = known.take(block.rows[is_stored], content.frame.drop("place")).with_columns(place=format_line_places(numbers))
        content = replace(content, frame=merge_lines(stored, numbers, content.frame))
    place = content.frame["place"]
    # A record with a misfit is incomplete, and its reject is found by parsing. Of a document no record stands for the line.
    is_whole = ~place.is_in(content.misfits["place"].implode()) & ~place.str.contains("record", literal=True)
    records = content.frame.filter(is_whole)
    known.keep(records.drop("place"), block.hashes[np.searchsorted(block.numbers, number_lines(records))])
    return content
