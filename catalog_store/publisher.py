"""Publishing: tables -> snapshot -> `current`, so that a reader sees the old catalog or the new one and nothing between.

Order of a publish: everything is written below `snapshots/.building-<id>`, the manifest last, all of it flushed to disk; then the folder
is renamed to its id; then a link made before as `.publishing-<id>` is renamed over `current`. A process killed at any moment leaves
`current` pointing at a whole snapshot; what it had begun lies under a dotted name, which the next publish removes. A lock file lets one
process at a time publish, roll back or prune; the kernel frees it when the process dies. What must not live here: what the files contain
(analyst_file.py, serving/, search/), reading them (reader.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from catalog_store.analyst_file import build_analyst_file
from catalog_store.errors import MissingTableError, NoSnapshotError, PublishBusyError, SnapshotExistsError
from catalog_store.search.build import build_search
from catalog_store.serving.build import build_serving
from catalog_store.snapshot import (
    ANALYST_FILE,
    CURRENT,
    FORMAT,
    FORMAT_VERSION,
    ID_SHAPE,
    MANIFEST,
    RECOGNITION_FOLDER,
    SEARCH_FOLDER,
    SERVING_FOLDER,
    SNAPSHOTS,
    TABLES_FOLDER,
    Manifest,
    Snapshot,
    StoredFile,
    StoredTable,
    TablePart,
    read_manifest,
    schema_version,
    sha256,
    stored_file,
    verify,
)
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.files import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

REQUIRED_TABLES = tuple(table.name for table in CATALOG_TABLES)

_LOCK = ".publish.lock"
_BUILDING = ".building-"
_REMOVING = ".removing-"
_PUBLISHING = ".publishing-"
_ROLLBACK_LINK = ".rollback"


def publish(
    tables: Mapping[str, Path],
    root: Path,
    *,
    snapshot_id: str,
    next_ids: Mapping[str, int],
    attachments: Mapping[str, Path] = MappingProxyType({}),
    recognition: Path | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Snapshot:
    """Make a snapshot of `tables` (name -> folder of Parquet parts) under `root` and switch `current` to it.

    All catalog tables are required, linkage and quality tables are taken along when given. Parts are hard-linked where the file system
    can, so nobody may write into them in place afterwards. `next_ids` says per kind the smallest id never given out; what earlier
    snapshots say is kept when larger. `attachments` (file name -> file) are copied into the folder. `recognition` is the folder of an index
    of fingerprints, hard-linked like the parts. `report` is told each step. The same tables, attachments and index after the same live
    snapshot give the same bytes except for catalog.duckdb and `created_at`.
    MissingTableError, SnapshotExistsError, PublishBusyError, ValueError for an id of the wrong shape.
    """
    if not ID_SHAPE.fullmatch(snapshot_id):
        raise ValueError(f"snapshot id {snapshot_id!r}: use 1-64 letters, digits, '.', '_' or '-', beginning with a letter or digit")
    missing = [name for name in REQUIRED_TABLES if name not in tables]
    unknown = [name for name in tables if name not in TABLES or TABLES[name].layer == "staging"]
    if missing or unknown:
        raise MissingTableError(f"cannot publish {snapshot_id}: missing tables {missing}, tables that are not published {unknown}")
    with _only_publisher(root):
        _remove_leftovers(root)
        final = root / SNAPSHOTS / snapshot_id
        if final.exists():
            raise SnapshotExistsError(f"{final} exists: publish under another id, or roll back to it")
        building = final.with_name(_BUILDING + snapshot_id)
        manifest = _build(tables, building, snapshot_id, _highest(root, next_ids), attachments, recognition, report, current_folder(root))
        report("flushing to disk")
        _flush(building)
        next_link = _link_to(root, snapshot_id, _PUBLISHING + snapshot_id)
        building.rename(final)
        _flush_folder(final.parent)
        report("switching to the new snapshot")
        _switch(root, next_link)
        return Snapshot(final, manifest, is_current=True)


def _build(
    tables: Mapping[str, Path],
    folder: Path,
    snapshot_id: str,
    next_ids: dict[str, int],
    attachments: Mapping[str, Path],
    recognition: Path | None,
    report: Callable[[str], None],
    previous: Path | None,
) -> Manifest:
    folder.mkdir()
    names = [name for name in TABLES if name in tables]
    for name in names:
        report(f"taking over {name}")
        _take_over(tables[name], folder / TABLES_FOLDER / name)
    published = {name: folder / TABLES_FOLDER / name for name in names}
    report("building the analysts' file")
    build_analyst_file(published, folder / ANALYST_FILE)
    serving = folder / SERVING_FOLDER
    serving.mkdir()
    report("building the serving file")
    build_serving(published, serving, snapshot_id=snapshot_id, previous=previous)
    report("building the search index")
    build_search(published, serving / SEARCH_FOLDER)
    if recognition is not None:
        for path in sorted(path for path in recognition.rglob("*") if path.is_file()):
            _link_or_copy(path, serving / RECOGNITION_FOLDER / path.relative_to(recognition))
    for name, file in attachments.items():
        shutil.copyfile(file, folder / name)
    report("writing the manifest")
    manifest = Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=snapshot_id,
        created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        schema_version=schema_version(names),
        tables={name: _stored_table(folder, published[name]) for name in names},
        next_ids=next_ids,
        analyst_file=stored_file(folder, folder / ANALYST_FILE),
        serving=tuple(_stored_serving(folder, sorted(path for path in serving.rglob("*") if path.is_file()), previous)),
        attachments=tuple(stored_file(folder, folder / name) for name in sorted(attachments)),
    )
    (folder / MANIFEST).write_bytes(manifest.encode())
    return manifest


def _take_over(source: Path, target: Path) -> None:
    for part in parts(source):
        _link_or_copy(part, target / part.name)


def _link_or_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
            raise
        shutil.copyfile(source, target)


def _stored_serving(folder: Path, files: Iterable[Path], previous: Path | None) -> Iterator[StoredFile]:
    """The manifest entries; of a file that the live snapshot holds too (the same one, not a copy) its entry is taken over unread."""
    known = {} if previous is None else {file.path: file for file in read_manifest(previous).serving}
    for file in files:
        name = file.relative_to(folder).as_posix()
        is_same = previous is not None and name in known and (previous / name).is_file() and file.samefile(previous / name)
        yield known[name] if is_same else stored_file(folder, file)


def _stored_table(folder: Path, table: Path) -> StoredTable:
    files = tuple(
        TablePart(path.relative_to(folder).as_posix(), pq.read_metadata(path).num_rows, path.stat().st_size, sha256(path))
        for path in parts(table)
    )
    return StoredTable(sum(file.rows for file in files), sum(file.bytes for file in files), files)


def _highest(root: Path, next_ids: Mapping[str, int]) -> dict[str, int]:
    highest = dict(sorted(next_ids.items()))
    for snapshot in snapshots(root):
        for kind, value in snapshot.manifest.next_ids.items():
            highest[kind] = max(value, highest.get(kind, 1))
    return highest


def snapshots(root: Path) -> list[Snapshot]:
    """All published snapshots, oldest first; the live one is marked."""
    live = current_folder(root)
    folders = [path.parent for path in (root / SNAPSHOTS).glob(f"*/{MANIFEST}") if not path.parent.name.startswith(".")]
    found = [Snapshot(folder, read_manifest(folder), is_current=folder.name == (live.name if live else None)) for folder in folders]
    return sorted(found, key=lambda snapshot: (snapshot.manifest.created_at, snapshot.id))


def current_folder(root: Path) -> Path | None:
    """The folder of the live snapshot; None before the first publish."""
    try:
        return root / (root / CURRENT).readlink()
    except FileNotFoundError:
        return None


def live_snapshot(root: Path) -> Snapshot:
    """The snapshot that readers get now; NoSnapshotError before the first publish."""
    folder = current_folder(root)
    if folder is None:
        raise NoSnapshotError(f"nothing is published under {root}: build a catalog first")
    return Snapshot(folder, read_manifest(folder), is_current=True)


def rollback(root: Path, snapshot_id: str) -> Snapshot:
    """Make an earlier (or later) snapshot the live one, after checking that its files are there in full size.

    NoSnapshotError when there is none of that id, SnapshotInvalidError when it is damaged: `current` then stays as it is.
    """
    with _only_publisher(root):
        folder = root / SNAPSHOTS / snapshot_id
        if not ID_SHAPE.fullmatch(snapshot_id) or not folder.is_dir():
            known = ", ".join(snapshot.id for snapshot in snapshots(root)) or "none"
            raise NoSnapshotError(f"no snapshot {snapshot_id!r} under {root}: there are {known}")
        manifest = verify(folder, contents=False)
        _switch(root, _link_to(root, snapshot_id, _ROLLBACK_LINK))
        return Snapshot(folder, manifest, is_current=True)


def prune(root: Path, keep: int) -> list[str]:
    """Remove all but the newest `keep` (at least 1) snapshots and the live one; returns the ids removed, oldest first.

    The newest always stays: it holds the highest `next_ids`, also after a rollback. Readers that have a removed snapshot open keep
    their open files.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: at least the newest snapshot must stay")
    with _only_publisher(root):
        _remove_leftovers(root)
        doomed = [snapshot for snapshot in snapshots(root)[:-keep] if not snapshot.is_current]
        for snapshot in doomed:
            retired = snapshot.folder.with_name(_REMOVING + snapshot.id)
            snapshot.folder.rename(retired)
            shutil.rmtree(retired)
        return [snapshot.id for snapshot in doomed]


def _link_to(root: Path, snapshot_id: str, name: str) -> Path:
    link = root / name
    link.unlink(missing_ok=True)
    link.symlink_to(Path(SNAPSHOTS) / snapshot_id)
    return link


def _switch(root: Path, next_link: Path) -> None:
    next_link.rename(root / CURRENT)
    _flush_folder(root)


@contextmanager
def _only_publisher(root: Path) -> Iterator[None]:
    (root / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
    with (root / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PublishBusyError(f"another process publishes under {root}: wait for it, then try again") from error
        yield


def _remove_leftovers(root: Path) -> None:
    for prefix in (_BUILDING, _REMOVING):
        for folder in sorted((root / SNAPSHOTS).glob(f"{prefix}*")):
            shutil.rmtree(folder)
    for link in sorted(root.glob(f"{_PUBLISHING}*")):
        # Killed between the two renames: the snapshot got its name but never was live, so its id is free again.
        never_live = root / link.readlink()
        if never_live.is_dir():
            retired = never_live.with_name(_REMOVING + never_live.name)
            never_live.rename(retired)
            shutil.rmtree(retired)
        link.unlink()


def _flush(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            _flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
