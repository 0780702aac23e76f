"""Pushing: the live snapshot of this machine -> a store, from which other machines pull (remote_catalog.py has the layout).

A file whose SHA-256 the store's live snapshot has is copied inside of the store; all others are sent, once their contents have been
verified. The manifest under `current` is written last, as one object: until then the store shows its old snapshot, afterwards the new one.
A push that was killed goes on with the files that are missing.

One process at a time pushes from a folder (`.push.lock`), and one machine to a store. Out of scope: files that are read back, because each
pull verifies them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_store.current_link import flush_folder
from catalog_store.errors import PublishBusyError, SnapshotInvalidError, TransferError, UnfitDestinationError
from catalog_store.file_lock import hold_lock
from catalog_store.file_transfer import is_http, is_local
from catalog_store.pending_files import write_aside
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.remote_catalog import is_s3, open_store, try_often
from catalog_store.snapshot import CURRENT, ID_SHAPE, MANIFEST, SNAPSHOTS, Manifest, decode_manifest, find_role, hash_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from catalog_store.snapshot import Role, StoredFile, TablePart

_LOCK = ".push.lock"
_MB = 1_000_000


@dataclass(frozen=True)
class Push:
    """Outcome of a push. `reused_bytes`: bytes of the snapshot that the store had already; `pruned`: ids that were removed there."""

    snapshot: str
    previous: str | None
    sent_files: int
    sent_bytes: int
    reused_bytes: int
    seconds: float
    pruned: list[str] = field(default_factory=list)


def push(
    root: Path, target: str, *, role: Role = "all", keep: int, sends_all: bool = False, report: Callable[[str], None] = lambda _line: None
) -> Push:
    """Make the live snapshot of `root` that of the catalog at `target`, with the files of `role`. Keep the newest `keep` there.

    With `sends_all` no file that the store has is used: it may be damaged, and a push sees only its size.

    TransferError: the store refuses a file, or cannot be written at all. UnfitDestinationError: `target` is a catalog and no store.
    SnapshotInvalidError: a file here is damaged. After any error the store shows the same snapshot as before.
    """
    began = time.monotonic()
    with hold_lock(root / _LOCK, PublishBusyError(f"another process pushes from {root}: wait for it, then try again")):
        live = read_live_snapshot(root)
        held = find_role(live.folder, live.manifest)
        if held not in {role, "all"}:
            raise SnapshotInvalidError(f"{live.folder} holds only the files of role {held}: push from the builder, or with --role {held}")
        store = _Store(target, report)
        previous = store.read_manifest()
        outgoing = _Outgoing(store, live.folder, live.manifest, None if sends_all else previous, report)
        outgoing.send(list(live.manifest.list_files(role)), {} if sends_all else store.list_sizes(live.id))
        content = (live.folder / MANIFEST).read_bytes()
        store.write(f"{SNAPSHOTS}/{live.id}/{MANIFEST}", content)
        # One object: a store replaces it as a whole.
        store.write(f"{CURRENT}/{MANIFEST}", content)
        report(f"{store.address} shows snapshot {live.id}")
        return Push(
            snapshot=live.id,
            previous=previous.id if previous else None,
            sent_files=outgoing.sent_files,
            sent_bytes=outgoing.sent_bytes,
            reused_bytes=outgoing.reused_bytes,
            seconds=round(time.monotonic() - began, 3),
            pruned=store.prune(live.id, keep),
        )


class _Store:
    """A catalog in a store that can be written."""

    def __init__(self, address: str, report: Callable[[str], None]) -> None:
        self.address = address.rstrip("/")
        self._report = report
        self._file_system, self._root = open_store(address)
        if is_http(self._file_system):
            raise TransferError(f"{address}: HTTP servers are only read: push to s3:// or to the folder that the server shows")
        self._is_local = is_local(self._file_system)
        # For a folder, s3fs would make a bucket that is not there: one whose name was mistyped.
        self._has_folders = not is_s3(address)
        # Through the link, the manifest of the new snapshot would replace that of an old one, and leave neither whole.
        if self._is_local and Path(self._locate(CURRENT)).is_symlink():
            raise UnfitDestinationError(
                f"{address} is a catalog whose current is a link, and a store has a folder of that name: push to another folder, or "
                "use `python -m catalog_store pull` to bring a snapshot into a catalog"
            )

    def read_manifest(self) -> Manifest | None:
        """Return the manifest of the live snapshot; None without one."""
        name = f"{CURRENT}/{MANIFEST}"
        try:
            content: bytes = self._try(f"{name} of", lambda: self._file_system.cat_file(self._locate(name)))
        except FileNotFoundError:
            return None
        # A manifest of another program: all files are sent anew.
        with suppress(SnapshotInvalidError):
            return decode_manifest(content, f"{self.address}/{name}")
        return None

    def list_sizes(self, snapshot_id: str) -> dict[str, int]:
        """Return the size of each file below the folder of a snapshot, by its path there."""
        folder = self._locate(f"{SNAPSHOTS}/{snapshot_id}")
        try:
            found = self._try("files of", lambda: self._file_system.find(folder, detail=True))
        except FileNotFoundError:
            return {}
        return {path.rpartition(f"{SNAPSHOTS}/{snapshot_id}/")[2]: entry["size"] for path, entry in found.items()}

    def write(self, name: str, content: bytes) -> None:
        """Write a small file as a whole."""
        self._make_folder(name)
        place = self._locate(name)
        write = (lambda: _replace(Path(place), content)) if self._is_local else (lambda: self._file_system.pipe_file(place, content))
        self._try_to_write(name, write)

    def send(self, file: Path, name: str) -> None:
        """Send a file."""
        self._make_folder(name)
        self._try_to_write(name, lambda: self._file_system.put_file(str(file), self._locate(name)))

    def copy(self, source: str, name: str) -> None:
        """Copy a file inside of the store. FileNotFoundError when the source is gone."""
        self._make_folder(name)
        self._try(f"{name} within", lambda: self._file_system.cp_file(self._locate(source), self._locate(name)))

    def prune(self, live: str, keep: int) -> list[str]:
        """Remove all but the newest snapshots and the live one, and return their ids. A failure is a warning."""
        try:
            self._file_system.invalidate_cache()
            places = [str(path).rstrip("/").rpartition("/")[2] for path in self._file_system.ls(self._locate(SNAPSHOTS), detail=False)]
            # The order of publishing, as `prune` of a catalog has it. What a killed push left has no manifest and goes first.
            ids = sorted((name for name in places if ID_SHAPE.fullmatch(name) and name != live), key=self._find_place_in_order)
            # The live one counts, wherever a rollback has put it in the order.
            stale = ids[: max(0, len(ids) - (keep - 1))]
            for name in stale:
                self._file_system.rm(self._locate(f"{SNAPSHOTS}/{name}"), recursive=True)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own, and the new snapshot is live
            self._report(f"warning: old snapshots in {self.address} cannot be removed: {error}: the next push tries again")
            return []
        return stale

    def _find_place_in_order(self, snapshot_id: str) -> tuple[int, str, str]:
        name = f"{SNAPSHOTS}/{snapshot_id}/{MANIFEST}"
        with suppress(FileNotFoundError, SnapshotInvalidError):
            manifest = decode_manifest(self._file_system.cat_file(self._locate(name)), f"{self.address}/{name}")
            return manifest.sequence, manifest.created_at, snapshot_id
        return 0, "", snapshot_id

    def _locate(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _make_folder(self, name: str) -> None:
        if self._has_folders:
            self._try(f"folder of {name} in", lambda: self._file_system.makedirs(self._locate(name).rpartition("/")[0], exist_ok=True))

    def _try_to_write(self, name: str, transfer: Callable[[], Any]) -> None:
        try:
            self._try(f"{name} to", transfer)
        except FileNotFoundError as error:  # a bucket that is not there
            raise TransferError(f"{name} to {self.address}: {error}") from error

    def _try(self, subject: str, transfer: Callable[[], Any]) -> Any:  # noqa: ANN401 - fsspec has no types
        return try_often(transfer, f"{subject} {self.address}", self._report)


def _replace(file: Path, content: bytes) -> None:
    """Write a file aside and give it its name: a kill or a full disk leaves the one that is there."""
    with write_aside(file) as aside, aside.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    flush_folder(file.parent)


class _Outgoing:
    """The snapshot that is pushed."""

    def __init__(self, store: _Store, folder: Path, manifest: Manifest, previous: Manifest | None, report: Callable[[str], None]) -> None:
        self._store, self._folder, self._id, self._report = store, folder, manifest.id, report
        self._known: dict[str, str] = {}
        """Path in the store of a file with this SHA-256."""
        if previous is not None and previous.id != manifest.id:
            there = store.list_sizes(previous.id)
            self._known = {
                file.sha256: f"{SNAPSHOTS}/{previous.id}/{file.path}"
                for file in previous.list_files()
                if there.get(file.path) == file.bytes
            }
        self.sent_files = self.sent_bytes = self.reused_bytes = 0

    def send(self, files: list[StoredFile | TablePart], there: Mapping[str, int]) -> None:
        """Bring all files into the store. `there`: the sizes of those that it has already, by path."""
        missing = [file for file in files if there.get(file.path) != file.bytes]
        self.reused_bytes = sum(file.bytes for file in files) - sum(file.bytes for file in missing)
        new = [file for file in missing if file.sha256 not in self._known]
        size = sum(file.bytes for file in new)
        self._report(f"pushing snapshot {self._id}: {len(new):,} of {len(files):,} files with {size / _MB:,.1f} MB are sent")
        for file in missing:
            self._bring(file)

    def _bring(self, file: StoredFile | TablePart) -> None:
        name = f"{SNAPSHOTS}/{self._id}/{file.path}"
        if (source := self._known.get(file.sha256)) is not None:
            # Somebody may have removed it since it was listed: then it is sent.
            with suppress(FileNotFoundError):
                self._store.copy(source, name)
                self.reused_bytes += file.bytes
                return
        path = self._folder / file.path
        if (found := hash_file(path)) != file.sha256:
            raise SnapshotInvalidError(f"{path} has SHA-256 {found}, its manifest {file.sha256}: the file is damaged, nothing was switched")
        self._store.send(path, name)
        self._known[file.sha256] = name
        self.sent_files += 1
        self.sent_bytes += file.bytes
