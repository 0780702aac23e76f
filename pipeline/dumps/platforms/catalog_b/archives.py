"""The delivered archives or folder of a dump as a sequence of named byte streams, each read once and forward only.

Accepted: `mbdump.tar[.bz2|.gz|.zst|.xz]` and, beside it, optionally `mbdump-derived.tar[...]`; or an unpacked `mbdump/` folder with the
metadata files beside it. Out of scope: the content of the tables.
"""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from tarfile import TarError
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES, DumpFile
from pipeline.dumps.readers.tar_members import WholeMember

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from _typeshed import SupportsRead

SCHEMA_SEQUENCE = 31
"""The schema whose columns `table_layouts.py` lists."""
OLDER_SCHEMA_SEQUENCE = 30
"""Accepted with a word: the tables that are read have had the same columns; a line with other cells is a reject as ever."""

_TABLES = {"TIMESTAMP": (), "SCHEMA_SEQUENCE": (str(SCHEMA_SEQUENCE), str(OLDER_SCHEMA_SEQUENCE))}
"""Metadata files that say what the tables are, and the values that can be read (none named: any)."""
_TABLE_PREFIX = "mbdump/"
_ARCHIVE_NAMES = ("mbdump", "mbdump-derived")
_READ_BYTES = 1 << 20
_METADATA_BYTES = 4096
_SNIFF_BYTES = 64


@dataclass(frozen=True)
class Delivery:
    """The place of the dump: archives (core first), or the folder that holds `mbdump/`."""

    archives: tuple[Path, ...] = ()
    folder: Path | None = None

    @property
    def files(self) -> list[Path]:
        """Return all files of the delivery; of a folder also the tables that are not read."""
        return [*self.archives, *(path for path in (self.folder / "mbdump").iterdir())] if self.folder else list(self.archives)


@dataclass
class Metadata:
    """The values of the metadata files of one archive, gathered as they pass. `known`: required files and their allowed values."""

    source: Path
    known: Mapping[str, tuple[str, ...]]
    values: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, content: SupportsRead[bytes]) -> None:
        """Keep the value of a metadata file; DumpError when it is a schema that is not known. Others (README, COPYING) are not read."""
        if name not in self.known:
            return
        value = content.read(_METADATA_BYTES).decode("utf-8", errors="replace").strip()
        self.values[name] = value
        # The columns have no names in the files. With another schema every cell could be another column.
        if self.known[name] and value not in self.known[name]:
            raise DumpError(
                f"{self.source}: {name} is {value!r}, but only {' and '.join(self.known[name])} can be read; "
                "compare the columns that are read with the new schema"
            )

    def require(self) -> None:
        """Raise DumpError when a metadata file is missing: without it archives of two exports look alike."""
        missing = [name for name in self.known if name not in self.values]
        if missing:
            raise DumpError(f"{self.source}: {' and '.join(missing)} missing; this is not a complete export, fetch it again")


def find_delivery(dump: Path) -> Delivery | None:
    """Return the core archive and the derived one if there is one, else the unpacked folder of tables, else None."""
    core, derived = (find_archive(dump, name) for name in _ARCHIVE_NAMES)
    if core is not None:
        return Delivery(archives=(core,) if derived is None else (core, derived))
    folder = dump if dump.name == "mbdump" else dump / "mbdump"
    # JSON archives unpack into `mbdump/` as well, with the same names.
    return Delivery(folder=folder.parent) if folder.is_dir() and not any(is_document_file(path) for path in folder.iterdir()) else None


def is_document_file(path: Path) -> bool:
    """Return whether a file named after a table holds JSON documents and not rows of that table."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with DumpFile(path) as file:
        return file.read(_SNIFF_BYTES).lstrip().startswith(b"{")


def find_archive(dump: Path, name: str) -> Path | None:
    """Return `<name>.tar[...]` in the folder. Raises DumpError when it is there in two forms."""
    suffixes = (".tar", *(f".tar{suffix}" for suffix in COMPRESSED_SUFFIXES))
    found = [path for suffix in suffixes if (path := dump / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        raise DumpError(f"{dump}: {' and '.join(path.name for path in found)} are both there; deliver one of them")
    return found[0] if found else None


def read_delivery(delivery: Delivery, wanted: Callable[[str], bool], report: Callable[[str], None]) -> Iterator[tuple[str, BinaryIO, str]]:
    """Yield each wanted table as (name, stream, source), in delivered order. Read the stream before the next table.

    DumpError for an unknown schema, missing metadata, archives of different exports, a damaged or cut-off archive (naming member and byte).
    """
    seen: list[Metadata] = []
    sources = delivery.archives or (cast("Path", delivery.folder),)
    for source in sources:
        metadata = Metadata(source, _TABLES)
        yield from read_archive(source, metadata, wanted) if delivery.archives else _read_unpacked(source, metadata, wanted)
        metadata.require()
        seen.append(metadata)
        if metadata.values["SCHEMA_SEQUENCE"] != str(SCHEMA_SEQUENCE):
            report(f"{source.name}: schema {metadata.values['SCHEMA_SEQUENCE']}, read with the columns of schema {SCHEMA_SEQUENCE}")
        for name in _TABLES:
            # Tables of two exports refer to each other by row numbers that may have changed meanwhile.
            if metadata.values[name] != seen[0].values[name]:
                raise DumpError(
                    f"{source}: {name} is {metadata.values[name]!r}, but {seen[0].values[name]!r} in {seen[0].source.name}: "
                    "these are archives of two exports: deliver those of one"
                )


def _read_unpacked(folder: Path, metadata: Metadata, wanted: Callable[[str], bool]) -> Iterator[tuple[str, BinaryIO, str]]:
    for name in metadata.known:
        places = [path for path in (folder / name, folder / "mbdump" / name) if path.is_file()]
        if places:
            with places[0].open("rb") as file:
                metadata.note(name, file)
    metadata.require()
    for path in sorted((folder / "mbdump").iterdir()):
        # An empty file is a table without rows, which an archive would leave out.
        if wanted(path.name) and path.stat().st_size > 0:
            with DumpFile(path) as file:
                yield path.name, cast("BinaryIO", file), f"{_TABLE_PREFIX}{path.name}"


def read_archive(path: Path, metadata: Metadata, wanted: Callable[[str], bool]) -> Iterator[tuple[str, BinaryIO, str]]:
    """Yield each wanted member of `mbdump/` as (name, stream, member name). Metadata files go to `metadata`. Reads to the last byte."""
    with DumpFile(path) as file, _open_tar(path, file) as archive:
        last = "the beginning of the archive"
        while True:
            with _add_place_to_errors(path, f"after {last}", file):
                member = archive.next()
            if member is None:
                break
            last = f"member {member.name}"
            # A link would have to be followed to a member that has passed already.
            if not member.isfile():
                if not member.isdir() and wanted(member.name.removeprefix(_TABLE_PREFIX)):
                    raise DumpError(f"{path}: {last} is a link, not a file: its rows are not in the archive; fetch it again")
                continue
            content = _MemberStream(cast("BinaryIO", archive.extractfile(member)), path, last, file)
            table = member.name.removeprefix(_TABLE_PREFIX)
            if table == member.name:
                metadata.note(table, content)
            elif wanted(table):
                yield table, cast("BinaryIO", content), member.name
        # The end of the archive is not the end of the file: only there the decompressor sees its last checksum.
        while file.read(_READ_BYTES):
            pass


def _open_tar(path: Path, file: DumpFile) -> tarfile.TarFile:
    with _add_place_to_errors(path, "at the beginning of the archive", file):
        # `r|`: the archive is a stream of 7 GB packed, in which nothing may seek.
        return tarfile.open(fileobj=cast("IO[bytes]", file), mode="r|", bufsize=_READ_BYTES, tarinfo=WholeMember)


class _MemberStream:
    """Bytes of one member. Errors name the member, because they arise in the reader, outside the generator that opened it."""

    def __init__(self, content: BinaryIO, path: Path, place: str, file: DumpFile) -> None:
        self._content = content
        self._where = (path, place, file)

    def read(self, size: int = -1) -> bytes:
        with _add_place_to_errors(*self._where):
            return self._content.read(size)


@contextmanager
def _add_place_to_errors(path: Path, place: str, file: DumpFile) -> Iterator[None]:
    try:
        yield
    except TarError as error:
        raise DumpError(
            f"{path}: {place}: damaged or cut off near byte {file.position} of the unpacked archive ({error}); "
            "fetch the file again and compare its checksum"
        ) from error
    except DumpError as error:
        raise DumpError(f"{path}: {place}: {str(error).removeprefix(f'{path}: ')}") from error
