"""Adapter of fingerprints: one day of the public fingerprint database, newline-delimited JSON in gzip, a file per stream.

`stage` reads the streams of STREAMS into staging tables; what a day says is not yet put together with the days before (see
pipeline/build/fingerprints.py). Files up to LAST_ESCAPED_DAY carry the escapes of PostgreSQL's COPY on top of JSON's. A stream without
rows is a valid file that unpacks to nothing; a stream without a file is none. docs/reference/formats/fingerprints.md has the fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing.dump_dates import find_date
from pipeline.dumps.platforms.fingerprints.streams import STREAMS, Stream
from pipeline.dumps.readers.compressed_files import DumpFile, read_blocks
from pipeline.dumps.readers.json_files import find_json_files
from pipeline.dumps.readers.ndjson import BLOCK_BYTES, Block, read_json_chunks
from pipeline.dumps.staging.record_checks import WHERE, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.layout_expectations import MemberCensus
    from pipeline.dumps.staging.staging_writer import StagingWriter

LAST_ESCAPED_DAY = "2024-12-04"
"""Files of later days are plain JSON."""
IGNORED = ("created", "updated", "bitrate", "format*", "album_artist", "track_no", "disc_no", "gid")
"""Known members of rows that are not read."""


def stage(dump: Path, out: StagingWriter) -> None:
    """Read all streams of the day in `dump`. Raises DumpError when a file is missing or damaged, or has no usable row."""
    found = {stream.name: _find_file(dump, stream.name) for stream in STREAMS}
    out.use(*found.values())
    days = {find_date(path.name) for path in found.values()}
    if len(days) != 1:
        raise DumpError(f"{dump}: files of several days ({', '.join(sorted(map(str, days)))}); deliver each day in a folder of its own")
    day = str(days.pop())
    for stream in STREAMS:
        _stage_stream(stream, found[stream.name], day, out)


def _find_file(dump: Path, name: str) -> Path:
    files = [path for path in find_json_files(dump) if f"-{name}-update.jsonl" in path.name]
    if not files:
        raise DumpError(
            f"{dump}: no file of the stream {name} (<day>-{name}-update.jsonl.gz); deliver it, an empty .gz when it has no rows"
        )
    if len(files) > 1:
        raise DumpError(f"{dump}: several files of the stream {name} ({', '.join(file.name for file in files)}); deliver one")
    return files[0]


def _stage_stream(stream: Stream, path: Path, day: str, out: StagingWriter) -> None:
    if _is_empty(path):
        return
    read = staged = 0
    seen = pl.Series("id", [], dtype=pl.Int64)
    for block in _read_blocks(stream, path, day, out.start_census(f"stream {stream.name}", stream.columns, IGNORED, stream.usual)):
        read += block.rows
        out.count_read(stream.table, block.rows)
        out.write_rejects(block.build_rejects(stream.table))
        rows = stream.values(block.frame)
        # Within the day only: across days a later row of an id replaces the earlier one, which is not a fault.
        rows = rows.with_columns(_is_later=~pl.col("_id").is_first_distinct() | pl.col("_id").is_in(seen.implode()))
        kept, rejected = split_rows(rows, stream.table, "id", stream.build_rules())
        out.write_rejects(rejected)
        seen = seen.append(kept["_id"])
        staged += kept.height
        out.write(stream.table, stream.staged(kept).hstack(kept.select(WHERE)).with_columns(day=pl.lit(day)))
    # Every row failed, so the layout has changed. An empty table would void the day for good, because days are read once.
    if not staged:
        why = out.first_reject or "only blank lines"
        raise DumpError(f"{path}: none of {read} rows can be used ({why}); the layout has changed: compare the format notes")
    out.report(f"{day} {stream.name}: {staged:,} rows")


def _is_empty(path: Path) -> bool:
    with DumpFile(path) as file:
        return not file.read(1)


def _read_blocks(stream: Stream, path: Path, day: str, census: MemberCensus) -> Iterator[Block]:
    content = read_blocks(path, BLOCK_BYTES)
    if day <= LAST_ESCAPED_DAY:
        content = _unescape(content)
    yield from read_json_chunks(content, stream.columns, path.name, census=census)


def _unescape(content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks with doubled backslashes made single. No other escape of COPY can occur, because JSON holds no control characters."""
    begun = b""
    for block in content:
        text = begun + block
        # A pair may span two blocks.
        begun = b"\\" * ((len(text) - len(text.rstrip(b"\\"))) % 2)
        yield text[: len(text) - len(begun)].replace(b"\\\\", b"\\")
    if begun:
        yield begun
