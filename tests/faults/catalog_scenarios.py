"""Publish, roll back, prune and follow a catalog under faults: invariants after any failure and any next operation.

`current` names a whole snapshot; nothing half-written has a snapshot's name; live and acknowledged snapshots stay until pruned; ids
that it gave out are given out by no later one; what comes next works and leaves nothing behind.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from catalog_store.errors import CatalogError, NoSnapshotError, SnapshotExistsError
from catalog_store.live_snapshot import LiveSnapshot
from catalog_store.log import log_json
from catalog_store.published_snapshots import list_snapshots
from catalog_store.publisher import prune, publish, rollback
from catalog_store.reader import Catalog, open_catalog
from catalog_store.snapshot import verify
from catalog_store.verified_files import MARKS_FOLDER
from tests.catalog_store.catalog_tables import make_tables
from tests.faults import system_calls
from tests.faults.injection import Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RECORDINGS = 3
NEXT_ID = {"first": 10, "second": 20, "third": 30, "fourth": 25, "fifth": 26}
"""Next ids in the manifest of each publish. The last two are lower than those before: ids that were given out must count."""
KEPT_NAMES = {".publish.lock", ".rollback", MARKS_FOLDER, "current", "snapshots"}


def _publish(folder: Path, snapshot_id: str) -> None:
    tables = {path.name: path for path in (folder / "tables").iterdir()}
    publish(tables, folder / "catalog", snapshot_id=snapshot_id, next_ids={"recording": NEXT_ID[snapshot_id]})


def _live(folder: Path) -> str:
    with open_catalog(folder / "catalog") as catalog:
        verify(catalog.folder)
        assert catalog.read_track_body(1)
        return catalog.snapshot_id


def _require_sound(folder: Path) -> set[str]:
    """Return the ids of all snapshots, and require that each is whole."""
    root = folder / "catalog"
    link = root / "current"
    assert link.is_symlink(), "nothing is live"
    assert link.resolve().is_dir(), f"current dangles: it names {link.readlink()}, which is gone"
    live = _live(folder)
    assert live == link.readlink().name
    found = {path.name for path in (root / "snapshots").iterdir() if not path.name.startswith(".")}
    for name in found:
        try:
            verify(root / "snapshots" / name)
        except CatalogError as error:
            raise AssertionError(f"{name} is visible and not whole: {error}") from error
    assert {snapshot.id for snapshot in list_snapshots(root)} == found
    return found


def _require_tidy(folder: Path) -> None:
    root = folder / "catalog"
    names = {path.name for path in root.iterdir()} - KEPT_NAMES
    names |= {path.name for path in (root / "snapshots").iterdir() if path.name.startswith(".")}
    snapshots = {path.name for path in (root / "snapshots").iterdir()}
    marks = {path.name for path in (root / MARKS_FOLDER).iterdir()} if (root / MARKS_FOLDER).is_dir() else set()
    names |= marks - {"lock", *(f"{name}.json" for name in snapshots)}
    assert not names, f"left behind: {sorted(names)}"


def _next_id(folder: Path, snapshot_id: str) -> int:
    return json.loads((folder / "catalog" / "snapshots" / snapshot_id / "manifest.json").read_text())["next_ids"]["recording"]


def make_template(folder: Path) -> None:
    """Write tables, and a catalog that was published from them twice."""
    make_tables(folder / "tables", RECORDINGS)
    for snapshot_id in CatalogScenario.before:
        _publish(folder, snapshot_id)


class CatalogScenario(Scenario):
    """A catalog of two snapshots, and every operation that an operator may do next."""

    before = ("first", "second")
    may_go: frozenset[str] = frozenset()
    """Snapshots that the operation may remove."""

    def __init__(self, template: Path) -> None:
        """Take the `template` that `make_template` wrote."""
        self.template = template

    def prepare(self, folder: Path) -> None:
        shutil.copytree(self.template, folder, symlinks=True, dirs_exist_ok=True)

    def allowed_live(self) -> set[str]:
        """Return the snapshots that may be live after a fault: the old one and the intended one."""
        raise NotImplementedError

    def operate_next(self, folder: Path) -> None:
        for snapshot_id in ("second", _live(folder)):
            rollback(folder / "catalog", snapshot_id)
        _require_sound(folder)

    def check(self, folder: Path, outcome: Outcome) -> None:
        found = _require_sound(folder)
        live = _live(folder)
        assert live in ({outcome.answer} if outcome.answer else self.allowed_live()), f"{live} is live, the answer was {outcome.answer}"
        lost = set(self.before) - found - self.may_go
        assert not lost, f"lost: {lost}"

    def next_operations(self, folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        was_live = {*self.before, _live(folder)} - self.may_go
        there = sorted(_require_sound(folder))

        def publish_again(copy: Path) -> None:
            live = _live(copy)
            try:
                _publish(copy, "third")
            except SnapshotExistsError:
                assert "third" in there
                _publish(copy, "fourth")
            else:
                assert live != "third", "an id that was live was published once more"
            _require_after_publish(copy, was_live)

        def prune_all(copy: Path) -> None:
            live = _live(copy)
            prune(copy / "catalog", 1)
            left = _require_sound(copy)  # the live one and the newest, where they differ
            assert live in left, f"{live} was live and is gone"
            assert len(left) <= 2, f"{sorted(left)} are left"
            assert _live(copy) == live, f"{_live(copy)} is live, {live} was"
            _require_tidy(copy)

        yield "publish", publish_again
        yield "prune", prune_all
        for snapshot_id in there:

            def roll_back_and_publish(copy: Path, snapshot_id: str = snapshot_id) -> None:
                rollback(copy / "catalog", snapshot_id)
                assert _live(copy) == snapshot_id
                _publish(copy, "fourth")
                _require_after_publish(copy, was_live | {snapshot_id})

            def roll_back_and_prune(copy: Path, snapshot_id: str = snapshot_id) -> None:
                rollback(copy / "catalog", snapshot_id)
                assert _live(copy) == snapshot_id
                prune_all(copy)
                _publish(copy, "fifth")
                _require_after_publish(copy, {snapshot_id})

            yield f"rollback to {snapshot_id}, publish", roll_back_and_publish
            yield f"rollback to {snapshot_id}, prune, publish", roll_back_and_prune


def _require_after_publish(folder: Path, was_live: set[str]) -> None:
    found = _require_sound(folder)
    live = _live(folder)
    lost = was_live - found
    assert not lost, f"{sorted(lost)} had been live and is gone"
    highest = max(NEXT_ID[snapshot_id] for snapshot_id in was_live)
    assert _next_id(folder, live) >= highest, f"{live} gives out ids from {_next_id(folder, live)}, {highest - 1} was given out"
    _require_tidy(folder)


class Publishing(CatalogScenario):
    """The publish of the third snapshot."""

    def operate(self, folder: Path) -> str:
        _publish(folder, "third")
        return "third"

    def allowed_live(self) -> set[str]:
        return {"second", "third"}


class RollingBack(CatalogScenario):
    """A rollback to the first snapshot."""

    def operate(self, folder: Path) -> str:
        rollback(folder / "catalog", "first")
        return "first"

    def allowed_live(self) -> set[str]:
        return {"first", "second"}


class Pruning(CatalogScenario):
    """The removal of all snapshots but the newest, and of the remains of a killed publish."""

    may_go = frozenset({"first"})

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        left = folder / "catalog" / "snapshots" / ".building-ninth"
        shutil.copytree(folder / "catalog" / "snapshots" / "first" / "serving" / "lists", left)

    def operate(self, folder: Path) -> str:
        prune(folder / "catalog", 1)
        return "second"

    def check(self, folder: Path, outcome: Outcome) -> None:
        super().check(folder, outcome)
        if outcome.answer:
            # The remains of a killed publish may stay with a warning; the next operation has to remove them.
            assert _require_sound(folder) == {"second"}

    def allowed_live(self) -> set[str]:
        return {"second"}

    def outcome_of(self, _marks: list[str]) -> Outcome:
        """Return an empty outcome. A removal promises nothing that outlives a loss of power."""
        return Outcome()


class Following(CatalogScenario):
    """A server that follows `current` and logs. After the fault, it serves the next snapshot that goes live."""

    is_killed = False

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        _publish(folder, "third")
        _switch(folder / "catalog", "first")

    def watched(self, folder: Path) -> Path:
        return folder / "catalog" / "snapshots"

    def operate(self, folder: Path) -> str:
        """Follow from `first` to `second` under the fault and to `third` after it. Return the last id served."""
        root = folder / "catalog"
        sys.stderr = _open_log(self.watched(folder))
        log_json("info")
        live = LiveSnapshot(root, open_catalog, what="snapshot", contents=True, absent=lambda: NoSnapshotError("none"), look_seconds=0.01)
        try:
            live.follow()
            self._follow(live, "first", folder, 0)
            logged = self._log_bytes(folder)
            _switch(root, "second")
            self._follow(live, "second", folder, logged)
            system_calls.disarm()
            _switch(root, "third")
            assert _comes(live, "third", 300), f"{live.snapshot} is served, current is third, and the last refusal was {live.refused}"
            return "third"
        finally:
            system_calls.disarm()
            live.close()
            with suppress(OSError, ValueError):  # what it could not write
                sys.stderr.close()

    def _follow(self, live: LiveSnapshot[Catalog], name: str, folder: Path, logged: int) -> None:
        """Wait for a snapshot and for its log line, which follows it. The log then exceeds `logged` bytes."""
        if _comes(live, name, self.patience_seconds):
            _until(lambda: self._log_bytes(folder) > logged, self.patience_seconds)

    def _log_bytes(self, folder: Path) -> int:
        """Return the size of the log, from a call that is not counted."""
        return (self.watched(folder) / ".server.log").stat().st_size

    def operate_next(self, folder: Path) -> None:
        """Do nothing: the server has already gone on."""

    def check(self, folder: Path, outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        _require_sound(folder)

    def next_operations(self, *_: object) -> Iterator[tuple[str, Callable[[Path], None]]]:
        """Yield nothing: a follower changes nothing in the catalog."""
        yield from ()


def _open_log(folder: Path) -> TextIO:
    """Open the log as others open a server's standard error. The second try succeeds when a fault meets the first."""
    with suppress(OSError):
        return (folder / ".server.log").open("w", buffering=1)
    system_calls.disarm()
    return (folder / ".server.log").open("w", buffering=1)


def _switch(root: Path, snapshot_id: str) -> None:
    """Switch `current` as the publisher does, without its reads below the watched folder."""
    (root / ".next").symlink_to(f"snapshots/{snapshot_id}")
    (root / ".next").rename(root / "current")


def _comes(live: LiveSnapshot[Catalog], snapshot_id: str, seconds: int) -> bool:
    return _until(lambda: live.snapshot is not None and live.snapshot[0] == snapshot_id, seconds)


def _until(is_so: Callable[[], bool], seconds: int) -> bool:
    for _ in range(100 * seconds):
        if is_so():
            return True
        time.sleep(0.01)
    return False
