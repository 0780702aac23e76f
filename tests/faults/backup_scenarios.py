"""Backups and restores under faults: invariants after any failure and any next operation.

A backup that was whole stays whole until the next one is. A restore that failed can be repeated.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from account_store import Accounts
from catalog_store import remote_catalog
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.publisher import rollback
from catalog_store.snapshot import verify
from pipeline.backup import back_up, restore, verify_backup
from pipeline.paths import BuildPaths
from tests.faults.injection import Outcome, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.backup import Backup


def _back_up(folder: Path) -> str:
    remote_catalog.FIRST_PAUSE_SECONDS = 0
    saved = back_up(folder / "saved", paths=BuildPaths(folder / "catalog"), accounts=_url(folder, "accounts"), report=_ignore)
    return saved.snapshots[-1].id


def _restore(folder: Path, name: str, *, replaces: bool) -> Backup:
    remote_catalog.FIRST_PAUSE_SECONDS = 0
    place = folder / name
    paths = BuildPaths(place / "catalog")
    return restore(folder / "saved", paths=paths, accounts=_url(place, "accounts"), replaces=replaces, report=_ignore)


def _url(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name / 'accounts.db'}"


def _ignore(_line: str) -> None:
    return


def _require_restored(place: Path, snapshot_id: str) -> None:
    live = read_live_snapshot(place / "catalog")
    verify(live.folder)
    assert live.id == snapshot_id
    accounts = Accounts.open(_url(place, "accounts"))
    try:
        assert [account.name for account in accounts.list_all()] == ["saved"]
    finally:
        accounts.close()


def _prepare(template: Path, folder: Path) -> None:
    """Make a catalog and accounts, and a backup in which `second` and `first` are saved; `second` is live in the catalog now."""
    os.environ.pop("ACCOUNT_SECRET_KEY_FILE", None)
    shutil.copytree(template / "catalog", folder / "catalog", symlinks=True)
    (folder / "catalog" / "overrides.yaml").write_text("must_link: []\n")
    accounts = Accounts.open(_url(folder, "accounts"))
    accounts.create("saved")
    accounts.close()
    rollback(folder / "catalog", "first")
    _back_up(folder)
    rollback(folder / "catalog", "second")


class BackingUp(Scenario):
    """A second backup into the folder of the first one."""

    def __init__(self, template: Path) -> None:
        """Take the `template` that `catalog_scenarios.make_template` wrote."""
        self.template = template

    def prepare(self, folder: Path) -> None:
        _prepare(self.template, folder)

    def watched(self, folder: Path) -> Path:
        return folder / "saved"

    def operate(self, folder: Path) -> str:
        return _back_up(folder)

    def check(self, folder: Path, outcome: Outcome) -> None:
        saved = verify_backup(folder / "saved", _ignore)
        if outcome.answer:
            assert saved.snapshots[-1].id == "second", f"the backup is of {saved.snapshots}"

    def operate_next(self, folder: Path) -> None:
        self._back_up_again(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        def restore_first(copy: Path) -> None:
            saved = _restore(copy, "elsewhere", replaces=False)
            _require_restored(copy / "elsewhere", saved.snapshots[-1].id)

        yield "back up", self._back_up_again
        yield "restore", restore_first

    def _back_up_again(self, folder: Path) -> None:
        assert _back_up(folder) == "second"
        verify_backup(folder / "saved", _ignore)
        left = {path.name for path in (folder / "saved").iterdir() if not path.name.startswith("files-")}
        assert left == {"backup.json", "catalog", ".lock"}, f"left behind: {left}"
        assert len(list((folder / "saved").glob("files-*"))) == 1
        assert {path.name for path in (folder / "saved" / "catalog" / "snapshots").iterdir()} == {"second"}


class Restoring(Scenario):
    """A restore into places that hold nothing."""

    def __init__(self, template: Path) -> None:
        """Take the `template` that `catalog_scenarios.make_template` wrote."""
        self.template = template

    def prepare(self, folder: Path) -> None:
        _prepare(self.template, folder)
        (folder / "elsewhere").mkdir()

    def watched(self, folder: Path) -> Path:
        return folder / "elsewhere"

    def operate(self, folder: Path) -> str:
        return _restore(folder, "elsewhere", replaces=False).snapshots[-1].id

    def check(self, folder: Path, outcome: Outcome) -> None:
        verify_backup(folder / "saved", _ignore)
        if outcome.answer:
            _require_restored(folder / "elsewhere", "first")

    def operate_next(self, folder: Path) -> None:
        self._restore_again(folder)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        yield "restore", self._restore_again

    def _restore_again(self, folder: Path) -> None:
        _restore(folder, "elsewhere", replaces=True)
        _require_restored(folder / "elsewhere", "first")
