"""What is live right now, one object per process: follows `current`, hands what it opened to whoever asks, frees it after the last.

A thread of its own looks at `current` every second or so. A new target is verified (presence and size of all files, contents of those that
are read) before anybody sees it; one that fails is refused, told once with the reason, and what is in use stays. A holder holds one
snapshot to the end of its block. What was superseded is closed, files and memory maps and all, when its last holder is done.

A process that starts while `current` names an unfit snapshot opens the one that the server served last, if it is told where that is noted
(`last_served`): otherwise a worker that is started anew would refuse every request beside workers that still answer.

    live = LiveSnapshot(root, open_catalog, what="snapshot", contents=True, absent=...)
    live.follow()
    with live.hold() as catalog: ...

What must not live here: what is opened (reader.py, the recognition index), HTTP, questions (catalog_store/queries).
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import structlog

from catalog_store.errors import SnapshotInvalidError
from catalog_store.snapshot import CURRENT, MANIFEST, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.snapshot import Manifest

log = structlog.get_logger("catalog_store")

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 300.0
"""Between tries at a snapshot that could not be opened for a reason that may pass: the first, doubled to the longest."""
_NICENESS = 10
"""Of the thread that reads a new snapshot's files through: requests go first."""


class _Closeable(Protocol):
    def close(self) -> None:
        """Give files and memory back."""


Opened = TypeVar("Opened", bound=_Closeable)


class Standing(NamedTuple):
    """How what is served stands against what `current` names."""

    served: str | None
    """Id of the snapshot that is open; None while there is none."""
    current: str | None
    """Id of the snapshot that `current` names; None when the link is missing or unreadable."""
    behind_seconds: float
    """For how long they have differed; 0 while they agree."""
    is_refused: bool
    """Whether `current` was looked at and found unfit; the log says why."""
    is_following: bool
    """Whether the thread that looks at `current` lives."""


class _Open(Generic[Opened]):
    """What was opened and how many hold it. Counts change under the lock of its LiveSnapshot only."""

    __slots__ = ("folder", "holders", "is_superseded", "manifest", "opened")

    def __init__(self, folder: Path, manifest: Manifest, opened: Opened) -> None:
        self.folder = folder
        self.manifest = manifest
        self.opened = opened
        self.holders = 0
        self.is_superseded = False


class _Refusal:
    """A target that did not become live, why, and when to try again."""

    def __init__(self, target: tuple[Path, int | None], reason: str, seconds: float) -> None:
        self.target = target
        self.reason = reason
        self.seconds = seconds
        self.again_at = time.monotonic() + seconds


class LiveSnapshot(Generic[Opened]):
    """Hands out what is open. `follow()` starts the thread, `close()` ends it."""

    def __init__(
        self,
        root: Path,
        open_: Callable[[Path], Opened],
        *,
        what: str,
        contents: bool | str,
        besides: str = "",
        reads_first: bool = True,
        absent: Callable[[], Exception],
        look_seconds: float = 1.0,
        last_served: Path | None = None,
    ) -> None:
        """`root` is a catalog root (with `current`) or a snapshot folder; `open_` opens a snapshot's folder.

        `what` names in the log what is opened; `contents` and `besides` are as in `snapshot.verify`, without `reads_first` sizes do
        for the first one that is opened; `absent` makes what is raised while nothing is open. `last_served` is a link that names the
        snapshot opened last; all processes of one server share it, and replace it.
        """
        self._root = root
        self._open_one = open_
        self._says = {
            "live": f"{what} is live",
            "freed": f"{what} is freed",
            "refused": f"{what} refused",
            "kept": f"{what} served last is live",
        }
        self._contents = contents
        self._besides = besides
        self._reads_first = reads_first
        self._absent = absent
        self._look_seconds = look_seconds
        self._last_served = last_served
        self._tried_last: Path | None = None
        """The folder that `last_served` named at the last try: an unfit one is read through once, not every second."""
        self._lock = threading.Lock()
        self._open: _Open[Opened] | None = None
        self._refusal: _Refusal | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._behind_since: float | None = None
        """Since when another snapshot than `current` names, or none, has been open."""

    def hold(self) -> _Hold[Opened]:
        """`with live.hold() as opened:` what is live, the same until the block ends; the `absent` error when nothing is."""
        return _Hold(self)

    def take(self) -> _Open[Opened]:
        """What `hold` holds: count one holder more."""
        with self._lock:
            held = self._open
            if held is None:
                raise self._absent()
            held.holders += 1
        return held

    def give_back(self, held: _Open[Opened]) -> None:
        """Count one holder less; the last one of what was superseded frees it."""
        with self._lock:
            held.holders -= 1
            is_last = held.is_superseded and held.holders == 0
        if is_last:
            self._free(held)

    @property
    def snapshot(self) -> tuple[str, str] | None:
        """Id and time of making (RFC 3339) of the live snapshot; None while there is none."""
        live = self._open
        return None if live is None else (live.manifest.id, live.manifest.created_at)

    @property
    def refused(self) -> str | None:
        """Why the snapshot that `current` names is not the live one; None when it is."""
        return None if self._refusal is None else self._refusal.reason

    def standing(self) -> Standing:
        """What is served against what `current` names, read anew. From any thread; never raises, also when the follower has died."""
        live, refusal, thread = self._open, self._refusal, self._thread
        link = self._root / CURRENT
        current: str | None = None
        is_behind = True
        try:
            target = self._folder()
            is_behind = live is None or target != live.folder
            current = target.name if link.is_symlink() or (target / MANIFEST).is_file() else None
        except (OSError, RuntimeError):  # the latter: a link that leads to itself
            pass
        since = self._note_behind(is_behind=is_behind)
        return Standing(
            served=None if live is None else live.manifest.id,
            current=current,
            behind_seconds=time.monotonic() - since if since is not None else 0.0,
            is_refused=refusal is not None and since is not None,
            is_following=thread is not None and thread.is_alive(),
        )

    def _note_behind(self, *, is_behind: bool) -> float | None:
        """Since when what is open has not been what `current` names; None when it is. A `current` that moves on begins nothing anew."""
        since = self._behind_since
        if not is_behind:
            since = None
        elif since is None:
            since = time.monotonic()
        self._behind_since = since
        return since

    def look(self) -> None:
        """Open the snapshot that `current` names, if it is fit; if not, and nothing is open, the one that was served last.

        Never raises for a bad snapshot.
        """
        self._open_current()
        if self._open is None and self._last_served is not None:
            self._open_last_served(self._last_served)

    def _open_current(self) -> None:
        live, refusal = self._open, self._refusal
        try:
            folder = self._folder()
            if live is not None and live.folder == folder:
                self._refusal = self._behind_since = None
                return
            target = (folder, _last_change(folder))
        except (OSError, RuntimeError) as error:
            self._refuse((self._root, None), error, may_pass=True)
            return
        self._note_behind(is_behind=True)
        if refusal is not None and refusal.target == target and time.monotonic() < refusal.again_at:
            return
        try:
            following = self._verified(folder)
        except SnapshotInvalidError as error:
            self._refuse(target, error, may_pass=False)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it: what is in use stays, and this thread lives
            self._refuse(target, error, may_pass=True)
        else:
            self._switch(following)

    def _open_last_served(self, link: Path) -> None:
        try:
            folder = link.resolve(strict=True)
            if folder in {self._tried_last, self._refusal and self._refusal.target[0]}:
                return
            self._tried_last = folder
            self._supersede(self._verified(folder))
        except Exception:  # noqa: BLE001 - there is none, or it is unfit as well: nothing is open, which `hold` and `standing` say
            return
        _tell("warning", self._says["kept"], snapshot=folder.name)

    def _verified(self, folder: Path) -> _Open[Opened]:
        contents = self._contents if self._reads_first or self._open is not None else False
        manifest = verify(folder, contents=contents, besides=self._besides)
        return _Open(folder, manifest, self._open_one(folder))

    def follow(self) -> None:
        """Look now, then again and again in a thread, until `close()`."""
        self._thread = threading.Thread(target=self._follow, name="follow-current", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following and free what is open; holders keep theirs."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._supersede(None)

    def _follow(self) -> None:
        thread = threading.get_native_id()  # on Linux niceness is a thread's own
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        self._look_and_live()
        while not self._stopping.wait(self._look_seconds):
            self._look_and_live()

    def _look_and_live(self) -> None:
        """Look; whatever goes wrong, there is a next time: without this thread no later snapshot is ever served."""
        try:
            self.look()
        except Exception as error:  # noqa: BLE001 - see above
            _tell("error", "looking for another snapshot failed", exc_info=error)

    def _folder(self) -> Path:
        """The folder that should be live."""
        link = self._root / CURRENT
        return (link if link.is_symlink() else self._root).resolve()

    def _switch(self, following: _Open[Opened]) -> None:
        before = self.snapshot
        self._refusal = self._behind_since = None
        self._supersede(following)
        if self._last_served is not None:
            _note(following.folder, self._last_served)
        _tell("info", self._says["live"], snapshot=following.manifest.id, before=before and before[0])

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
        except Exception as error:  # noqa: BLE001 - the last holder is often a request, which is answered already
            _tell("error", "a snapshot could not be closed", snapshot=superseded.manifest.id, exc_info=error)
            return
        _tell("info", self._says["freed"], snapshot=superseded.manifest.id)

    def _refuse(self, target: tuple[Path, int | None], error: Exception, *, may_pass: bool) -> None:
        """Remember and tell once. A damaged snapshot is not tried again until a file of it or `current` changes."""
        before = self._refusal
        is_known = before is not None and before.target == target and before.reason == str(error)
        seconds = float("inf")
        if may_pass:
            seconds = min(2 * before.seconds, LONGEST_WAIT_SECONDS) if before is not None and is_known else FIRST_WAIT_SECONDS
        self._refusal = _Refusal(target, str(error), seconds)
        if not is_known:
            live = self.snapshot
            _tell("error", self._says["refused"], folder=str(target[0]), reason=str(error), live=live and live[0])


class _Hold(Generic[Opened]):
    """A block that holds what is live. A class, not a generator: every request passes here."""

    __slots__ = ("_held", "_live")

    def __init__(self, live: LiveSnapshot[Opened]) -> None:
        self._live = live

    def __enter__(self) -> Opened:
        self._held = self._live.take()
        return self._held.opened

    def __exit__(self, *_: object) -> None:
        self._live.give_back(self._held)


def _tell(level: str, event: str, **facts: object) -> None:
    """Log; a holder that gives a snapshot back is a request, and a log that fails must not fail it."""
    with suppress(Exception):
        getattr(log, level)(event, **facts)


def _note(folder: Path, link: Path) -> None:
    """Have `link` name `folder`. Errors are passed over: only a process that starts beside an unfit `current` misses the link."""
    following = link.with_name(f"{link.name}-{os.getpid()}")
    with suppress(OSError):
        following.unlink(missing_ok=True)
        following.symlink_to(folder)
        following.replace(link)


def _last_change(folder: Path) -> int:
    """When the last file below changed, in ns by the kernel's own clock: a copy that mends a file may keep its size and time."""
    newest = folder.stat().st_ctime_ns if folder.exists() else 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # of a copy that is under way
            newest = max(newest, file.lstat().st_ctime_ns)
    return newest
