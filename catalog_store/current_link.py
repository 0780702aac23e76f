"""The link `current`: its target, the switch, and the only place that removes folders below `snapshots/`.

Two rules hold after any kill, failure or manual change. The folder that `current` leads to, over any number of links, is never removed. A
snapshot under its final name is removed only by `prune`, or when a marker shows that it never was live: `publish` creates the link
`.publishing-<id>` before it names a snapshot, and renames that link over `current`. A rollback removes the marker before it switches.
Callers hold the publisher's lock. The content of a snapshot belongs in publisher.py.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.errors import NoSnapshotError
from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.snapshot import CURRENT, ID_SHAPE, SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Callable

BUILDING = ".building-"
REMOVING = ".removing-"
PUBLISHING = ".publishing-"
ROLLBACK_LINK = ".rollback"


def find_live_folder(root: Path) -> Path | None:
    """Return the resolved folder that `current` leads to; None without a link, or with one that dangles."""
    current = root / CURRENT
    return current.resolve() if current.is_dir() else None


def is_live(root: Path, folder: Path) -> bool:
    """Return whether `current` leads to `folder` or into it, by any path."""
    live = find_live_folder(root)
    return live is not None and folder.is_dir() and any(folder.samefile(place) for place in (live, *live.parents))


def require_usable_current(root: Path) -> None:
    """Raise NoSnapshotError when `current` dangles or is not a link. A publish or prune could then lose ids or the last live snapshot."""
    current = root / CURRENT
    if current.is_symlink() and not current.is_dir():
        raise NoSnapshotError(
            f"{current} names {current.readlink()}, which is not there: mount or restore that folder, or make another snapshot live with "
            f"`python -m pipeline rollback --catalog {root} --to ID` (`python -m pipeline snapshots` lists them)"
        )
    require_link(root)


def require_link(root: Path) -> None:
    """Raise NoSnapshotError when `current` exists and is not a link, because it cannot be switched."""
    current = root / CURRENT
    if not current.is_symlink() and current.exists():
        raise NoSnapshotError(
            f"{current} is not a link, so it cannot be switched: move it away, then `python -m pipeline rollback --catalog {root} --to ID`"
        )


def make_link(root: Path, target: Path, name: str) -> Path:
    """Create the link `name` in `root`, or replace it. Its target is relative, so the root can be moved."""
    link = root / name
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return link


def build_marker_path(root: Path, snapshot_id: str) -> Path:
    """Return the path of the marker link. While it exists, the snapshot of that id never was live."""
    return root / (PUBLISHING + snapshot_id)


def switch(root: Path, next_link: Path) -> None:
    """Rename `next_link` over `current` and flush it. After an OSError `current` names its old target again."""
    current = root / CURRENT
    before = current.readlink() if current.is_symlink() else None
    following = next_link.readlink()
    # rename(2) replaces the link atomically: a reader sees the old target or the new one.
    next_link.rename(current)
    try:
        flush_folder(root)
    except OSError:
        if before is None:
            current.rename(next_link)
        else:
            make_link(root, before, ROLLBACK_LINK).rename(current)
            # The marker is restored, because the snapshot was not live after all.
            if next_link.name != ROLLBACK_LINK:
                make_link(root, following, next_link.name)
        raise


def clear_markers(root: Path, folder: Path) -> None:
    """Remove the markers of the snapshot in `folder`, which is about to become live."""
    markers = [marker for marker in list_folder(root, f"{PUBLISHING}*") if marker.is_symlink() and _is_same(_find_marked(marker), folder)]
    for marker in markers:
        marker.unlink()
    if markers:
        flush_folder(root)


def remove_leftovers(root: Path, report: Callable[[str], None]) -> None:
    """Remove the remains of a publish, rollback or prune that was killed or failed. `report` receives those that cannot be removed."""
    with suppress(FileNotFoundError):
        (root / ROLLBACK_LINK).unlink()
    for folder in sorted((root / SNAPSHOTS).iterdir()):
        if folder.name.startswith((BUILDING, REMOVING)):
            _remove_or_report(lambda folder=folder: remove_folder(root, folder), folder, report)  # type: ignore[misc]
    for marker in list_folder(root, f"{PUBLISHING}*"):
        _remove_or_report(lambda marker=marker: _remove_unfinished(root, marker), marker, report)  # type: ignore[misc]


def _remove_or_report(remove: Callable[[], None], path: Path, report: Callable[[str], None]) -> None:
    try:
        remove()
    except OSError as error:
        report(f"warning: {path} is left over and cannot be removed: {error}: remove it by hand")


def _remove_unfinished(root: Path, marker: Path) -> None:
    """Remove the snapshot of a marker if it never was live, then the marker. Its id is free again.

    Only a marker in the form that `publish` writes counts. Any other is removed alone.
    """
    folder = _find_marked(marker)
    is_from_publish = marker.is_symlink() and marker.readlink() == Path(SNAPSHOTS) / folder.name and ID_SHAPE.fullmatch(folder.name)
    if is_from_publish and folder.is_dir() and not folder.is_symlink() and not is_live(root, folder):
        # `current` must name the same snapshot on disk as in memory before anything else is removed.
        flush_folder(root)
        retire(root, folder)
    if marker.is_symlink() or not marker.is_dir():
        marker.unlink()
    else:
        shutil.rmtree(marker)


def _find_marked(marker: Path) -> Path:
    return marker.parent / SNAPSHOTS / marker.name.removeprefix(PUBLISHING)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and one.samefile(other)


def retire(root: Path, folder: Path) -> None:
    """Remove a snapshot: first its name, so that no reader sees half of it, then its files."""
    if is_live(root, folder):
        return
    retired = folder.with_name(REMOVING + folder.name)
    # A rename is atomic, the removal of a tree is not. The dotted name makes the next publish finish it.
    folder.rename(retired)
    # Without the flush, a power failure could restore the name of a snapshot whose files are gone.
    flush_folder(folder.parent)
    remove_folder(root, retired)


def remove_folder(root: Path, folder: Path) -> None:
    """Remove a folder below `snapshots/`, unless `current` leads there. If it is a link, remove only the link."""
    if is_live(root, folder):
        return
    # `rmtree` of a link would raise, and its target may be another snapshot.
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def flush(folder: Path) -> None:
    """Flush a folder and all its content to disk."""
    for path in [*list_tree(folder), folder]:
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    # A directory can only be flushed by a descriptor of its own; Python's `open` refuses directories.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
