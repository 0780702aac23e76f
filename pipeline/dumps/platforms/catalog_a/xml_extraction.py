"""Columns of text out of one block of records, by libxml2 and a stylesheet, and the records that are not XML.

libxml2 parses and libxslt walks the tree, both in C; Python touches a block only as a whole. Walking the tree from Python costs three times
as much as parsing it. The stylesheets beside this file say which parts of a record are taken. The meaning of columns is not known here.

The text that a stylesheet makes: sections of rows of values; a value may be a list of items of parts. The five separators are Unicode
noncharacters, which no text may hold that is meant for interchange.
"""

from __future__ import annotations

import html
import html.entities
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from lxml import etree

from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.dumps.platforms.catalog_a.xml_blocks import Block

VALUE, ROW, SECTION, PART, ITEM = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4"

TREE_BYTES = 1 << 20
"""Bytes that are parsed at once. The tree of a megabyte (about 15 MB) stays near the processor; with 8 MB all takes a third longer."""

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|x0*(?:1?[0-8bcefBCEF]|1[9aAdD]));")
"""Raw, or as numbers."""
_AMPERSAND = re.compile(rb"&(?!#[0-9]+;|#x[0-9a-fA-F]+;|(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]*;)?")
_SEPARATOR_LEAD = b"\xef\xb7"
_REPLACEMENT = "\ufffd".encode()
_TAIL_CHARACTERS = 500


@dataclass(frozen=True)
class BrokenRecord:
    """A record that cannot be parsed: its first byte in the unpacked file, the fault, and its raw beginning."""

    offset: int
    reason: Reason
    message: str
    excerpt: str


@dataclass(frozen=True)
class Extraction:
    """Frames of text, one per section. `offsets`: the byte of the file at which each record of the first section starts."""

    frames: list[pl.DataFrame]
    offsets: list[int]
    broken: list[BrokenRecord]


def extract(block: Block, sections: Sequence[Sequence[str]]) -> Extraction:
    """Parse `block`; `sections` names the columns of each section. Absent and empty are both the empty string."""
    texts: list[list[str]] = []
    kept: list[int] = []
    broken: list[BrokenRecord] = []
    for starts, found in _extract_runs(block, sections):
        if isinstance(found, BrokenRecord):
            broken.append(found)
        else:
            texts.append(found)
            kept += starts[:-1]
    frames = [_build_frame("".join(parts), names) for parts, names in zip(zip(*texts, strict=True), sections, strict=True)] if texts else []
    frames = frames or [_build_frame("", names) for names in sections]
    if frames[0].height != len(kept):
        # Records that do not each start a line of their own: known is only where the first of them starts.
        kept = kept[:1] * frames[0].height
    return Extraction(frames, [block.offset + offset for offset in kept], broken)


def _extract_runs(block: Block, sections: Sequence[Sequence[str]]) -> Iterator[tuple[list[int], list[str] | BrokenRecord]]:
    """Yield runs of records in order, each as its starts and the end, with its texts, or with the fault of its only record."""
    waiting = list(_cut_runs(block.find_record_offsets(), len(block.data)))[::-1]
    while waiting:
        starts = waiting.pop()
        records = block.data[starts[0] : starts[-1]]
        is_alone = len(starts) - 1 == 1
        try:
            # Only a single record is mended: in a run, a repair would also change what is right as it is (CDATA, comments).
            yield starts, (_extract_mended if is_alone else _extract_texts)(block.root, records, sections)
        except (etree.XMLSyntaxError, _SeparatorError) as error:
            if is_alone:
                yield starts, _describe_broken(records, block.offset + starts[0], str(error))
            else:
                # One faulty record fails its run. Reading all its records one by one takes longer than splitting the run a few times.
                waiting += list(_split_run(starts, records, error))[::-1]


def _split_run(starts: list[int], records: bytes, error: Exception) -> Iterator[list[int]]:
    """Yield the run in pieces: the halves, and the faulty record apart if the error names its line."""
    last = len(starts) - 1
    cuts = {0, last // 2, last}
    line = error.lineno or 0 if isinstance(error, etree.XMLSyntaxError) else 0
    if line > 0:
        rest = records.split(b"\n", line - 1)[-1]
        faulty = min(bisect_right(starts, starts[-1] - len(rest)), last) - 1
        # A guess: an open comment shows up at the end only. The halves bound how often its run is split again.
        cuts |= {faulty, faulty + 1}
    for start, end in pairwise(sorted(cuts)):
        yield starts[start : end + 1]


def _cut_runs(offsets: list[int], end: int) -> Iterator[list[int]]:
    """Yield record starts in runs of about TREE_BYTES, each run ended by the start of the next."""
    run = [offsets[0]]
    for offset in offsets[1:]:
        run.append(offset)
        if offset - run[0] >= TREE_BYTES:
            yield run
            run = [offset]
    yield [*run, end]


def _extract_mended(root: str, record: bytes, sections: Sequence[Sequence[str]]) -> list[str]:
    """Return the texts of one record as `_extract_texts` does, after removing what XML forbids: control characters, bare ampersands."""
    try:
        return _extract_texts(root, record, sections)
    except etree.XMLSyntaxError:
        repaired = _AMPERSAND.sub(_escape, _CONTROL.sub(b"", record))
        if repaired == record:
            raise
        return _extract_texts(root, repaired, sections)


def _escape(ampersand: re.Match[bytes]) -> bytes:
    """Return an entity of HTML as its character, a bare ampersand as XML writes it."""
    character = html.entities.html5.get((ampersand[1] or b"").decode())
    return b"&amp;" + (ampersand[1] or b"") if character is None else html.escape(character).encode()


def _describe_broken(record: bytes, offset: int, message: str) -> BrokenRecord:
    try:
        record.decode()
        reason = Reason.BROKEN_RECORD
    except UnicodeDecodeError as error:
        reason, message = Reason.INVALID_UTF8, str(error)
    return BrokenRecord(offset, reason, message, record[: 4 * _TAIL_CHARACTERS].decode(errors="replace")[:_TAIL_CHARACTERS])


class _SeparatorError(Exception):
    """A record that holds a separator as a numeric character reference, so that its columns cannot be split."""


def _extract_texts(root: str, records: bytes, sections: Sequence[Sequence[str]]) -> list[str]:
    """Return a text per section. Raises XMLSyntaxError or _SeparatorError when one of the records is faulty."""
    # All five separators begin with these two bytes in UTF-8; nearly every text passes this one search.
    if _SEPARATOR_LEAD in records:
        for separator in (VALUE, ROW, SECTION, PART, ITEM):
            records = records.replace(separator.encode(), _REPLACEMENT)
    tree = etree.fromstring(b"<%s>%s</%s>" % (root.encode(), records, root.encode()), _build_parser())
    texts = str(_load_stylesheet(root)(tree)).split(SECTION)
    if len(texts) != len(sections):
        raise _SeparatorError("a section separator in the text")
    # A separator may also come as a numeric reference, which only shows after parsing: then the counts do not fit.
    if any(text.count(VALUE) != text.count(ROW) * (len(names) - 1) for text, names in zip(texts, sections, strict=True)):
        raise _SeparatorError("a value or row separator in the text")
    return texts


def _build_frame(text: str, names: Sequence[str]) -> pl.DataFrame:
    lines = pl.Series([text.removesuffix(ROW)]).str.split(ROW).explode() if text else pl.Series([], dtype=pl.String)
    return lines.str.split_exact(VALUE, len(names) - 1).struct.rename_fields(list(names)).struct.unnest()


@cache
def _build_parser() -> etree.XMLParser:
    # huge_tree lifts the 10 MB limit for a text node. Entities and the network stay off: a dump is not trusted.
    return etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True, collect_ids=False)


@cache
def _load_stylesheet(root: str) -> etree.XSLT:
    path = Path(__file__).with_name(f"{root}.xslt")
    return etree.XSLT(etree.fromstring(path.read_bytes(), etree.XMLParser(resolve_entities=True, no_network=True)))


def list_items(frame: pl.DataFrame, column: str, names: Sequence[str]) -> pl.DataFrame:
    """Return a row per item of the lists in `column`, in order: the other columns of `frame`, then the parts as columns `names`."""
    filled = frame.filter(pl.col(column) != "").with_columns(pl.col(column).str.strip_suffix(ITEM).str.split(ITEM)).explode(column)
    if len(names) == 1:
        return filled.rename({column: names[0]})
    parts = pl.col(column).str.split_exact(PART, len(names) - 1).struct.rename_fields(list(names))
    return filled.with_columns(parts).unnest(column)
