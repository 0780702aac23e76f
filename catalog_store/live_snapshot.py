"""The live snapshot, one object per process. It follows `current`, hands out the open snapshot, and closes it after its last holder.

A thread checks `current` every second. It verifies a new target before it hands it out: presence and size of a server's files, contents of
those that are served. One process of a machine reads them for all (verified_files.py). The thread refuses an unfit target, logs the reason
once and keeps the open one. A holder holds one snapshot to the end of its block. A superseded snapshot is closed, files and memory maps
included, when its last holder is done.

A process may start while `current` names an unfit snapshot. It then opens the snapshot served last, if `last_served` names a link to it.
Otherwise a restarted worker would refuse every request beside workers that still answer.

  live = LiveSnapshot(root, open_catalog, what="snapshot", contents=True, absent=...)
  live.follow()
  with live.hold() as catalog: ...

The opened object (reader.py, the recognition index), HTTP and questions (catalog_store/queries) do not belong here.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import structlog

from catalog_store.errors import SnapshotInvalidError
from catalog_store.folder_listing import list_tree
from catalog_store.snapshot import CURRENT, MANIFEST
from catalog_store.verified_files import verify_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.snapshot import Manifest

log = structlog.get_logger("catalog_store")

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 300.0
"""Waits between attempts at a snapshot that failed for a reason that may pass: the first, doubled up to the longest."""
_NICENESS = 10
"""Niceness of the thread that reads the files of a new snapshot: requests go first."""


class _Closeable(Protocol):
    def close(self) -> None:
        """Release files and memory."""


Opened = TypeVar("Opened", bound=_Closeable)


class LiveStatus(NamedTuple):
    """The served snapshot compared with the target of `current`."""

    served: str | None
    """Id of the open snapshot; None while there is none."""
    current: str | None
    """Id of the snapshot that `current` names; None when the link is missing or unreadable."""
    behind_seconds: float
    """Seconds for which the two have differed; 0 while they agree."""
    is_refused: bool
    """Whether the target of `current` was checked and found unfit; the log holds the reason."""
    is_following: bool
    """Whether the thread that follows `current` is alive."""


class _Open(Generic[Opened]):
    """An open snapshot and the number of its holders. Counts change only under the lock of its LiveSnapshot."""

    __slots__ = ("folder", "holders", "is_superseded", "manifest", "opened")

    def __init__(self, folder: Path, manifest: Manifest, opened: Opened) -> None:
        self.folder = folder
        self.manifest = manifest
        self.opened = opened
        self.holders = 0
        self.is_superseded = False


class _Refusal:
    """A target that did not become live, the reason, and the time of the next attempt."""

    def __init__(self, target: tuple[Path, int | None], reason: str, seconds: float) -> None:
        self.target = target
        self.reason = reason
        self.seconds = seconds
        self.again_at = time.monotonic() + seconds


class LiveSnapshot(Generic[Opened]):
    """The holder of the open snapshot. `follow()` starts the thread, `close()` ends it."""

    def __init__(
        self,
        root: Path,
        open_: Callable[[Path], Opened],
        *,
        what: str,
        contents: bool | str,
        unread_folder: str = "",
        verifies_first: bool = True,
        absent: Callable[[], Exception],
        look_seconds: float = 1.0,
        last_served: Path | None = None,
    ) -> None:
        """`root` is a catalog root (with `current`) or a snapshot folder; `open_` opens a snapshot's folder.

        `what` names the opened thing in the log. `contents` and `unread_folder` are as in `snapshot.verify`; without `verifies_first` only
        sizes are checked for the first snapshot. `absent` creates the error raised while nothing is open. `last_served` is a link to the
        snapshot opened last; all processes of one server share and replace it, and its folder.
        """
        self._root = root
        self._open_one = open_
        self._events = {
            "live": f"{what} is live",
            "freed": f"{what} is freed",
            "refused": f"{what} refused",
            "kept": f"{what} served last is live",
        }
        self._contents = contents
        self._unread_folder = unread_folder
        self._verifies_first = verifies_first
        self._absent = absent
        self._look_seconds = look_seconds
        self._last_served = last_served
        self._tried_last: Path | None = None
        """The folder that `last_served` named at the last attempt. An unfit one is read once, not every second."""
        self._lock = threading.Lock()
        self._open: _Open[Opened] | None = None
        self._refusal: _Refusal | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._behind_since: float | None = None
        """The monotonic time since which the open snapshot, or none, has differed from the target of `current`; None while they agree."""

    def hold(self) -> _Hold[Opened]:
        """Hold the live snapshot until the block ends: `with live.hold() as opened:`. Raises the `absent` error when nothing is open."""
        return _Hold(self)

    def acquire(self) -> _Open[Opened]:
        """Return the open snapshot and count one holder more."""
        with self._lock:
            live = self._open
            if live is None:
                raise self._absent()
            live.holders += 1
        return live

    def release(self, snapshot: _Open[Opened]) -> None:
        """Count one holder less. The last holder of a superseded snapshot closes it."""
        with self._lock:
            snapshot.holders -= 1
            is_last = snapshot.is_superseded and snapshot.holders == 0
        # Outside the lock: closing unmaps files, and every request needs the lock.
        if is_last:
            self._free(snapshot)

    @property
    def snapshot(self) -> tuple[str, str] | None:
        """Id and creation time (RFC 3339) of the live snapshot; None while there is none."""
        live = self._open
        return None if live is None else (live.manifest.id, live.manifest.created_at)

    @property
    def refused(self) -> str | None:
        """Why the target of `current` is not live; None when it is."""
        return None if self._refusal is None else self._refusal.reason

    def read_status(self) -> LiveStatus:
        """Compare the snapshot served with the target of `current`. Any thread may call it. It never raises."""
        # Without the lock: each is one reference, and a status that is a moment old is still a status.
        live, refusal, thread = self._open, self._refusal, self._thread
        link = self._root / CURRENT
        current: str | None = None
        is_behind = True
        try:
            target = self._find_folder()
            is_behind = live is None or target != live.folder
            current = target.name if link.is_symlink() or (target / MANIFEST).is_file() else None
        # RuntimeError: a link that leads to itself.
        except (OSError, RuntimeError):
            pass
        since = self._update_behind_since(is_behind=is_behind)
        return LiveStatus(
            served=None if live is None else live.manifest.id,
            current=current,
            behind_seconds=time.monotonic() - since if since is not None else 0.0,
            is_refused=refusal is not None and since is not None,
            is_following=thread is not None and thread.is_alive(),
        )

    def _update_behind_since(self, *, is_behind: bool) -> float | None:
        """Return since when the open snapshot has differed from `current`; None when it does not.

        A later change of `current` does not restart it.
        """
        since = self._behind_since
        if not is_behind:
            since = None
        elif since is None:
            since = time.monotonic()
        self._behind_since = since
        return since

    def look(self) -> None:
        """Open the target of `current` if it is fit. If it is not and nothing is open, open the snapshot served last.

        An unfit snapshot raises nothing.
        """
        self._open_current()
        if self._open is None and self._last_served is not None:
            self._open_last_served(self._last_served)

    def _open_current(self) -> None:
        live, refusal = self._open, self._refusal
        try:
            folder = self._find_folder()
            # `current` names the open snapshot, so a refusal of another one no longer matters.
            if live is not None and live.folder == folder:
                self._refusal = self._behind_since = None
                return
            target = (folder, _find_last_change(folder))
        except (OSError, RuntimeError) as error:
            self._refuse((self._root, None), error, may_pass=True)
            return
        self._update_behind_since(is_behind=True)
        # Reading a large unfit snapshot again every second would cost the disk, so it waits or needs a change.
        if refusal is not None and refusal.target == target and time.monotonic() < refusal.again_at:
            return
        try:
            following = self._open_verified(folder)
        except SnapshotInvalidError as error:
            self._refuse(target, error, may_pass=False)
        except Exception as error:  # noqa: BLE001 - whatever the error, the open snapshot stays and this thread goes on
            self._refuse(target, error, may_pass=True)
        else:
            self._switch(following)

    def _open_last_served(self, link: Path) -> None:
        try:
            folder = link.resolve(strict=True)
            if folder in {self._tried_last, self._refusal and self._refusal.target[0]}:
                return
            self._tried_last = folder
            self._supersede(self._open_verified(folder))
        except Exception:  # noqa: BLE001 - it is missing or unfit too: nothing is open, as `hold` and `read_status` report
            return
        _log_event("warning", self._events["kept"], snapshot=folder.name)

    def _open_verified(self, folder: Path) -> _Open[Opened]:
        # The first snapshot may be opened unread: it was in use before the restart, and the server must be back at once.
        contents = self._contents if self._verifies_first or self._open is not None else False
        manifest = verify_once(
            folder,
            contents=contents,
            unread_folder=self._unread_folder,
            shared_folder=self._last_served and self._last_served.parent,
        )
        return _Open(folder, manifest, self._open_one(folder))

    def follow(self) -> None:
        """Check `current` now, then again and again in a thread, until `close()`."""
        self._thread = threading.Thread(target=self._follow, name="follow-current", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following and close the open snapshot; holders keep theirs."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._supersede(None)

    def _follow(self) -> None:
        # On Linux niceness belongs to a thread, so the requests of this process keep theirs.
        thread = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        self._look_safely()
        while not self._stopping.wait(self._look_seconds):
            self._look_safely()

    def _look_safely(self) -> None:
        """Check `current`. An error must not end this thread, because no later snapshot would ever be served."""
        try:
            self.look()
        except Exception as error:  # noqa: BLE001 - the docstring says why
            _log_event("error", "looking for another snapshot failed", exc_info=error)

    def _find_folder(self) -> Path:
        """Return the folder that should be live."""
        link = self._root / CURRENT
        return (link if link.is_symlink() else self._root).resolve()

    def _switch(self, following: _Open[Opened]) -> None:
        before = self.snapshot
        self._refusal = self._behind_since = None
        self._supersede(following)
        if self._last_served is not None:
            _write_link(following.folder, self._last_served)
        _log_event("info", self._events["live"], snapshot=following.manifest.id, before=before and before[0])

    def _supersede(self, following: _Open[Opened] | None) -> None:
        with self._lock:
            superseded, self._open = self._open, following
            if superseded is not None:
                superseded.is_superseded = True
            is_idle = superseded is not None and superseded.holders == 0
        if superseded is not None and is_idle:
            self._free(superseded)

    def _free(self, superseded: _Open[Opened]) -> None:
        try:
            superseded.opened.close()
        except Exception as error:  # noqa: BLE001 - the last holder is often a request that was answered already
            _log_event("error", "a snapshot could not be closed", snapshot=superseded.manifest.id, exc_info=error)
            return
        _log_event("info", self._events["freed"], snapshot=superseded.manifest.id)

    def _refuse(self, target: tuple[Path, int | None], error: Exception, *, may_pass: bool) -> None:
        """Remember a refusal and log it once. A damaged snapshot is not tried again until one of its files or `current` changes."""
        before = self._refusal
        is_known = before is not None and before.target == target and before.reason == str(error)
        seconds = float("inf")
        if may_pass:
            seconds = min(2 * before.seconds, LONGEST_WAIT_SECONDS) if before is not None and is_known else FIRST_WAIT_SECONDS
        self._refusal = _Refusal(target, str(error), seconds)
        if not is_known:
            live = self.snapshot
            _log_event("error", self._events["refused"], folder=str(target[0]), reason=str(error), live=live and live[0])


class _Hold(Generic[Opened]):
    """A block that holds the live snapshot. A class and not a generator, because every request passes here."""

    __slots__ = ("_held", "_live")

    def __init__(self, live: LiveSnapshot[Opened]) -> None:
        self._live = live

    def __enter__(self) -> Opened:
        self._held = self._live.acquire()
        return self._held.opened

    def __exit__(self, *_: object) -> None:
        self._live.release(self._held)


def _log_event(level: str, event: str, **facts: object) -> None:
    """Log an event. The caller is often a request that releases a snapshot, and a failing log must not fail it."""
    with suppress(Exception):
        getattr(log, level)(event, **facts)


def _write_link(folder: Path, link: Path) -> None:
    """Make `link` name `folder`. Errors are ignored: only a process that starts beside an unfit `current` misses the link."""
    following = link.with_name(f"{link.name}-{os.getpid()}")
    with suppress(OSError):
        following.unlink(missing_ok=True)
        # symlink(2) cannot replace a link; rename(2) does so atomically, so no other worker sees the name missing.
        following.symlink_to(folder)
        following.replace(link)


def _find_last_change(folder: Path) -> int:
    """Return when the last file below changed, in ns of the kernel's change time. A copy that repairs a file may keep its size and time."""
    newest = folder.stat().st_ctime_ns if folder.exists() else 0
    for file in list_tree(folder):
        # A copy in progress renames its temporary files away.
        with suppress(FileNotFoundError):
            newest = max(newest, file.lstat().st_ctime_ns)
    return newest
