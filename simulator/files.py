"""Files of one dump, written block by block: Parquet, gzip, plain text, and spooled members of a tar archive.

Nothing depends on the clock: gzip headers have no time, tar members a fixed one. Lines and digests for manifests are counted while writing.
"""

from __future__ import annotations

import bz2
import hashlib
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy import random

Closing = Callable[[int], bytes]
Content = bytes | pl.DataFrame | pa.Table
GZIP_LEVEL = 1
BZIP2_LEVEL = 1
"""Compression takes more time than making the world; even the lowest level writes a fifth of the text."""
ROW_GROUP = 122_880
"""Rows of a row group: groups as small as a block would slow every reader down."""
DUMP_TIME = 1_793_491_200
"""2026-11-01 00:00 UTC, the time of every tar member."""


@dataclass(frozen=True)
class Written:
    """A written file: its lines of text (rows of a table), and the digests that publishers print beside it."""

    lines: int
    sha256: str
    md5: str


class Sink(Protocol):
    """A file that grows by blocks."""

    lines: int

    def add(self, content: Content) -> None:
        """Append the next block."""

    def close(self) -> int:
        """Finish the file; return the number of lines or rows."""


class TextSink:
    """A text file, plain or gzipped."""

    def __init__(self, path: Path, *, compressed: bool) -> None:
        """Open the file."""
        self._raw = path.open("wb")
        self._file: BinaryIO = self._raw
        if compressed:
            # mtime=0 and no file name: the header of a gzip file would otherwise differ from run to run.
            self._file = cast("BinaryIO", igzip.IGzipFile("", "wb", GZIP_LEVEL, self._raw, mtime=0))  # type: ignore[no-untyped-call] # not annotated there
        self.lines = 0

    def add(self, content: Content) -> None:
        """Append text; TypeError for tables."""
        if not isinstance(content, bytes):
            raise TypeError(f"a text file takes bytes, not {type(content).__name__}")
        self.lines += content.count(b"\n")
        self._file.write(content)

    def close(self) -> int:
        """Finish the file; return the lines written."""
        self._file.close()
        self._raw.close()
        return self.lines


class ParquetSink:
    """A Parquet file; rows wait until they fill a row group. `.gz.parquet` is compressed by gzip inside, others by zstd."""

    def __init__(self, path: Path) -> None:
        """Write nothing yet: the first rows bring the schema."""
        self._path = path
        self._codec: Literal["gzip", "zstd"] = "gzip" if path.name.endswith(".gz.parquet") else "zstd"
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self.lines = 0

    def add(self, content: Content) -> None:
        """Append rows; TypeError for text."""
        if isinstance(content, bytes):
            raise TypeError("a Parquet file takes tables, not bytes")
        # The oldest level writes plain strings: views would need a newer reader.
        table = content.to_arrow(compat_level=pl.CompatLevel.oldest()) if isinstance(content, pl.DataFrame) else content
        self._waiting.append(table)
        self.lines += table.num_rows
        if sum(part.num_rows for part in self._waiting) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None:
            # The schema is known only from the first rows.
            level = 1 if self._codec == "gzip" else None
            self._writer = pq.ParquetWriter(self._path, table.schema, compression=self._codec, compression_level=level, store_schema=False)
        self._writer.write_table(table, row_group_size=ROW_GROUP)

    def close(self) -> int:
        """Finish the file; return the rows written."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
        return self.lines


class Dump:
    """The files of one dump below `folder`; `add` opens a file when it is first named. Names ending in .gz are compressed."""

    def __init__(self, folder: Path, openings: Mapping[str, bytes], closings: Mapping[str, Closing]) -> None:
        """Write `openings` before the first block of a file; `closings` make the text after the last block from the lines so far."""
        self.folder = folder
        self._openings = openings
        self._closings = closings
        self._sinks: dict[str, Sink] = {}

    def add(self, name: str, content: Content) -> None:
        """Append a block to the file `name` (a path below the folder)."""
        if name not in self._sinks:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sinks[name] = ParquetSink(path) if name.endswith(".parquet") else TextSink(path, compressed=name.endswith(".gz"))
            if name in self._openings:
                self._sinks[name].add(self._openings[name])
        self._sinks[name].add(content)

    def close(self) -> dict[str, Written]:
        """Finish all files, in name order, and return what was written."""
        out: dict[str, Written] = {}
        for name, sink in sorted(self._sinks.items()):
            if name in self._closings:
                sink.add(self._closings[name](sink.lines))
            out[name] = compute_digests(self.folder / name, sink.close())
        return out


def compute_digests(path: Path, lines: int = 0) -> Written:
    """Return the digests of a finished file."""
    # Publishers print MD5 beside SHA-256.
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
            md5.update(block)
    return Written(lines, sha256.hexdigest(), md5.hexdigest())


def pack_tar(archive: Path, members: Iterable[tuple[str, Path]]) -> None:
    """Write `archive` (tar in one bzip2 stream) out of (member name, spooled file) in the given order."""
    with (
        bz2.open(archive, "wb", compresslevel=BZIP2_LEVEL) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name, path in members:
            # Owner and time stay constant: a member made from the file itself would carry both from this machine.
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            entry.mtime = DUMP_TIME
            entry.mode = 0o644
            with path.open("rb") as file:
                tar.addfile(entry, file)


def insert_broken_lines(lines: pl.Series, broken: list[bytes], rng: random.Generator) -> bytes:
    """Return the lines joined, with the broken ones among them. Broken lines are bytes: they may not be UTF-8."""
    places = [0, *sorted(rng.integers(0, len(lines) + 1, len(broken)).tolist()), len(lines)]
    pieces: list[bytes] = []
    for number, (start, stop) in enumerate(pairwise(places)):
        if stop > start:
            pieces.append("".join(line + "\n" for line in lines.slice(start, stop - start).to_list()).encode())
        if number < len(broken):
            pieces.append(broken[number] + b"\n")
    return b"".join(pieces)


def break_lines(lines: list[str], rng: random.Generator) -> list[bytes]:
    """Turn good JSON lines into bad ones: cut off, with invalid UTF-8, or an error page instead of a record."""
    out: list[bytes] = []
    for line in lines:
        raw, kind = line.encode(), int(rng.integers(0, 3))
        if kind == 0:
            out.append(raw[: int(len(raw) * rng.uniform(0.2, 0.9))])
        elif kind == 1:
            head, mark, tail = raw.partition(b'e":"')
            out.append(head + mark + b"\xff\xfe" + tail)
        else:
            out.append(b"<html><body>502 Bad Gateway</body></html>")
    return out
