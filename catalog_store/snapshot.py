"""The manifest of a snapshot: the content of a published catalog folder, and the check that it is still complete.

A snapshot is one folder, never changed after it got its final name:

  <root>/snapshots/<id>/
    manifest.json            this format; written last, so a folder without it is not a snapshot
    tables/<table>/part-00000-<the first 16 hex digits of its SHA-256>.parquet ...
    catalog.duckdb           views over the parts for analysts, with comments and keys (catalog_store/analyst_file.py)
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
  next_ids         {kind: the smallest id never issued}: at least that of every earlier snapshot, so a rollback never leads to reuse
  analyst_file     {path, bytes, sha256} of catalog.duckdb
  serving          [{path, bytes, sha256}]: every file below serving/, sorted by path
  attachments      [{path, bytes, sha256}]: files beside the catalog, sorted by path; absent in snapshots without any
  sequence         1 for the first snapshot of a catalog, then one more than the highest existing: the order of publishing, whatever the
                   clock; absent in snapshots older than this member
  platforms        [{key, position, owner, licence, url, ...}]: the platforms of the build as their platform.yaml describes them
                   (catalog_store/platform_files.py); absent in snapshots older than this member
  input_rights     [{key, licence, attribution}]: the inputs that are no platforms
  seal             {members, sha256}: SHA-256 over the values of the named members (see `compute_seal`); absent where `sequence` is

The member that lists a file determines its role (ROLES). A folder may lack all files of a role: it is then whole for the other one.

`sha256` is lower-case hex. Additional members may appear; readers ignore them. Add a member here, in the class and in
docs/reference/snapshot_format.md together. publisher.py writes snapshots, reader.py opens them for queries.
"""

from __future__ import annotations

import hashlib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.platform_files import InputRights, Platform  # noqa: TC001 - msgspec reads the annotations
from catalog_store.platforms import PLATFORMS
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

FORMAT = "music-catalog-snapshot"
FORMAT_VERSION = 1
READ_VERSIONS = frozenset({1})
"""Versions that this program reads (catalog_store/format_versions.py)."""
MANIFEST = "manifest.json"
TABLES_FOLDER = "tables"
ANALYST_FILE = "catalog.duckdb"
SERVING_FOLDER = "serving"
SEARCH_FOLDER = "search"
RECOGNITION_FOLDER = "recognition"
"""Both below SERVING_FOLDER."""
SCRATCH_FOLDER = ".sorting"
"""Holds intermediate data of what is built beside it, and is gone before the publish."""
SNAPSHOTS = "snapshots"
CURRENT = "current"
REPORTED_BYTES = 1_000_000_000
"""Bytes read between two progress lines, which takes a second or two."""
_GB = 1e9
Role = Literal["serving", "analyst", "all"]
"""The files that a machine needs: those of a server, those of analysts and the next build, or all of them."""
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType({"serving": ("serving",), "analyst": ("tables", "analyst_file", "attachments")})
"""The members of a manifest whose files belong to each role."""
ID_SHAPE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")


class StoredFile(msgspec.Struct, frozen=True):
    """One file: path relative to the snapshot, size in bytes, SHA-256 in hex."""

    path: str
    bytes: int
    sha256: str


class TablePart(msgspec.Struct, frozen=True):
    """One Parquet part: a `StoredFile` with its number of rows."""

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
    platforms: tuple[Platform, ...] = ()
    input_rights: tuple[InputRights, ...] = ()

    def add_seal(self) -> Manifest:
        """Return a copy with a seal over every member that has a value."""
        values = msgspec.to_builtins(self)
        # The seal names its members. A reader of an older program, which lacks a later member, can still check it.
        covered = tuple(name for name in self.__struct_fields__ if name != "seal" and values[name])
        return msgspec.structs.replace(self, seal=Seal(covered, compute_seal(values, covered)))

    def list_platforms(self) -> dict[str, Platform]:
        """Return the platforms of the snapshot by key. Snapshots older than the member have the platforms of the specification."""
        return {platform.key: platform for platform in self.platforms} or PLATFORMS

    def encode(self) -> bytes:
        """Encode the manifest as indented JSON with a final newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def list_files(self, role: Role = "all") -> Iterator[StoredFile | TablePart]:
        """Yield every file of the snapshot that a machine of `role` holds, except the manifest."""
        members = {member for named, listed in ROLES.items() if role in {named, "all"} for member in listed}
        if "tables" in members:
            for table in self.tables.values():
                yield from table.files
        if "analyst_file" in members:
            yield self.analyst_file
        if "serving" in members:
            yield from self.serving
        if "attachments" in members:
            yield from self.attachments


class Snapshot(msgspec.Struct, frozen=True):
    """A published snapshot: its folder, its manifest, whether it is the live one."""

    folder: Path
    manifest: Manifest
    is_current: bool = False

    @property
    def id(self) -> str:
        """The snapshot id."""
        return self.manifest.id

    def describe(self) -> dict[str, object]:
        """Return the facts for an operator, as plain values."""
        recordings = self.manifest.tables["recording"].rows
        return {"id": self.id, "created_at": self.manifest.created_at, "is_current": self.is_current, "recordings": recordings}


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of the snapshot at `folder`; NoSnapshotError when there is none, SnapshotInvalidError for an unusable one."""
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoSnapshotError(f"no snapshot at {folder}: it has no {MANIFEST}") from error
    return decode_manifest(content, path)


def decode_manifest(content: bytes, path: Path | str) -> Manifest:
    """Decode a manifest that was read from `path`; SnapshotInvalidError for an unusable one."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        # Decoding by type does not look into the names of members that it ignores; a damaged byte may be there.
        values: dict[str, object] = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SnapshotInvalidError(f"{path}: not a manifest: {error}") from error
    if manifest.format != FORMAT or manifest.format_version not in READ_VERSIONS:
        listed = " and ".join(map(str, sorted(READ_VERSIONS)))
        raise SnapshotInvalidError(
            f"{path}: format {manifest.format!r} version {manifest.format_version}, this program reads {FORMAT!r} {listed}: "
            "publish again with this program or use the one that wrote it"
        )
    if not _is_sealed(manifest, values):
        raise SnapshotInvalidError(
            f"{path} is damaged: its seal does not match: restore it from a backup, or roll back to another snapshot"
        )
    return manifest


def compute_seal(values: Mapping[str, object], members: Iterable[str]) -> str:
    """Return the SHA-256 in hex over JSON without spaces, keys sorted: a list of [name, value] of the named members of a manifest."""
    return hashlib.sha256(msgspec.json.encode([[name, values.get(name)] for name in members], order="sorted")).hexdigest()


def _is_sealed(manifest: Manifest, values: Mapping[str, object]) -> bool:
    """Return whether the seal fits. A missing seal counts as broken if there is a `sequence`: both came into the format together."""
    if manifest.seal is None:
        return manifest.sequence == 0
    return compute_seal(values, manifest.seal.members) == manifest.seal.sha256


def find_role(folder: Path, manifest: Manifest) -> Role:
    """Return the role whose files the snapshot in `folder` holds: `all`, unless every file of another role is missing."""
    held = [role for role in ROLES if any((folder / file.path).is_file() for file in manifest.list_files(role))]  # type: ignore[arg-type]
    return held[0] if len(held) == 1 else "all"  # type: ignore[return-value]


def verify(
    folder: Path,
    *,
    role: Role = "all",
    contents: bool | str = True,
    unread_folder: str = "",
    known: Collection[str] = (),
    report: Callable[[str], None] = lambda _line: None,
) -> Manifest:
    """Check every file of the snapshot that a machine of `role` holds against the manifest, and that against its seal. Return the manifest.

    With `contents` false only presence and size are checked (milliseconds). Otherwise `select_files` names the files that are read;
    paths in `known` are not. `report` receives the progress before about every gigabyte. SnapshotInvalidError names all damaged files.
    """
    manifest = read_manifest(folder)
    read = select_files(manifest, contents, unread_folder) - set(known)
    faults: list[str] = []
    total = sum(file.bytes for file in manifest.list_files(role) if file.path in read)
    done, reported = 0, -REPORTED_BYTES
    for file in manifest.list_files(role):
        is_read = file.path in read
        if is_read and done - reported >= REPORTED_BYTES:
            report(f"verifying snapshot {manifest.id}: {done / _GB:.1f} of {total / _GB:.1f} GB read")
            reported = done
        fault = _find_fault(folder, file, contents=is_read)
        faults += [fault] if fault else []
        done += file.bytes if is_read else 0
    if faults:
        raise SnapshotInvalidError(f"snapshot {manifest.id} at {folder} is damaged: {'; '.join(faults)}: roll back to another one")
    return manifest


def require_tables(snapshot: Snapshot) -> None:
    """Check that all tables of a snapshot are there, by their sizes. SnapshotInvalidError also when only a server's files are."""
    if find_role(snapshot.folder, snapshot.manifest) == "serving":
        raise SnapshotInvalidError(
            f"{snapshot.folder} holds only the files of a server, and this command reads tables: run it on the machine that builds, or "
            "bring the tables into another folder with `python -m catalog_store pull --role all`"
        )
    verify(snapshot.folder, role="analyst", contents=False)


def select_files(manifest: Manifest, contents: bool | str, unread_folder: str = "") -> set[str]:  # noqa: FBT001 - as in `verify`
    """Return the paths whose contents `verify` reads: all or none, or those below the folder `contents`; none below `unread_folder`."""
    below = contents + "/" if isinstance(contents, str) else ""
    # Paths in a manifest are relative, so none begins with a slash.
    unread = unread_folder + "/" if unread_folder else "/"
    return {file.path for file in manifest.list_files() if contents and file.path.startswith(below) and not file.path.startswith(unread)}


def _find_fault(folder: Path, file: StoredFile | TablePart, *, contents: bool) -> str | None:
    path = folder / file.path
    if not path.is_file():
        return f"{file.path} is missing"
    # Sizes first: they cost microseconds, and most damage of copies shows there.
    size = path.stat().st_size
    if size != file.bytes:
        return f"{file.path} has {size} bytes instead of {file.bytes}"
    if contents and hash_file(path) != file.sha256:
        return f"{file.path} has other contents"
    return None


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex, read in blocks."""
    # `file_digest` has a buffer of its own; a second one would only copy.
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_file(folder: Path, path: Path) -> StoredFile:
    """Return the manifest entry of the file `path` below `folder`."""
    return StoredFile(path.relative_to(folder).as_posix(), path.stat().st_size, hash_file(path))


def compute_schema_version(names: Iterable[str]) -> str:
    """Return a digest of the shape of the named tables. It changes with a column or a type, not with a description."""
    shapes = [(name, [(column.name, str(column.type)) for column in TABLES[name].columns]) for name in sorted(names)]
    return hashlib.sha256(msgspec.json.encode(shapes)).hexdigest()[:16]
