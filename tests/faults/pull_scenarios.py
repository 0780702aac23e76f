"""Pulls of a serving node under faults: invariants after any failure and any next operation.

`current` names a whole snapshot, and after an error the one before; nothing half-written has a snapshot's name; the next pull works and
leaves nothing behind.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from catalog_store import remote_catalog
from catalog_store.errors import CatalogError
from catalog_store.publisher import prune, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import verify
from catalog_store.snapshot_pull import pull
from catalog_store.verified_files import MARKS_FOLDER
from tests.faults.injection import Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEPT_NAMES = {".publish.lock", ".pull.lock", MARKS_FOLDER, "current", "snapshots"}


def _pull(folder: Path) -> str:
    remote_catalog.FIRST_PAUSE_SECONDS = 0
    return pull(str(folder / "builder"), folder / "node").snapshot


def _live(folder: Path) -> str:
    with open_catalog(folder / "node") as catalog:
        assert catalog.read_track_body(1)
        return catalog.snapshot_id


def _require_sound(folder: Path) -> None:
    link = folder / "node" / "current"
    assert link.is_symlink(), "nothing is live"
    assert link.resolve().is_dir(), f"current dangles: it names {link.readlink()}"
    for path in (folder / "node" / "snapshots").iterdir():
        if not path.name.startswith("."):
            try:
                verify(path, role="serving")
            except CatalogError as error:
                raise AssertionError(f"{path.name} is visible and not whole: {error}") from error


def _pull_again(folder: Path) -> None:
    assert _pull(folder) == "second"
    assert _live(folder) == "second"
    _require_sound(folder)
    names = {path.name for path in (folder / "node").iterdir()} - KEPT_NAMES
    names |= {path.name for path in (folder / "node" / "snapshots").iterdir()} - {"first", "second"}
    assert not names, f"left behind: {sorted(names)}"


class Pulling(Scenario):
    """The pull of the second snapshot onto a node that serves the first one."""

    def __init__(self, template: Path) -> None:
        """Take the `template` that `catalog_scenarios.make_template` wrote."""
        self.template = template

    def prepare(self, folder: Path) -> None:
        shutil.copytree(self.template / "catalog", folder / "builder", symlinks=True)
        rollback(folder / "builder", "first")
        _pull(folder)
        rollback(folder / "builder", "second")

    def watched(self, folder: Path) -> Path:
        return folder / "node"

    def operate(self, folder: Path) -> str:
        return _pull(folder)

    def check(self, folder: Path, outcome: Outcome) -> None:
        _require_sound(folder)
        assert (folder / "node" / "snapshots" / "first").is_dir(), "the snapshot that was live is lost"
        allowed = {outcome.answer} if outcome.answer else {"first"} if outcome.error else {"first", "second"}
        assert _live(folder) in allowed, f"{_live(folder)} is live: {outcome}"

    def operate_next(self, folder: Path) -> None:
        _pull_again(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        def prune_first(copy: Path) -> None:
            live = _live(copy)
            prune(copy / "node", 1)
            assert _live(copy) == live
            _pull_again(copy)

        def roll_back_first(copy: Path) -> None:
            rollback(copy / "node", "first")
            assert _live(copy) == "first"
            _pull_again(copy)

        def follow_the_builder_back(copy: Path) -> None:
            rollback(copy / "builder", "first")
            assert _pull(copy) == "first"
            assert _live(copy) == "first"
            _require_sound(copy)
            rollback(copy / "builder", "second")
            _pull_again(copy)

        yield "pull", _pull_again
        yield "prune, pull", prune_first
        yield "rollback, pull", roll_back_first
        yield "pull of the first, pull", follow_the_builder_back
