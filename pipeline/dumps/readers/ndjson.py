"""Reader of JSON: frames of the wanted columns, block by block, with every record counted.

In scope: the reader that all JSON dumps share. Newline-delimited files (`.ndjson`, `.jsonl`, `.json`, plain, `.gz`, `.zst`, `.bz2`,
`.xz`) and streams, and documents (`[...]`, `{"data": [...]}`, one object), which may also come one per line. Out of scope: what
a field means.

A file is streamed by DuckDB as a whole, strictly (measured at 1.0 to 1.2 times the raw `COPY (FROM read_json(...)) TO parquet` of the same
file). At the first sign of trouble the reader takes over after the last good frame and goes on in blocks, each of which gets a second look
only when it needs one. DuckDB does not compare gzip checksums; the line counter that runs beside it does.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import duckdb
import msgspec
import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import DumpFile, detect_packing
from pipeline.dumps.readers.json_documents import is_json, split_document, to_one_line
from pipeline.dumps.readers.line_blocks import LineSample, LongLine, cut_lines
from pipeline.dumps.readers.ndjson_blocks import BlockContent, BlockReader, Layout, Records, connect, format_line_places
from pipeline.dumps.readers.ndjson_lines import LineCounter
from pipeline.dumps.staging.layout_expectations import SAMPLED_LINES
from pipeline.engine.pool import count_workers, is_engine_used, map_ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.dumps.staging.layout_expectations import MemberCensus

FRAME_ROWS = 65_536
BLOCK_BYTES = 8 << 20
SNIFF_BYTES = 1 << 20
STREAMED_RECORD_BYTES = 16 << 20
"""DuckDB reads ahead twice as much per thread; longer records are read block-wise."""
RECORD_BYTES = 64 << 20
"""Longest line that is read. Reading one takes about ten times its size; the largest release of any platform is below 20 MB."""
DOCUMENT_BYTES = 256 << 20
"""A document is held in memory as a whole, several times; larger ones must come as one record per line."""
_STREAMED = {"gzip": "gzip", "zstd": "zstd", "plain": "uncompressed"}
"""Compressions that DuckDB unpacks itself. Other files are read in blocks from the start."""
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
) -> Iterator[Block]:
    """Yield the JSON records of a file in order, with `columns` (name -> DuckDB type; scalars VARCHAR, polymorphic fields JSON).

    `source_file` is the name for rejects (default: the file name). `members` says where documents hold their records (see
    `json_documents`), `census` counts the members of records. Absent fields are null. A record that is not a JSON object is in `broken`; a
    list, object or text that is where another should is left out of its record and is in `misfits`. DumpError when the file is
    missing, empty, cut off inside its compression, or holds no records at all.
    """
    reader = _Reader(path, Layout(columns, members), source_file or path.name, _build_sample(census, members))
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
    stream: BinaryIO, columns: Mapping[str, str], source_file: str, *, members: Sequence[str] = (), census: MemberCensus | None = None
) -> Iterator[Block]:
    """Yield blocks as `read_json_blocks` does, of a stream with one record per line that is read once (a member of an archive)."""
    yield from read_json_chunks(iter(lambda: stream.read(BLOCK_BYTES), b""), columns, source_file, members=members, census=census)


def read_json_chunks(
    chunks: Iterator[bytes],
    columns: Mapping[str, str],
    source_file: str,
    *,
    members: Sequence[str] = (),
    census: MemberCensus | None = None,
) -> Iterator[Block]:
    """Yield blocks as `read_json_stream` does, of bytes that come in pieces."""
    # The census looks into the first records once more at the end; a stream cannot be read twice.
    head = b""

    def keep_head() -> Iterator[bytes]:
        nonlocal head
        for chunk in chunks:
            head = head or chunk[:SNIFF_BYTES]
            yield chunk

    for content in _read_block_wise(keep_head(), 1, Layout(columns, members), source_file, _build_sample(census, members)):
        block = _build_block(content, source_file)
        if census:
            census.count(block.frame)
        yield block
    if census:
        census.look_for_others(_find_first_records(head, members))


def _read_block_wise(
    chunks: Iterator[bytes], line: int, layout: Layout, source_file: str, sample: LineSample | None
) -> Iterator[BlockContent]:
    """Yield the content of consecutive bytes from line `line` on, in order. Several blocks are read at the same time."""
    if is_engine_used():
        yield from map_ordered(partial(_read_alone, layout, source_file), _number_blocks(chunks, line, sample))
        return
    workers = count_workers()
    waiting: deque[Future[BlockContent]] = deque()
    # Threads and not processes: DuckDB parses outside the lock of Python, and blocks need no copy.
    with closing(BlockReader(layout, source_file)) as reader, ThreadPoolExecutor(workers) as pool:
        for job in _number_blocks(chunks, line, sample):
            waiting.append(pool.submit(_read_job, reader, job))
            # Results in the order of the file, and no more blocks in memory than processors and one.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _number_blocks(chunks: Iterator[bytes], line: int, sample: LineSample | None) -> Iterator[tuple[bytes | LongLine, int]]:
    """Yield whole lines, and lines that are too long to be read, each with the number of its first line."""
    for raw in cut_lines(chunks, RECORD_BYTES):
        yield raw, line
        if isinstance(raw, LongLine):
            line += 1
        else:
            if sample:
                sample.look_at(raw, len(raw))
            line += raw.count(b"\n")


def _read_job(reader: BlockReader, job: tuple[bytes | LongLine, int]) -> BlockContent:
    raw, line = job
    return reader.reject_long_line(raw.head, line) if isinstance(raw, LongLine) else reader.read(raw, line)


def _read_alone(layout: Layout, source_file: str, job: tuple[bytes | LongLine, int]) -> BlockContent:
    """Read a block on a worker of a cluster."""
    with closing(BlockReader(layout, source_file)) as reader:
        return _read_job(reader, job)


def _build_block(content: BlockContent, source_file: str) -> Block:
    name = pl.lit(source_file)
    return Block(
        content.frame.with_columns(source_file=name),
        content.broken.with_columns(severity=pl.lit("row"), source_file=name),
        content.misfits.with_columns(severity=pl.lit("field"), source_file=name),
    )


def _find_first_records(head: bytes, members: Sequence[str]) -> Iterator[bytes]:
    """Yield the whole records at the beginning of a file; a document gives the records in it."""
    for line in head.split(b"\n")[:SAMPLED_LINES]:
        yield from _split_records(line, members)


def _split_records(line: bytes, members: Sequence[str]) -> Sequence[bytes]:
    """Return the line as a record, or the first records of the document in it."""
    found = None
    with suppress(msgspec.DecodeError):
        found = split_document(line, members) if members and line.strip() else None
    return [line] if found is None else found[:SAMPLED_LINES]


def _build_sample(census: MemberCensus | None, members: Sequence[str]) -> LineSample | None:
    """Return a sample that gives the census records from all over a file."""
    return None if census is None else LineSample(lambda line: census.look_into(_split_records(line, members)))


class _Reader:
    def __init__(self, path: Path, layout: Layout, source_file: str, sample: LineSample | None) -> None:
        self.path = path
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
        return (
            iter(self.of_document)
            if self.is_document
            else _find_first_records(self.head.removeprefix(_BYTE_ORDER_MARK), self.layout.members)
        )

    def read_blocks(self) -> Iterator[Block]:
        if self.is_document:
            return self._read_document()
        compression = _STREAMED.get(detect_packing(self.path))
        # DuckDB refuses a file with a byte order mark. And as a stream it reads on this machine alone.
        if compression is None or self.head.startswith(_BYTE_ORDER_MARK) or is_engine_used():
            return self._read_block_wise(0, 1)
        return self._stream_file(compression)

    def _stream_file(self, compression: str) -> Iterator[Block]:
        """Read the whole file by DuckDB; read what follows the last clean frame in blocks."""
        counter = LineCounter(self.path, self.sample)
        for frame in self._read_clean_frames(compression):
            yield _build_block(
                BlockContent(self.layout.select_columns(frame, format_line_places(counter.take(frame.height)))), self.source_file
            )
        # None means that DuckDB read the file to its end. Otherwise the blocks begin right after the last record that was yielded.
        behind = counter.find_position()
        if behind is not None:
            yield from self._read_block_wise(*behind)

    def _read_clean_frames(self, compression: str) -> Iterator[pl.DataFrame]:
        """Yield frames until DuckDB meets an error. Its Arrow reader raises OSError for any of them."""
        with suppress(duckdb.Error, OSError), self.path.open("rb") as file, connect() as connection:
            # By descriptor and not by path: a file that is replaced meanwhile stays the same for both readers.
            query = self.layout.build_sql(f"/proc/self/fd/{file.fileno()}", object_size=STREAMED_RECORD_BYTES, compression=compression)
            for batch in connection.sql(query).to_arrow_reader(FRAME_ROWS):
                frame = pl.DataFrame(batch)
                # The frame is dropped as a whole: its records are read again with places and rejects.
                if not self.layout.is_clean(frame):
                    return
                yield frame

    def _read_block_wise(self, offset: int, line: int) -> Iterator[Block]:
        for content in _read_block_wise(self._read_bytes(offset), line, self.layout, self.source_file, self.sample):
            yield _build_block(content, self.source_file)

    def _read_bytes(self, offset: int) -> Iterator[bytes]:
        """Yield the unpacked bytes from `offset` on, without a byte order mark."""
        with DumpFile(self.path) as file:
            file.skip(offset)
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
            found = split_document(raw, self.layout.members)
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
