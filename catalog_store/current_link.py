"""The link `current`: what it names, switching it, and the one place that removes folders below `snapshots/`.

Two rules hold whatever was killed, failed or made by hand before. The folder that `current` leads to, over however many links, is never
removed. A snapshot under its final name is removed only by `prune`, or if a marker says that it never was live: `publish` makes the link
`.publishing-<id>` before it gives a snapshot its name, and renames that very link over `current`. A rollback takes the marker away before
it switches. Callers hold the publisher's lock. What must not live here: what a snapshot contains (publisher.py), who may publish.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.errors import NoSnapshotError
from catalog_store.snapshot import CURRENT, ID_SHAPE, SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Callable

BUILDING = ".building-"
REMOVING = ".removing-"
PUBLISHING = ".publishing-"
ROLLBACK_LINK = ".rollback"


def live_folder(root: Path) -> Path | None:
    """The folder that `current` leads to, without links in its path; None when there is none (no link, or one that dangles)."""
    current = root / CURRENT
    return current.resolve() if current.is_dir() else None


def is_live(root: Path, folder: Path) -> bool:
    """Whether `current` leads to `folder` or into it, by whatever path."""
    live = live_folder(root)
    return live is not None and folder.is_dir() and any(folder.samefile(place) for place in (live, *live.parents))


def require_usable_current(root: Path) -> None:
    """NoSnapshotError when `current` dangles or is no link: to publish or prune then could lose ids, or the snapshot that was live."""
    current = root / CURRENT
    if current.is_symlink() and not current.is_dir():
        raise NoSnapshotError(
            f"{current} names {current.readlink()}, which is not there: mount or restore that folder, or make another snapshot live with "
            f"`python -m pipeline rollback --catalog {root} --to ID` (`python -m pipeline snapshots` lists them)"
        )
    require_link(root)


def require_link(root: Path) -> None:
    """NoSnapshotError when `current` is there and no link: it could not be switched."""
    current = root / CURRENT
    if not current.is_symlink() and current.exists():
        raise NoSnapshotError(
            f"{current} is no link, so it cannot be switched: move it away, then `python -m pipeline rollback --catalog {root} --to ID`"
        )


def make_link(root: Path, target: Path, name: str) -> Path:
    """A link `name` in `root`, which is relative so that the root can be moved; replaces a link of that name."""
    link = root / name
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return link


def marker_of(root: Path, snapshot_id: str) -> Path:
    """The link that says, while it is there, that the snapshot of that id never was live."""
    return root / (PUBLISHING + snapshot_id)


def switch(root: Path, next_link: Path) -> None:
    """Rename `next_link` over `current`, and flush it. When that fails with OSError, `current` names what it named before."""
    current = root / CURRENT
    before = current.readlink() if current.is_symlink() else None
    following = next_link.readlink()
    next_link.rename(current)
    try:
        flush_folder(root)
    except OSError:
        if before is None:
            current.rename(next_link)
        else:
            make_link(root, before, ROLLBACK_LINK).rename(current)
            if next_link.name != ROLLBACK_LINK:
                make_link(root, following, next_link.name)
        raise


def clear_markers(root: Path, folder: Path) -> None:
    """Take away the markers of the snapshot in `folder`, which is about to be live."""
    markers = [marker for marker in root.glob(f"{PUBLISHING}*") if marker.is_symlink() and _is_same(_marked(marker), folder)]
    for marker in markers:
        marker.unlink()
    if markers:
        flush_folder(root)


def remove_leftovers(root: Path, report: Callable[[str], None]) -> None:
    """Remove what a publish, rollback or prune left that was killed or failed. `report` is told of what cannot be removed; it is left."""
    with suppress(FileNotFoundError):
        (root / ROLLBACK_LINK).unlink()
    for folder in sorted((root / SNAPSHOTS).iterdir()):
        if folder.name.startswith((BUILDING, REMOVING)):
            _try(lambda folder=folder: remove_folder(root, folder), folder, report)  # type: ignore[misc]
    for marker in sorted(root.glob(f"{PUBLISHING}*")):
        _try(lambda marker=marker: _settle(root, marker), marker, report)  # type: ignore[misc]


def _try(remove: Callable[[], None], path: Path, report: Callable[[str], None]) -> None:
    try:
        remove()
    except OSError as error:
        report(f"warning: {path} is left over and cannot be removed: {error}: remove it by hand")


def _settle(root: Path, marker: Path) -> None:
    """Remove the snapshot that a marker names if it never was live, then the marker: its id is free again.

    Only a marker as `publish` makes it counts: one that was made by hand, or that leads elsewhere, is itself all that goes.
    """
    folder = _marked(marker)
    is_ours = marker.is_symlink() and marker.readlink() == Path(SNAPSHOTS) / folder.name and ID_SHAPE.fullmatch(folder.name)
    if is_ours and folder.is_dir() and not folder.is_symlink() and not is_live(root, folder):
        # `current` must name the same snapshot on disk as in memory before anything else is removed.
        flush_folder(root)
        retire(root, folder)
    if marker.is_symlink() or not marker.is_dir():
        marker.unlink()
    else:
        shutil.rmtree(marker)


def _marked(marker: Path) -> Path:
    return marker.parent / SNAPSHOTS / marker.name.removeprefix(PUBLISHING)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and one.samefile(other)


def retire(root: Path, folder: Path) -> None:
    """Remove a snapshot: first its name, so that nobody sees half of it, then its files."""
    if is_live(root, folder):
        return
    retired = folder.with_name(REMOVING + folder.name)
    folder.rename(retired)
    # After a loss of power its files could be gone and its name could be back.
    flush_folder(folder.parent)
    remove_folder(root, retired)


def remove_folder(root: Path, folder: Path) -> None:
    """Remove a folder below `snapshots/`, unless `current` leads there; of a link, the link alone."""
    if is_live(root, folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def flush(folder: Path) -> None:
    """Flush a folder and all that it holds to disk."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
