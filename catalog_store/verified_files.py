"""One verification a machine: the first process that needs a snapshot reads its files, and all others trust the mark that it leaves.

A mark is `<root>/.verified/<id>.json`, mode 0600, beside the snapshots and part of none. It holds the SHA-256 of the manifest, and for each
file that was read its size, time of change and inode. A file that differs from its entry is read again. A file that is damaged on the disk
later keeps all three: the scrub (scrub.py) finds that. Where the catalog cannot be written, the mark is in a folder that the processes of
one server share. A mark also holds a refusal, so that a damaged snapshot is read once and not by every process.

The lock makes the processes wait for the one that reads; the kernel releases the lock of a process that dies. Out of scope: what
is read (snapshot.verify) and who opens it (live_snapshot.py).
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from catalog_store.errors import SnapshotInvalidError
from catalog_store.folder_listing import list_folder
from catalog_store.snapshot import MANIFEST, SNAPSHOTS, Manifest, Role, hash_file, read_manifest, select_files, verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MARKS_FOLDER = ".verified"
_LOCK = "lock"
_OTHERS_WRITE = 0o022

FileState = tuple[int, int, int]
"""Size, time of change of the contents in ns, inode. Not the inode's own time of change: every hard link made later changes that."""


class Refusal(msgspec.Struct, frozen=True):
    """Why the files in these states are not whole. The states hold the inodes' time of change, so that any repair is seen."""

    states: dict[str, tuple[int, int, int]]
    reason: str


class Mark(msgspec.Struct):
    """The verified files of one snapshot."""

    manifest_sha256: str
    files: dict[str, FileState] = {}
    refusal: Refusal | None = None


def verify_once(folder: Path, *, contents: bool | str, unread_folder: str = "", shared_folder: Path | None = None) -> Manifest:
    """Check the files of a server as `snapshot.verify` does, but read only those that no process of this machine has read.

    `shared_folder` takes the mark when the catalog cannot be written; without either every process reads for itself. SnapshotInvalidError.
    """
    manifest = verify(folder, role="serving", contents=False)
    wanted = select_files(manifest, contents, unread_folder)
    if not wanted:
        return manifest
    places = _list_places(folder, shared_folder)
    if wanted <= _find_known(folder, wanted, _read_mark(folder, places)):
        return manifest
    with _lock_marks(places) as place:
        mark = _read_mark(folder, places)
        changes = {path: _read_state(folder / path, of_inode=True) for path in sorted(wanted)}
        if mark.refusal is not None and mark.refusal.states == changes:
            raise SnapshotInvalidError(mark.refusal.reason)
        known = _find_known(folder, wanted, mark)
        # Taken before the files are read, so that a file that changes meanwhile differs from its entry.
        states = {path: _read_state(folder / path) for path in wanted - known}
        try:
            verify(folder, role="serving", contents=contents, unread_folder=unread_folder, known=known)
        except SnapshotInvalidError as error:
            mark.refusal = Refusal(changes, str(error))
            raise
        else:
            mark.files = {**mark.files, **states}
            mark.refusal = None
        finally:
            if place is not None:
                _write_mark(place, folder.name, mark)
    return manifest


def find_verified(folder: Path) -> set[str]:
    """Return the paths in a snapshot whose contents a process of this machine has verified, and which have not changed since."""
    mark = _read_mark(folder, _list_places(folder, None))
    return _find_known(folder, mark.files, mark)


def read_states(folder: Path, role: Role) -> dict[str, FileState]:
    """Return the states of a snapshot's files, for `mark_verified`. Take them before the files are read: a later change then shows."""
    return {file.path: _read_state(folder / file.path) for file in read_manifest(folder).list_files(role)}


def mark_verified(folder: Path, states: Mapping[str, FileState]) -> None:
    """Record that this process has verified the contents of files in these states. Without the right to write it does nothing."""
    places = _list_places(folder, None)
    with _lock_marks(places) as place:
        if place is not None:
            mark = _read_mark(folder, places)
            mark.files = {**mark.files, **states}
            mark.refusal = None
            _write_mark(place, folder.name, mark)


def remove_stale_marks(root: Path) -> None:
    """Remove the marks of snapshots that are gone, and what a killed process left of its mark."""
    place = root / MARKS_FOLDER
    # Under the lock nobody writes a mark, so every file with a dotted name is left over.
    with suppress(OSError), _lock_marks([place] if place.is_dir() else []) as held:
        for path in list_folder(place) if held is not None else []:
            is_mark = path.suffix == ".json" and not path.name.startswith(".")
            if path.name != _LOCK and not (is_mark and (root / SNAPSHOTS / path.stem).is_dir()):
                path.unlink(missing_ok=True)


def _list_places(folder: Path, shared_folder: Path | None) -> list[Path]:
    """Return the folders that may hold the mark, the best first."""
    # A snapshot's folder may also be served alone, from anywhere. The folder above it then belongs to somebody else.
    beside = [folder.parent.parent / MARKS_FOLDER] if folder.parent.name == SNAPSHOTS else []
    return [*beside, *([shared_folder / MARKS_FOLDER] if shared_folder is not None else [])]


@contextmanager
def _lock_marks(places: list[Path]) -> Iterator[Path | None]:
    """Hold the lock of the first place that can be written, and yield it; None when there is none."""
    for place in places:
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield place
        finally:
            os.close(handle)
        return
    yield None


def _read_mark(folder: Path, places: list[Path]) -> Mark:
    """Return the mark of the snapshot, an empty one where there is none that fits its manifest."""
    digest = hash_file(folder / MANIFEST)
    for place in places:
        path = place / f"{folder.name}.json"
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            found = path.stat()
            # Another user's word does not count, except that of root, who can change the program itself.
            if found.st_uid in {os.geteuid(), 0} and not found.st_mode & _OTHERS_WRITE:
                mark = msgspec.json.decode(path.read_bytes(), type=Mark)
                if mark.manifest_sha256 == digest:
                    return mark
    return Mark(digest)


def _write_mark(place: Path, name: str, mark: Mark) -> None:
    fresh = place / f".{name}-{os.getpid()}"
    # A mark saves time and nothing else, so a full disk stops nobody.
    with suppress(OSError):
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(mark))
        fresh.replace(place / f"{name}.json")


def _find_known(folder: Path, paths: Iterable[str], mark: Mark) -> set[str]:
    return {path for path in paths if mark.files.get(path) == _read_state(folder / path)}


def _read_state(path: Path, *, of_inode: bool = False) -> FileState:
    try:
        found = path.stat()
    except OSError:
        return -1, -1, -1
    return found.st_size, found.st_ctime_ns if of_inode else found.st_mtime_ns, found.st_ino
