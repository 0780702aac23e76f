"""Time travel: the kept builds of a catalog, open for lookups with `as_of`.

`as_of` names a build, or a time: then the build that was live at that time. The history of builds in the live snapshot tells whether a
build in between is gone; an earlier one would answer wrongly then, so the request is refused. Out of scope: which builds are kept
(`python -m pipeline prune`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from account_store.clock import format_rfc3339
from catalog_api.live_catalog import LiveCatalog
from catalog_api.problems import ApiError
from catalog_store.changes import read_builds
from catalog_store.published_snapshots import list_snapshots
from catalog_store.snapshot import SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from catalog_store.reader import Catalog

MOST_OPEN = 3
"""Earlier builds that a worker holds open: each maps its files."""
_LIST_SECONDS = 5.0
"""Time for which the list of kept builds is remembered; listing reads each manifest."""


class KeptBuild(NamedTuple):
    """A build that can answer."""

    id: str
    created_at: datetime


class PastCatalogs:
    """The kept builds below one catalog root. Thread-safe; every method blocks."""

    def __init__(self, root: Path, live: LiveCatalog) -> None:
        """`live` answers for its own build."""
        self._root = root
        self._live = live
        self._lock = threading.Lock()
        self._open: OrderedDict[str, LiveCatalog] = OrderedDict()
        self._kept: list[KeptBuild] = []
        self._listed_at = float("-inf")

    @contextmanager
    def hold(self, as_of: str) -> Iterator[Catalog]:
        """Hold the build that `as_of` means until the block ends; ApiError `build_not_kept`."""
        with ExitStack() as held:
            live = self._live.snapshot
            if live is not None and as_of == live[0]:
                yield held.enter_context(self._live.hold())
                return
            # Under the lock, so that no other thread closes the catalog between the look-up and the hold.
            with self._lock:
                build = self._find(as_of)
                opened = self._live if live is not None and build == live[0] else self._open_build(build)
                catalog = held.enter_context(opened.hold())
            yield catalog

    def close(self) -> None:
        """Close all; holders keep theirs."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _open_build(self, build: str) -> LiveCatalog:
        opened = self._open.pop(build, None)
        if opened is None:
            opened = LiveCatalog(self._root / SNAPSHOTS / build, what="earlier snapshot", verify_contents=False)
            opened.look()
            if opened.snapshot is None:
                reason = opened.refused
                opened.close()
                raise self._refuse(f"The build {build} cannot be read by this server: {reason}.")
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open[build] = opened
        return opened

    def _find(self, as_of: str) -> str:
        kept = self._list_kept()
        if as_of in {build.id for build in kept}:
            return as_of
        moment = parse_moment(as_of)
        if moment is None:
            raise self._refuse(f"The build {as_of} is not kept, or never existed.")
        earlier = [build for build in kept if build.created_at <= moment]
        if not earlier:
            raise self._refuse(f"No build of {as_of} or before is kept.")
        found = earlier[-1].id
        builds = read_builds(self._root / SNAPSHOTS / kept[-1].id)
        following = builds[builds.index(found) + 1] if found in builds[:-1] else None
        if following is not None and following not in {build.id for build in kept}:
            raise self._refuse(f"The build that was live at {as_of} may be {following}, which is not kept.")
        return found

    def _list_kept(self) -> list[KeptBuild]:
        if time.monotonic() > self._listed_at + _LIST_SECONDS:
            found = [(one.id, datetime.fromisoformat(one.manifest.created_at)) for one in list_snapshots(self._root)]
            self._kept, self._listed_at = [KeptBuild(*one) for one in found], time.monotonic()
        return self._kept

    def _refuse(self, detail: str) -> ApiError:
        kept = [{"id": build.id, "created_at": format_rfc3339(build.created_at)} for build in self._list_kept()]
        return ApiError("build_not_kept", detail, members={"builds": kept})


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a date or time means, the end of the day for a date; None for anything else, such as the id of a build."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) == len("2026-11-27"):
        # Not the next midnight: the last day of the calendar has none.
        return found.replace(hour=23, minute=59, second=59, microsecond=999_999, tzinfo=UTC)
    return None if found.tzinfo is None else found
