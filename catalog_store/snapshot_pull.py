"""Pulling: the live snapshot of another machine -> this machine's `current`, by way of the files that are not here yet.

A file is known by its SHA-256. Files that a kept snapshot of this machine holds are hard-linked; all others are fetched and verified. They
gather in `snapshots/.pulling/<sha256>`, so a pull that was interrupted goes on, even if another snapshot is live by then. When all are
there, a folder of links is built beside them, flushed, and renamed to the snapshot's id; then `current` is switched as a rollback does.
A process killed at any moment leaves `current` at a whole snapshot, and the next pull uses what is in `.pulling`.

One process at a time pulls into a folder (`.pull.lock`). Out of scope: where files come from (remote_catalog.py), the switch and
what is pruned (publisher.py).
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.current_link import find_live_folder, flush, flush_folder, require_link
from catalog_store.errors import (
    FULL_DISK,
    CatalogError,
    NoSnapshotError,
    PublishBusyError,
    SnapshotInvalidError,
    TransferError,
    UnfitDestinationError,
)
from catalog_store.file_lock import hold_lock
from catalog_store.published_files import link_or_copy
from catalog_store.published_snapshots import list_snapshots
from catalog_store.publisher import prune, rollback
from catalog_store.reader import open_catalog
from catalog_store.remote_catalog import RemoteCatalog
from catalog_store.snapshot import MANIFEST, REPORTED_BYTES, SNAPSHOTS, Role, find_role, hash_file, read_manifest
from catalog_store.verified_files import find_verified, mark_verified, read_states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.remote_catalog import RemoteSnapshot
    from catalog_store.snapshot import Manifest, StoredFile, TablePart

PULLING_FOLDER = ".pulling"
"""Below `snapshots/`, so that its files can be linked."""
KEPT_SNAPSHOTS = 3
"""As many as a build keeps (pipeline/settings.py)."""
_LOCK = ".pull.lock"
_PART = ".part"
_MB, _GB = 1e6, 1e9


@dataclass(frozen=True)
class Pull:
    """The outcome of a pull."""

    snapshot: str
    previous: str | None
    """The snapshot that was live before; None before the first one."""
    fetched_files: int
    fetched_bytes: int
    """Bytes that came over the network, those of repeated attempts included."""
    reused_bytes: int
    """Bytes of the snapshot that were here already."""
    seconds: float
    pruned: list[str] = field(default_factory=list)


class _Copy(NamedTuple):
    """A file of a kept snapshot."""

    path: Path
    is_verified: bool


def pull(
    source: str,
    root: Path,
    *,
    role: Role = "serving",
    keep: int = KEPT_SNAPSHOTS,
    reads_all: bool = False,
    snapshot_id: str | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Pull:
    """Make the live snapshot of `source`, or that of an id, the live one of `root`, with the files of `role`. Keep the newest `keep`.

    Files whose contents were verified here before are not read again, unless `reads_all`. `report` receives progress and warnings.
    TransferError: a file cannot be fetched or is wrong. UnfitDestinationError: `root` holds something else. PublishBusyError: another
    process pulls, publishes, rolls back or prunes. SnapshotInvalidError: this program does not read the snapshot. OSError: the disk. After
    any error `current` names the same snapshot as before.
    """
    began = time.monotonic()
    remote = RemoteCatalog(source, report)
    if remote.folder is not None and remote.folder.resolve() == root.resolve():
        raise UnfitDestinationError(f"{root} is source and destination: name two folders")
    (root / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
    # Not the publisher's lock: a transfer takes minutes, and a rollback must not wait for it.
    with hold_lock(root / _LOCK, PublishBusyError(f"another process pulls into {root}: wait for it, then try again")):
        require_link(root)
        _require_role(root, role)
        _prune(root, keep, report)
        pulling = root / SNAPSHOTS / PULLING_FOLDER
        pulling.mkdir(exist_ok=True)
        live = find_live_folder(root)
        try:
            offered = remote.fetch_manifest(pulling / MANIFEST, snapshot_id)
            incoming = _Incoming(root, remote, offered, role, reads_all=reads_all, report=report)
            incoming.gather()
            incoming.place()
        except OSError as error:
            if error.errno in FULL_DISK:
                # The server's log and accounts may be on the same disk: they need the room more than the next attempt needs a part.
                shutil.rmtree(pulling, ignore_errors=True)
                # A failed write names no file.
                error.filename = error.filename or str(root)
            raise
        name = incoming.manifest.id
        if live != incoming.folder.resolve():
            report(f"switching to snapshot {name}")
            # The contents have been verified file by file, so only sizes are checked again.
            rollback(root, name, role=role, contents=False)
        _remove(pulling, report)
        return Pull(
            snapshot=name,
            previous=None if live is None else live.name,
            fetched_files=incoming.fetched_files,
            fetched_bytes=incoming.fetched_bytes,
            reused_bytes=incoming.reused_bytes,
            seconds=round(time.monotonic() - began, 3),
            pruned=_prune(root, keep, report),
        )


class _Incoming:
    """The snapshot that is pulled: which of its files are here, and where the others come from."""

    def __init__(
        self, root: Path, remote: RemoteCatalog, offered: RemoteSnapshot, role: Role, *, reads_all: bool, report: Callable[[str], None]
    ) -> None:
        self._root = root
        self._pulling = root / SNAPSHOTS / PULLING_FOLDER
        self._remote = remote
        self._role = role
        self._reads_all = reads_all
        self._report = report
        self.manifest, self._content = offered
        self.folder = root / SNAPSHOTS / self.manifest.id
        _require_same_snapshot(self.folder, self.manifest)
        self._is_there = self.folder.is_dir()
        self._copies = self._find_copies()
        self._missing: list[StoredFile | TablePart] = []
        """Files that are not in the folder under the snapshot's id. Each is in `pulling` after `gather`."""
        self.fetched_files = 0
        self.fetched_bytes = 0
        self.reused_bytes = 0

    def gather(self) -> None:
        """Bring every file of the role that the folder lacks into `pulling`: by a link where a snapshot holds it, else from the source."""
        fetched: dict[str, StoredFile | TablePart] = {}
        for file in self.manifest.list_files(self._role):
            is_placed = self._is_there and self._is_whole(file, self.folder / file.path)
            self._missing += [] if is_placed else [file]
            # Files of equal contents are fetched once.
            if is_placed or file.sha256 in fetched or self._take_over(file):
                self.reused_bytes += file.bytes
            else:
                fetched[file.sha256] = file
        self._fetch(list(fetched.values()))

    def _fetch(self, files: list[StoredFile | TablePart]) -> None:
        total = sum(file.bytes for file in files)
        self._require_room(total - sum(_find_size(self._name_part(file)) for file in files))
        self._report(
            f"pulling snapshot {self.manifest.id}: {len(files):,} files with {total / _MB:,.1f} MB are fetched, "
            f"{self.reused_bytes / _MB:,.1f} MB are here"
        )
        done, reported = 0, 0
        for file in files:
            part = self._name_part(file)
            self.fetched_bytes += self._remote.fetch(self.manifest, file, part)
            self.fetched_files += 1
            part.rename(self._pulling / file.sha256)
            done += file.bytes
            if done - reported >= REPORTED_BYTES:
                self._report(f"pulling snapshot {self.manifest.id}: {done / _GB:.1f} of {total / _GB:.1f} GB fetched")
                reported = done

    def place(self) -> None:
        """Give the snapshot its name, or complete the folder that has it already. Everything is on disk before it is visible."""
        if self._is_there:
            self._complete()
        else:
            self._name()
        mark_verified(self.folder, read_states(self.folder, self._role))

    def _name(self) -> None:
        building = self._pulling / "snapshot"
        if building.exists():
            shutil.rmtree(building)
        for file in self._missing:
            link_or_copy(self._pulling / file.sha256, building / file.path)
        (building / MANIFEST).write_bytes(self._content)
        if self._role != "analyst":
            # A program older than the builder's refuses here, and not in each worker after the switch.
            open_catalog(building).close()
        flush(building)
        building.rename(self.folder)
        flush_folder(self.folder.parent)

    def _complete(self) -> None:
        for file in self._missing:
            self._put(self._pulling / file.sha256, self.folder / file.path)
        manifest = self.folder / MANIFEST
        if not manifest.is_file() or manifest.read_bytes() != self._content:
            fresh = self._pulling / MANIFEST
            fresh.write_bytes(self._content)
            self._put(fresh, manifest)

    def _put(self, source: Path, target: Path) -> None:
        """Give a file another name, durably. A server may hold the old file of that name open: it must not see it change."""
        aside = self._pulling / "aside"
        aside.unlink(missing_ok=True)
        link_or_copy(source, aside)
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.replace(target)
        flush_folder(target.parent)

    def _find_copies(self) -> dict[str, list[_Copy]]:
        """Return the files of all kept snapshots by their SHA-256."""
        found: dict[str, list[_Copy]] = {}
        for snapshot in list_snapshots(self._root):
            verified = set() if self._reads_all else find_verified(snapshot.folder)
            for file in snapshot.manifest.list_files():
                found.setdefault(file.sha256, []).append(_Copy(snapshot.folder / file.path, file.path in verified))
        return found

    def _take_over(self, file: StoredFile | TablePart) -> bool:
        """Return whether `pulling` holds the file, since an earlier pull or by a link to a kept snapshot's."""
        target = self._pulling / file.sha256
        is_there = target.is_file() and target.stat().st_size == file.bytes
        # It may be a link to a copy that an earlier pull trusted.
        if is_there and (not self._reads_all or hash_file(target) == file.sha256):
            return True
        for copy in self._copies.get(file.sha256, ()):
            # A snapshot may be pruned meanwhile; then the file is fetched.
            with suppress(FileNotFoundError):
                if self._is_whole(file, copy.path):
                    self._put(copy.path, target)
                    return True
        return False

    def _is_whole(self, file: StoredFile | TablePart, path: Path) -> bool:
        if not path.is_file() or path.stat().st_size != file.bytes:
            return False
        is_verified = any(copy.is_verified and copy.path == path for copy in self._copies.get(file.sha256, ()))
        return is_verified or hash_file(path) == file.sha256

    def _name_part(self, file: StoredFile | TablePart) -> Path:
        return self._pulling / f"{file.sha256}{_PART}"

    def _require_room(self, needed: int) -> None:
        free = shutil.disk_usage(self._pulling).free
        if needed > free:
            raise TransferError(
                f"snapshot {self.manifest.id} needs {needed:,} bytes more, {free:,} are free at {self._root}: make room, or keep fewer "
                "snapshots (--keep)"
            )


def _require_same_snapshot(folder: Path, manifest: Manifest) -> None:
    """Raise UnfitDestinationError when the folder of that id holds another snapshot. One without a usable manifest is completed."""
    with suppress(NoSnapshotError, SnapshotInvalidError):
        here = read_manifest(folder)
        if here != manifest:
            raise UnfitDestinationError(
                f"{folder} differs from the source's snapshot of that id (created {here.created_at}, there {manifest.created_at}): "
                "remove the folder if it is not needed, then pull again"
            )


def _require_role(root: Path, role: Role) -> None:
    """Raise UnfitDestinationError when the live snapshot holds tables that the next one would lack: a build needs them."""
    live = find_live_folder(root)
    if live is None:
        return
    with suppress(NoSnapshotError, SnapshotInvalidError):
        held = find_role(live, read_manifest(live))
        if role not in {held, "all"}:
            raise UnfitDestinationError(
                f"the live snapshot of {root} holds the files of role {held}, and the next one would lack those beyond {role}: "
                f"pull with --role {held}, or into another folder"
            )


def _find_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _remove(pulling: Path, report: Callable[[str], None]) -> None:
    try:
        shutil.rmtree(pulling)
    except OSError as error:
        report(f"warning: {pulling} cannot be removed: {error}: the next pull tries again")


def _prune(root: Path, keep: int, report: Callable[[str], None]) -> list[str]:
    # A snapshot that is live is worth more than room, so a failure is not an error.
    try:
        return prune(root, keep, report=report)
    except (OSError, CatalogError) as error:
        report(f"warning: old snapshots cannot be removed: {error}: the next pull tries again")
        return []
