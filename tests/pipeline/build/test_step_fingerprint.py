from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.program_hash import hash_packages
from pipeline.build import step_fingerprint
from pipeline.build.step_fingerprint import compute_step_fingerprint
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> BuildPaths:
    for file in (tmp_path / "overrides.yaml", tmp_path / "rules" / "tree.yaml", tmp_path / "work" / "registry" / "rebuilt" / "a" / "part"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("first")
    return BuildPaths(tmp_path, rules=tmp_path / "rules")


def test_fingerprint_stays_while_nothing_changes(paths: BuildPaths) -> None:
    before = compute_step_fingerprint(paths)
    hash_packages.cache_clear()
    assert compute_step_fingerprint(paths) == before


@pytest.mark.parametrize("name", ["overrides.yaml", "rules/tree.yaml", "rules/new.yaml", "work/registry/rebuilt/a/part", "work/relink"])
def test_fingerprint_changes_with_every_input_besides_tables(paths: BuildPaths, name: str) -> None:
    before = compute_step_fingerprint(paths)
    (paths.root / name).write_text("other")
    assert compute_step_fingerprint(paths) != before


def test_fingerprint_changes_with_a_dump_of_a_later_day(paths: BuildPaths) -> None:
    (paths.landing("works") / "2026-11-01").mkdir(parents=True)
    before = compute_step_fingerprint(paths)
    (paths.landing("store_a") / "2026-10-31").mkdir(parents=True)
    assert compute_step_fingerprint(paths) == before
    (paths.landing("works") / "2026-11-02").mkdir()
    assert compute_step_fingerprint(paths) != before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hash_program", lambda: "another program"),
        ("find_highest_ids", lambda _root: {"artist": 8}),
        ("_PACKAGES", ("pipeline",)),
        ("_LIBRARIES", ("duckdb",)),
    ],
)
def test_fingerprint_changes_with_program_and_given_ids(
    paths: BuildPaths, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = compute_step_fingerprint(paths)
    monkeypatch.setattr(step_fingerprint, name, value)
    assert compute_step_fingerprint(paths) != before


def test_fingerprint_changes_when_the_machine_has_been_started_again(
    paths: BuildPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compute_step_fingerprint(paths)
    (tmp_path / "boot").write_text("another boot")
    monkeypatch.setattr(step_fingerprint, "_BOOT_ID", tmp_path / "boot")
    assert compute_step_fingerprint(paths) != before
