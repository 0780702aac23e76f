"""The manifest of a snapshot: what a published catalog folder holds, and the check that it still holds it.

A snapshot is one folder, never changed after it got its final name:

    <root>/snapshots/<id>/
        manifest.json            this format; written last, so a folder without it is not a snapshot
        tables/<table>/part-00000.parquet ...
        catalog.duckdb           the same tables for analysts, with comments and views (catalog_store/analyst_file.py)
        serving/serving.sqlite   lookups (format: catalog_store/serving/schema.py)
        serving/bodies/*         tracks and releases (format: catalog_store/serving/body_file.py)
        serving/keys/*           ISRCs and platform ids (format: catalog_store/serving/key_index.py)
        serving/lists/*          lists in order (format: catalog_store/lists/list_format.py)
        serving/search/*         search arrays (format: catalog_store/search/layout.py)
        serving/recognition/*    fingerprints to identify audio by (format: audio_recognition/index/layout.py)
        <attachment>             files beside the catalog, such as report.html: nothing reads them to answer
    <root>/current               symbolic link to the live snapshot, relative to <root>: the root can be moved

manifest.json is UTF-8 JSON, one object:

    format           "music-catalog-snapshot"
    format_version   integer; a reader refuses a version it does not know
    id               snapshot id: 1-64 of letters, digits, `.`, `_`, `-`, beginning with a letter or digit; the folder's name
    created_at       RFC 3339 UTC with `Z`; with `schema_version` the only value not determined by tables, id and next_ids
    schema_version   first 16 hex digits of the SHA-256 over names and types of all published columns: differs when a table's shape does
    tables           {table name: {rows, bytes, files: [{path, rows, bytes, sha256}]}}: paths relative to the folder, in part order
    next_ids         {kind: the smallest id never given out}: at least that of every earlier snapshot, so a rollback never leads to reuse
    analyst_file     {path, bytes, sha256} of catalog.duckdb
    serving          [{path, bytes, sha256}]: every file below serving/, sorted by path
    attachments      [{path, bytes, sha256}]: files beside the catalog, sorted by path; absent in snapshots that were made without
    sequence         1 for the first snapshot of a catalog, then one more than the highest there: the order of publishing, whatever the
                     clock said; absent in snapshots that are older than all that have one
    seal             {members, sha256}: SHA-256 over the values of the named members (see `seal_of`); absent where `sequence` is

`sha256` is lower-case hex. Additional members may appear; readers ignore them. Add a member here, in the class and in
docs/reference/snapshot_format.md together. What must not live here: writing snapshots (publisher.py), opening them for queries (reader.py).
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

FORMAT = "music-catalog-snapshot"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
TABLES_FOLDER = "tables"
ANALYST_FILE = "catalog.duckdb"
SERVING_FOLDER = "serving"
SEARCH_FOLDER = "search"
RECOGNITION_FOLDER = "recognition"
"""Both below SERVING_FOLDER."""
SNAPSHOTS = "snapshots"
CURRENT = "current"
REPORTED_BYTES = 1_000_000_000
"""Read between two lines about progress: a second or two."""
_GB = 1e9
ID_SHAPE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")


class StoredFile(msgspec.Struct, frozen=True):
    """One file: path relative to the snapshot, size in bytes, SHA-256 in hex."""

    path: str
    bytes: int
    sha256: str


class TablePart(msgspec.Struct, frozen=True):
    """One Parquet part: as `StoredFile`, with its number of rows."""

    path: str
    rows: int
    bytes: int
    sha256: str


class StoredTable(msgspec.Struct, frozen=True):
    """One table: sums over its parts, and the parts in order."""

    rows: int
    bytes: int
    files: tuple[TablePart, ...]


class Seal(msgspec.Struct, frozen=True):
    """The checksum of a manifest: names of the members it covers, SHA-256 in hex over them."""

    members: tuple[str, ...]
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """manifest.json, field by field as in the module's docstring."""

    format: str
    format_version: int
    id: str
    created_at: str
    schema_version: str
    tables: dict[str, StoredTable]
    next_ids: dict[str, int]
    analyst_file: StoredFile
    serving: tuple[StoredFile, ...]
    attachments: tuple[StoredFile, ...] = ()
    sequence: int = 0
    seal: Seal | None = None

    def sealed(self) -> Manifest:
        """The same with a seal over every member that has a value."""
        values = msgspec.to_builtins(self)
        covered = tuple(name for name in self.__struct_fields__ if name != "seal" and values[name])
        return msgspec.structs.replace(self, seal=Seal(covered, seal_of(values, covered)))

    def encode(self) -> bytes:
        """The manifest as indented JSON with a final newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def files(self) -> Iterator[StoredFile | TablePart]:
        """Every file that the snapshot holds besides the manifest."""
        for table in self.tables.values():
            yield from table.files
        yield self.analyst_file
        yield from self.serving
        yield from self.attachments


class Snapshot(msgspec.Struct, frozen=True):
    """A published snapshot: its folder, what its manifest says, whether it is the live one."""

    folder: Path
    manifest: Manifest
    is_current: bool = False

    @property
    def id(self) -> str:
        """The snapshot id."""
        return self.manifest.id

    def summary(self) -> dict[str, object]:
        """What an operator wants to see of it, as plain values."""
        recordings = self.manifest.tables["recording"].rows
        return {"id": self.id, "created_at": self.manifest.created_at, "is_current": self.is_current, "recordings": recordings}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the snapshot at `folder`; NoSnapshotError when there is none, SnapshotInvalidError for an unusable one."""
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoSnapshotError(f"no snapshot at {folder}: it has no {MANIFEST}") from error
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        # Decoding by type does not look into the names of members that it ignores; a damaged byte may lie there.
        values: dict[str, object] = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SnapshotInvalidError(f"{path}: not a manifest: {error}") from error
    if manifest.format != FORMAT or manifest.format_version != FORMAT_VERSION:
        raise SnapshotInvalidError(
            f"{path}: format {manifest.format!r} version {manifest.format_version}, this program reads {FORMAT!r} {FORMAT_VERSION}: "
            "publish again with this program or use the one that wrote it"
        )
    if not _is_sealed(manifest, values):
        raise SnapshotInvalidError(f"{path} is damaged, it breaks its seal: restore it from a backup, or roll back to another snapshot")
    return manifest


def seal_of(values: Mapping[str, object], members: Iterable[str]) -> str:
    """SHA-256 in hex over JSON without spaces, keys sorted: a list of [name, value] of the named members of a manifest."""
    return hashlib.sha256(msgspec.json.encode([[name, values.get(name)] for name in members], order="sorted")).hexdigest()


def _is_sealed(manifest: Manifest, values: Mapping[str, object]) -> bool:
    """A seal that is lost counts as broken: `sequence` and `seal` came into the format together."""
    if manifest.seal is None:
        return manifest.sequence == 0
    return seal_of(values, manifest.seal.members) == manifest.seal.sha256


def verify(folder: Path, *, contents: bool | str = True, besides: str = "", report: Callable[[str], None] = lambda _line: None) -> Manifest:
    """Check every file of the snapshot against its manifest, and the manifest against its seal, and return the manifest.

    With `contents` false only presence and size are checked (milliseconds); with the name of a folder in the snapshot, each byte of the
    files below it is read besides; else each byte of all, but of those below the folder `besides`. `report` is told before every
    gigabyte or so how far reading is. SnapshotInvalidError names all files at fault.
    """
    manifest = read_manifest(folder)
    below = contents + "/" if isinstance(contents, str) else ""
    unread = besides + "/" if besides else "/"  # no path of a manifest begins so

    def is_read(file: StoredFile | TablePart) -> bool:
        return bool(contents) and file.path.startswith(below) and not file.path.startswith(unread)

    faults: list[str] = []
    total = sum(file.bytes for file in manifest.files() if is_read(file))
    done, told = 0, -REPORTED_BYTES
    for file in manifest.files():
        if is_read(file) and done - told >= REPORTED_BYTES:
            report(f"verifying snapshot {manifest.id}: {done / _GB:.1f} of {total / _GB:.1f} GB read")
            told = done
        fault = _fault(folder, file, contents=is_read(file))
        faults += [fault] if fault else []
        done += file.bytes if is_read(file) else 0
    if faults:
        raise SnapshotInvalidError(f"snapshot {manifest.id} at {folder} is damaged: {'; '.join(faults)}: roll back to another one")
    return manifest


def _fault(folder: Path, file: StoredFile | TablePart, *, contents: bool) -> str | None:
    path = folder / file.path
    if not path.is_file():
        return f"{file.path} is missing"
    size = path.stat().st_size
    if size != file.bytes:
        return f"{file.path} has {size} bytes instead of {file.bytes}"
    if contents and sha256(path) != file.sha256:
        return f"{file.path} has other contents"
    return None


def sha256(path: Path) -> str:
    """SHA-256 of a file in hex, read in blocks."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stored_file(folder: Path, path: Path) -> StoredFile:
    """The manifest entry of the file `path` below `folder`."""
    return StoredFile(path.relative_to(folder).as_posix(), path.stat().st_size, sha256(path))


def schema_version(names: Iterable[str]) -> str:
    """Digest of the shape of the named tables: changes when a column or a type does, not when a description does."""
    shapes = [(name, [(column.name, str(column.type)) for column in TABLES[name].columns]) for name in sorted(names)]
    return hashlib.sha256(msgspec.json.encode(shapes)).hexdigest()[:16]
