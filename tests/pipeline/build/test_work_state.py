from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.build.work_state import WorkState
from pipeline.paths import BuildPaths
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LABEL, RECORDING = "catalog/label", "catalog/recording"


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


def write_step(paths: BuildPaths, table: str, inputs: list[str]) -> None:
    """Write a table in a step whose program is `program`, with a file beside it."""
    state = WorkState(paths, "killed run")
    started = state.begin([table], inputs, "program")
    folder = paths.table(table.partition("/")[2])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-00000.parquet").write_bytes(b"1234")
    beside = paths.root / "work" / f"{folder.name}.json"
    beside.write_text("{}")
    state.finish(started, [beside, paths.root / "never written"], {"labels": 7})


@pytest.fixture
def written(tmp_path: Path) -> BuildPaths:
    """Return the folders of a catalog with a finished step, and one before it."""
    paths = BuildPaths(tmp_path)
    write_step(paths, RECORDING, [])
    write_step(paths, LABEL, [RECORDING])
    return paths


def test_finished_step_over_the_same_inputs_is_found_with_its_facts(written: BuildPaths) -> None:
    found = WorkState(written, "next run").find_finished([LABEL], [RECORDING], "program")
    assert found is not None
    assert (found.run_id, found.facts, found.files) == ("killed run", {"labels": 7}, {"work/label.json": 2})


def publish_snapshot(paths: BuildPaths) -> None:
    (paths.snapshots / "first").mkdir(parents=True)
    (paths.snapshots / "first" / "manifest.json").touch()
    paths.current.symlink_to("snapshots/first")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda paths: write_step(paths, RECORDING, []), id="another input"),
        pytest.param(lambda paths: (paths.table("label") / "part-00000.parquet").write_bytes(b"12345"), id="a changed part"),
        pytest.param(lambda paths: (paths.table("label") / "part-00001.parquet").write_bytes(b"1"), id="a new part"),
        pytest.param(lambda paths: (paths.root / "work" / "label.json").unlink(), id="a lost file"),
        pytest.param(lambda paths: (paths.root / "work" / "label.json").write_text("{"), id="a torn file"),
        pytest.param(lambda paths: WorkState(paths, "killed run").begin([LABEL], [RECORDING], "program"), id="an unfinished step"),
        pytest.param(lambda paths: WorkState(paths, "killed run").begin([RECORDING], [], "program"), id="an unfinished input"),
        pytest.param(publish_snapshot, id="another live snapshot"),
    ],
)
def test_step_is_not_taken_as_finished_after_a_change(written: BuildPaths, change: Callable[[BuildPaths], None]) -> None:
    change(written)
    assert WorkState(written, "next run").find_finished([LABEL], [RECORDING], "program") is None


def test_step_of_another_program_is_not_taken_as_finished(written: BuildPaths) -> None:
    state = WorkState(written, "next run")
    assert state.find_finished([LABEL], [RECORDING], "another program") is None
    assert state.find_finished([LABEL], [], "program") is None
    assert state.find_finished([LABEL, "catalog/artist"], [RECORDING], "program") is None
