"""The snapshots of a catalog: which there are, which one is live, and which ids they gave out.

Workers of a build import it, and publisher.py would take .25 CPU seconds of each, so it imports nothing that writes a snapshot. Publishing,
rollback and removal belong in publisher.py, the form of a snapshot in snapshot.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from catalog_store.current_link import is_live
from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.folder_listing import list_folder
from catalog_store.snapshot import CURRENT, ID_SHAPE, MANIFEST, SNAPSHOTS, TABLES_FOLDER, Snapshot, read_manifest
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ID_KINDS = ("recording", "artist", "release", "label")
"""Kinds of ids that are never issued twice; the table of each has the column `<kind>_id`."""


def find_highest_ids(root: Path, next_ids: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
    """Return per kind the smallest id that no snapshot issued, at least as in `next_ids`.

    For a snapshot without a usable manifest the tables are read; SnapshotInvalidError when they are unreadable too.
    """
    usable, damaged = _scan_snapshots(root)
    highest = dict(sorted(next_ids.items()))
    for issued in [*(snapshot.manifest.next_ids for snapshot in usable), *map(_read_next_ids, damaged)]:
        for kind, value in issued.items():
            highest[kind] = max(value, highest.get(kind, 1))
    return highest


def _read_next_ids(folder: Path) -> dict[str, int]:
    try:
        return {kind: 1 + max(map(_build_largest_id_reader(kind), list_parts(folder / TABLES_FOLDER / kind))) for kind in ID_KINDS}
    except (OSError, pa.ArrowException) as error:
        raise SnapshotInvalidError(
            f"snapshot {folder} has neither a usable {MANIFEST} nor tables that can be read ({error}), so the ids that it gave out are not "
            f"known: restore its {MANIFEST} from a backup; or remove the folder, if another snapshot was published after it"
        ) from error


def _build_largest_id_reader(kind: str) -> Callable[[Path], int]:
    return lambda part: int(pq.read_table(part, columns=[f"{kind}_id"]).column(0).to_numpy().max(initial=0))


def list_snapshots(root: Path) -> list[Snapshot]:
    """Return all published snapshots with a usable manifest, in the order of publishing; the live one is marked."""
    return _scan_snapshots(root)[0]


def list_damaged_snapshots(root: Path) -> dict[str, str]:
    """Return the folders of snapshots without a usable manifest, and the reason of each."""
    return {folder.name: reason for folder, reason in _scan_snapshots(root)[1].items()}


def _scan_snapshots(root: Path) -> tuple[list[Snapshot], dict[Path, str]]:
    usable: list[Snapshot] = []
    damaged: dict[Path, str] = {}
    for folder in [folder for folder in list_folder(root / SNAPSHOTS) if ID_SHAPE.fullmatch(folder.name) and folder.is_dir()]:
        try:
            usable.append(Snapshot(folder, read_manifest(folder), is_current=is_live(root, folder)))
        except (SnapshotInvalidError, NoSnapshotError) as error:
            if (folder / MANIFEST).exists() or (folder / TABLES_FOLDER).is_dir():
                damaged[folder] = str(error)
    # Not by time, because a clock may go back. Manifests without a sequence number are older than all that have one.
    return sorted(usable, key=lambda snapshot: (snapshot.manifest.sequence, snapshot.manifest.created_at, snapshot.id)), damaged


def find_current_folder(root: Path) -> Path | None:
    """Return the folder of the live snapshot; None before the first publish."""
    try:
        return root / (root / CURRENT).readlink()
    except FileNotFoundError:
        return None


def read_live_snapshot(root: Path) -> Snapshot:
    """Return the live snapshot; NoSnapshotError before the first publish."""
    folder = find_current_folder(root)
    if folder is None:
        raise NoSnapshotError(f"nothing is published under {root}: build a catalog first")
    return Snapshot(folder, read_manifest(folder), is_current=True)


def find_snapshot(root: Path, snapshot_id: str) -> Snapshot:
    """Return the snapshot of that id; NoSnapshotError when there is none, SnapshotInvalidError when its manifest is unusable."""
    folder = find_folder(root, snapshot_id)
    return Snapshot(folder, read_manifest(folder), is_current=is_live(root, folder))


def find_folder(root: Path, snapshot_id: str) -> Path:
    """Return the folder of the snapshot of that id, whose manifest may be unusable; NoSnapshotError when there is none."""
    folder = root / SNAPSHOTS / snapshot_id
    if not ID_SHAPE.fullmatch(snapshot_id) or not folder.is_dir():
        known = ", ".join(snapshot.id for snapshot in list_snapshots(root)) or "none"
        raise NoSnapshotError(f"no snapshot {snapshot_id!r} under {root}: there are {known}")
    return folder
