"""The catalog that is live right now, one object per process: follows `current`, hands its snapshot to requests, frees it after the last.

A thread of its own looks at `current` every second or so. A new target is verified (presence and size of all files, contents of those that
requests read) before any request sees it; one that fails is refused, told once with the reason, and the snapshot in use stays. A request
holds one snapshot for its whole life. A superseded snapshot is closed, files and memory maps and all, when its last holder is done.

What must not live here: HTTP, questions (catalog_store/queries).
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import structlog

from catalog_api.problems import ApiError
from catalog_store.errors import SnapshotInvalidError
from catalog_store.reader import open_catalog
from catalog_store.snapshot import CURRENT, MANIFEST, SERVING_FOLDER, verify

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog

log = structlog.get_logger("catalog_api")

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 300.0
"""Between tries at a snapshot that could not be opened for a reason that may pass: the first, doubled to the longest."""
_NICENESS = 10
"""Of the thread that reads a new snapshot's files through: requests go first."""


class _Open:
    """An open snapshot and how many requests hold it. Counts change under the lock of its LiveCatalog only."""

    __slots__ = ("catalog", "holders", "is_superseded")

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.holders = 0
        self.is_superseded = False


class _Refusal:
    """A target that did not become live, why, and when to try again."""

    def __init__(self, target: tuple[Path, object], reason: str, seconds: float) -> None:
        self.target = target
        self.reason = reason
        self.seconds = seconds
        self.again_at = time.monotonic() + seconds


class LiveCatalog:
    """Hands out the open snapshot. `follow()` starts the thread, `close()` ends it."""

    def __init__(self, root: Path, *, verify_contents: bool = True, look_seconds: float = 1.0) -> None:
        """`root` is a catalog root (with `current`) or a snapshot folder; without `verify_contents` only sizes are checked."""
        self._root = root
        self._look_seconds = look_seconds
        self._contents: bool | str = SERVING_FOLDER if verify_contents else False
        self._lock = threading.Lock()
        self._open: _Open | None = None
        self._refusal: _Refusal | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self) -> _Hold:
        """`with live.hold() as catalog:` the live catalog, the same until the block ends; ApiError `catalog_unavailable` without one."""
        return _Hold(self)

    def take(self) -> _Open:
        """What `hold` holds: count one holder more."""
        with self._lock:
            held = self._open
            if held is None:
                raise ApiError("catalog_unavailable", "No catalog is published yet.", headers={"retry-after": "30"})
            held.holders += 1
        return held

    def give_back(self, held: _Open) -> None:
        """Count one holder less; the last one of a superseded snapshot frees it."""
        with self._lock:
            held.holders -= 1
            is_last = held.is_superseded and held.holders == 0
        if is_last:
            _free(held.catalog)

    @property
    def snapshot(self) -> tuple[str, str] | None:
        """Id and time of making (RFC 3339) of the live snapshot; None while there is none."""
        live = self._open
        return None if live is None else (live.catalog.snapshot_id, live.catalog.manifest.created_at)

    @property
    def refused(self) -> str | None:
        """Why the snapshot that `current` names is not the live one; None when it is."""
        return None if self._refusal is None else self._refusal.reason

    def look(self) -> None:
        """Make what `current` names the live snapshot, if it is not and can be. Never raises for a bad snapshot."""
        try:
            target = self._target()
        except OSError as error:
            self._refuse((self._root, None), error, may_pass=True)
            return
        live, refusal = self._open, self._refusal
        if live is not None and live.catalog.folder == target[0]:
            self._refusal = None
            return
        if refusal is not None and refusal.target == target and time.monotonic() < refusal.again_at:
            return
        try:
            verify(target[0], contents=self._contents)
            catalog = open_catalog(target[0])
        except SnapshotInvalidError as error:
            self._refuse(target, error, may_pass=False)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it: the snapshot in use stays, and this thread lives
            self._refuse(target, error, may_pass=True)
        else:
            self._switch(catalog)

    def follow(self) -> None:
        """Look now, then again and again in a thread, until `close()`."""
        self._thread = threading.Thread(target=self._follow, name="follow-current", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following and free the snapshot; requests under way keep theirs."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._supersede(None)

    def _follow(self) -> None:
        thread = threading.get_native_id()  # on Linux niceness is a thread's own
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
        self.look()
        while not self._stopping.wait(self._look_seconds):
            self.look()

    def _target(self) -> tuple[Path, object]:
        """The folder that should be live, and what tells a manifest that was mended from the one that was refused."""
        link = self._root / CURRENT
        folder = (link if link.is_symlink() else self._root).resolve()
        manifest = folder / MANIFEST
        facts = manifest.stat() if manifest.exists() else None
        return folder, facts and (facts.st_ino, facts.st_mtime_ns, facts.st_size)

    def _switch(self, catalog: Catalog) -> None:
        before = self.snapshot
        self._refusal = None
        self._supersede(_Open(catalog))
        log.info("snapshot is live", snapshot=catalog.snapshot_id, before=before and before[0])

    def _supersede(self, following: _Open | None) -> None:
        with self._lock:
            superseded, self._open = self._open, following
            if superseded is not None:
                superseded.is_superseded = True
            is_idle = superseded is not None and superseded.holders == 0
        if superseded is not None and is_idle:
            _free(superseded.catalog)

    def _refuse(self, target: tuple[Path, object], error: Exception, *, may_pass: bool) -> None:
        """Remember and tell once. A damaged snapshot is not tried again until it or `current` changes."""
        before = self._refusal
        is_known = before is not None and before.target == target and before.reason == str(error)
        seconds = float("inf")
        if may_pass:
            seconds = min(2 * before.seconds, LONGEST_WAIT_SECONDS) if before is not None and is_known else FIRST_WAIT_SECONDS
        self._refusal = _Refusal(target, str(error), seconds)
        if not is_known:
            live = self.snapshot
            log.error("snapshot refused", folder=str(target[0]), reason=str(error), live=live and live[0])


class _Hold:
    """A block that holds a snapshot. A class, not a generator: every request passes here."""

    __slots__ = ("_held", "_live")

    def __init__(self, live: LiveCatalog) -> None:
        self._live = live

    def __enter__(self) -> Catalog:
        self._held = self._live.take()
        return self._held.catalog

    def __exit__(self, *_: object) -> None:
        self._live.give_back(self._held)


def _free(catalog: Catalog) -> None:
    catalog.close()
    log.info("snapshot is freed", snapshot=catalog.snapshot_id)
