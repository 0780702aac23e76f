"""Tests of builds whose steps have processes of their own, as those of a large catalog have."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from catalog_store.snapshot import verify
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import read_build_costs
from tests.commands import run_pipeline
from tests.conftest import ROOT
from tests.processes import descendants, is_running
from tests.rebuild.nights import copy_of, table_hashes
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow

LARGE = """
import sys
from pipeline.__main__ import main
from pipeline.defs import resources

resources.LARGE_DUMPS_BYTES = 0
raise SystemExit(main(sys.argv[1:]))
"""
"""The command `python -m pipeline`, for which every catalog is large."""
STEPS = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", LARGE, "build", *map(str, arguments)]


def until_ended(processes: list[int]) -> None:
    assert processes, "the build had no other process"
    until(lambda: not any(map(is_running, processes)))


def test_steps_in_processes_of_their_own_give_the_same_tables(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    built = subprocess.run(
        command("--dumps", built_world.dumps, "--catalog", catalog), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert table_hashes(catalog) == table_hashes(built_world.catalog)
    assert json.loads(built.stdout)["is_current"], "nothing but the answer is on standard output"
    # The lines of all processes arrive, those of staging and publishing included.
    for line in ("catalog_b: staged in ", "edges: ", "building the search index", "is live: "):
        assert line in built.stderr
    costs = read_build_costs(BuildPaths(catalog).costs)[0].steps
    assert [cost.step for cost in costs if cost.seconds > 2 and cost.cpu_seconds < 0.2] == []


def test_killed_build_ends_its_steps_and_the_next_one_goes_on(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before = table_hashes(catalog)
    shutil.rmtree(catalog / "work" / "staging")
    arguments = ("--dumps", dumps, "--catalog", catalog)
    for moment in ("edges: ", "building the search index"):
        with subprocess.Popen(
            command(*arguments), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as build:
            assert any(moment in line for line in build.stderr or ()), f"the build never said {moment!r}"
            started = descendants(build.pid)
            # The build alone, as the kernel does when memory is short.
            build.kill()
            assert build.wait() == -signal.SIGKILL
        until_ended(started)
        verify((catalog / "current").resolve())
    resumed = run_pipeline("build", *arguments).stderr
    assert [step.name for step in STEPS if f"{step.name}: finished by run " not in resumed] == []
    assert table_hashes(catalog) == before


def test_interrupted_build_ends_its_steps(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    with subprocess.Popen(
        command("--dumps", built_world.dumps, "--catalog", catalog),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as build:
        assert any("edges: " in line for line in build.stderr or ())
        started = descendants(build.pid)
        build.send_signal(signal.SIGINT)
        said = build.stderr.read() if build.stderr else ""
        assert build.wait() != 0
    assert "Traceback" not in said
    until_ended(started)
    assert not (catalog / "current").exists()
    run_pipeline("build", "--dumps", built_world.dumps, "--catalog", catalog)
    assert table_hashes(catalog) == table_hashes(built_world.catalog)
