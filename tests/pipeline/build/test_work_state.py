from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.build.work_state import WorkState
from pipeline.paths import BuildPaths
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from pathlib import Path


def test_versions_are_read_from_every_published_snapshot_and_no_unfinished_one(tmp_path: Path) -> None:
    for name in ("first", "second", ".building-third"):
        folder = tmp_path / "snapshots" / name
        folder.mkdir(parents=True)
        (folder / "manifest.json").touch()
    (tmp_path / "snapshots" / "unfinished").mkdir()
    (tmp_path / "snapshots" / "first" / "work_state.json").write_text('{"linkage/atom": "v1"}')
    (tmp_path / "snapshots" / "second" / "work_state.json").write_bytes(b'{"linkage/atom": "\xad"}')
    state = WorkState(BuildPaths(tmp_path), "run")
    assert state.read_published_versions() == {"first": {"linkage/atom": "v1"}, "second": {}}


def test_unreadable_folders_stop_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = BuildPaths(tmp_path)
    state = WorkState(paths, "run")
    paths.table("recording").mkdir(parents=True)
    (paths.table("recording") / "part-00000.parquet").write_bytes(b"1234")
    started = state.begin(["catalog/recording"], [])
    with monkeypatch.context() as unreadable:
        refuse_listing(unreadable, paths.table("recording"))
        # A record without parts would count as that of an adopted table, which any parts fit.
        with pytest.raises(PermissionError):
            state.finish(started)
    recorded = state.read("catalog/recording")
    assert recorded is not None
    assert recorded.version is None
    state.finish(started)
    paths.snapshots.mkdir()
    refuse_listing(monkeypatch, paths.snapshots)
    with pytest.raises(PermissionError):
        state.require(["catalog/recording"])
