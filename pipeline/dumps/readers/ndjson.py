"""Reader of JSON: frames of the wanted columns, block by block, with every record counted.

In scope: the reader that all JSON dumps share. Newline-delimited files (`.ndjson`, `.jsonl`, `.json`, plain, `.gz`, `.zst`, `.bz2`,
`.xz`) and streams, and documents (`[...]`, `{"data": [...]}`, one object), which may also come one per line. Out of scope: what
a field means.

A file is unpacked once and read by DuckDB in blocks, strictly; a block gets a second look only when it needs one. Lines that the staging
before had are not parsed again (ndjson_known_lines.py).
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec
import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import DumpFile
from pipeline.dumps.readers.json_documents import is_json, to_one_line
from pipeline.dumps.readers.line_blocks import LineSample, LongLine, cut_lines
from pipeline.dumps.readers.ndjson_blocks import BlockContent, BlockReader, Layout, Records
from pipeline.dumps.readers.ndjson_known_lines import PartlyRead, add_stored, read_new_lines
from pipeline.dumps.staging.layout_expectations import SAMPLED_LINES
from pipeline.engine.pool import count_workers, is_engine_used, map_ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.dumps.staging.layout_expectations import MemberCensus
    from pipeline.dumps.staging.parsed_lines import KnownLines, ParsedLines

BLOCK_BYTES = 8 << 20
SNIFF_BYTES = 1 << 20
RECORD_BYTES = 64 << 20
"""Longest line that is read. Reading one takes about ten times its size; the largest release of any platform is below 20 MB."""
DOCUMENT_BYTES = 256 << 20
"""A document is held in memory as a whole, several times; larger ones must come as one record per line."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Consecutive records of one file.

    `frame` has the columns asked for, with `source_file` and `place` as `record_checks` takes them. `broken` has the records that cannot be
    read, as columns of `reject` without `entity`; every record is in one of both. `misfits`, in the form of `broken`, has fields of other
    types, which are left out of the records in `frame`.
    """

    frame: pl.DataFrame
    broken: pl.DataFrame
    misfits: pl.DataFrame

    @property
    def rows(self) -> int:
        """Number of records read."""
        return self.frame.height + self.broken.height

    def build_rejects(self, entity: str) -> pl.DataFrame:
        """Return `broken` and `misfits` as rows of `reject` for the staging table `entity`."""
        return pl.concat([self.broken, self.misfits], how="diagonal").with_columns(entity=pl.lit(entity))


def read_json_blocks(
    path: Path,
    columns: Mapping[str, str],
    *,
    source_file: str | None = None,
    members: Sequence[str] = (),
    census: MemberCensus | None = None,
    parsed: ParsedLines | None = None,
) -> Iterator[Block]:
    """Yield the JSON records of a file in order, with `columns` (name -> DuckDB type; scalars VARCHAR, polymorphic fields JSON).

    `source_file` is the name for rejects (default: the file name). `members` says where documents hold their records (see
    `json_documents`), `census` counts the members of records, `parsed` has lines that need not be parsed again. Absent fields are null.
    A record that is not a JSON object is in `broken`; a list, object or text that is where another should is left out of its record and
    is in `misfits`. DumpError when the file is missing, empty, cut off inside its compression, or holds no records at all.
    """
    layout = Layout(columns, members)
    reader = _Reader(path, layout, source_file or path.name, _build_sample(census, layout), parsed)
    rows = 0
    try:
        for block in reader.read_blocks():
            rows += block.rows
            if census:
                census.count(block.frame)
            yield block
        if census:
            census.look_for_others(reader.find_first_records())
    except (OSError, EOFError) as error:
        raise DumpError(f"{path}: cannot be read to its end ({error}); was it moved or replaced? Fetch it again") from error
    if rows == 0 and not reader.is_document:
        raise DumpError(f"{path}: holds no records, only blank lines; fetch the file again and compare its checksum")


def read_json_stream(
    stream: BinaryIO,
    columns: Mapping[str, str],
    source_file: str,
    *,
    members: Sequence[str] = (),
    census: MemberCensus | None = None,
    parsed: ParsedLines | None = None,
) -> Iterator[Block]:
    """Yield blocks as `read_json_blocks` does, of a stream with one record per line that is read once (a member of an archive)."""
    chunks = iter(lambda: stream.read(BLOCK_BYTES), b"")
    yield from read_json_chunks(chunks, columns, source_file, members=members, census=census, parsed=parsed)


def read_json_chunks(
    chunks: Iterator[bytes],
    columns: Mapping[str, str],
    source_file: str,
    *,
    members: Sequence[str] = (),
    census: MemberCensus | None = None,
    parsed: ParsedLines | None = None,
) -> Iterator[Block]:
    """Yield blocks as `read_json_stream` does, of bytes that come in pieces."""
    # The census looks into the first records once more at the end; a stream cannot be read twice.
    head = b""

    def keep_head() -> Iterator[bytes]:
        nonlocal head
        for chunk in chunks:
            head = head or chunk[:SNIFF_BYTES]
            yield chunk

    layout = Layout(columns, members)
    for content in _read_block_wise(keep_head(), layout, source_file, _build_sample(census, layout), parsed):
        block = _build_block(content, source_file)
        if census:
            census.count(block.frame)
        yield block
    if census:
        census.look_for_others(_find_first_records(head, layout))


def _read_block_wise(
    chunks: Iterator[bytes], layout: Layout, source_file: str, sample: LineSample | None, parsed: ParsedLines | None
) -> Iterator[BlockContent]:
    """Yield the content of consecutive bytes, in order. Several blocks are read at the same time."""
    if is_engine_used():
        # Workers of a cluster parse all lines: stored ones are on this machine.
        yield from map_ordered(partial(_read_alone, layout, source_file), _number_blocks(chunks, sample))
        return
    known = parsed.open_form(layout.text) if parsed else None
    workers = count_workers()
    waiting: deque[Future[BlockContent | PartlyRead]] = deque()
    # Threads and not processes: DuckDB parses outside the lock of Python, and blocks need no copy.
    with closing(BlockReader(layout, source_file)) as reader, ThreadPoolExecutor(workers) as pool:
        for job in _number_blocks(chunks, sample):
            waiting.append(pool.submit(_read_job, reader, job, known))
            # Results in the order of the file, and no more blocks in memory than processors and one.
            if len(waiting) > workers:
                yield _complete(waiting.popleft().result(), known)
        while waiting:
            yield _complete(waiting.popleft().result(), known)


def _complete(read: BlockContent | PartlyRead, known: KnownLines | None) -> BlockContent:
    return add_stored(read, known) if known is not None and isinstance(read, PartlyRead) else cast("BlockContent", read)


def _number_blocks(chunks: Iterator[bytes], sample: LineSample | None) -> Iterator[tuple[bytes | LongLine, int]]:
    """Yield whole lines, and lines that are too long to be read, each with the number of its first line."""
    line = 1
    for raw in cut_lines(chunks, RECORD_BYTES):
        yield raw, line
        if isinstance(raw, LongLine):
            line += 1
        else:
            if sample:
                sample.look_at(raw, len(raw))
            line += raw.count(b"\n")


def _read_job(reader: BlockReader, job: tuple[bytes | LongLine, int], known: KnownLines | None = None) -> BlockContent | PartlyRead:
    raw, line = job
    if isinstance(raw, LongLine):
        return reader.reject_long_line(raw.head, line)
    return reader.read(raw, line) if known is None else read_new_lines(reader, known, raw, line)


def _read_alone(layout: Layout, source_file: str, job: tuple[bytes | LongLine, int]) -> BlockContent:
    """Read a block on a worker of a cluster."""
    with closing(BlockReader(layout, source_file)) as reader:
        return cast("BlockContent", _read_job(reader, job))


def _build_block(content: BlockContent, source_file: str) -> Block:
    name = pl.lit(source_file)
    return Block(
        content.frame.with_columns(source_file=name),
        content.broken.with_columns(severity=pl.lit("row"), source_file=name),
        content.misfits.with_columns(severity=pl.lit("field"), source_file=name),
    )


def _find_first_records(head: bytes, layout: Layout) -> Iterator[bytes]:
    """Yield the whole records at the beginning of a file; a document gives the records in it."""
    for line in head.split(b"\n")[:SAMPLED_LINES]:
        yield from _split_records(line, layout)


def _split_records(line: bytes, layout: Layout) -> Sequence[bytes]:
    """Return the line as a record, or the first records of the document in it."""
    found = None
    with suppress(msgspec.DecodeError):
        found = layout.split(line) if layout.members and line.strip() else None
    return [line] if found is None else found[:SAMPLED_LINES]


def _build_sample(census: MemberCensus | None, layout: Layout) -> LineSample | None:
    """Return a sample that gives the census records from all over a file."""
    return None if census is None else LineSample(lambda line: census.look_into(_split_records(line, layout)))


class _Reader:
    def __init__(self, path: Path, layout: Layout, source_file: str, sample: LineSample | None, parsed: ParsedLines | None) -> None:
        self.path = path
        self.parsed = parsed
        self.sample = sample
        self.layout = layout
        self.source_file = source_file
        with DumpFile(path) as file:
            self.head = file.read(SNIFF_BYTES)
        if not self.head:
            raise DumpError(f"{path}: unpacks to 0 bytes; fetch the file again and compare its checksum")
        self.is_document = is_document(self.head)
        self.of_document: list[bytes] = []

    def find_first_records(self) -> Iterator[bytes]:
        """Return some records as they are in the file."""
        return iter(self.of_document) if self.is_document else _find_first_records(self.head.removeprefix(_BYTE_ORDER_MARK), self.layout)

    def read_blocks(self) -> Iterator[Block]:
        if self.is_document:
            return self._read_document()
        contents = _read_block_wise(self._read_bytes(), self.layout, self.source_file, self.sample, self.parsed)
        return (_build_block(content, self.source_file) for content in contents)

    def _read_bytes(self) -> Iterator[bytes]:
        """Yield the unpacked bytes without a byte order mark."""
        with DumpFile(self.path) as file:
            first = file.read(BLOCK_BYTES)
            yield from chain([first.removeprefix(_BYTE_ORDER_MARK)], iter(lambda: file.read(BLOCK_BYTES), b""))

    def _read_document(self) -> Iterator[Block]:
        with DumpFile(self.path) as file:
            # One byte more than allowed shows that there is more, without reading it.
            raw = file.read(DOCUMENT_BYTES + 1)
        if len(raw) > DOCUMENT_BYTES:
            raise DumpError(f"{self.path}: one JSON document of more than {DOCUMENT_BYTES} bytes; deliver it as one record per line")
        raw = raw.removeprefix(_BYTE_ORDER_MARK)
        try:
            found = self.layout.split(raw)
            records = [to_one_line(raw)] if found is None else found
        except msgspec.DecodeError as error:
            raise DumpError(f"{self.path}: is not a JSON document ({error}); fetch the file again and compare its checksum") from error
        self.of_document = records[:SAMPLED_LINES]
        named = Records([(f"record {number}", record) for number, record in enumerate(records, start=1)])
        with closing(BlockReader(self.layout, self.source_file)) as reader:
            content = reader.read_again(named)
        yield _build_block(content, self.source_file)


def is_document(head: bytes) -> bool:
    """Return whether a file that begins with `head` is one JSON document of several lines, or an array, not a record per line."""
    lines = [line for line in head.removeprefix(_BYTE_ORDER_MARK).split(b"\n") if line.strip()][:2]
    if not lines or lines[0].lstrip()[:1] not in (b"{", b"["):
        return False
    # One line that begins with a brace may be a record or an envelope; reading it as a record takes envelopes apart, too.
    if len(lines) == 1:
        return lines[0].lstrip().startswith(b"[")
    # A broken first line does not make a document of a file whose second line is a whole record.
    is_whole = lines[0].rstrip().endswith(b"}") or is_json(lines[0])
    return not is_whole and not (lines[1].lstrip().startswith(b"{") and is_json(lines[1]))
