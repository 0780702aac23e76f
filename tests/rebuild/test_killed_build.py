"""Tests of kill -9 during a build, in each of its parts and at random moments.

KILLS is their number (50 when not set) and KILL_SEED their seed, which is printed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from catalog_store import open_catalog
from catalog_store.snapshot import verify
from catalog_store.tables.files import list_parts
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from tests.commands import run_pipeline
from tests.conftest import ROOT, BuiltWorld
from tests.rebuild.nights import copy_of, table_hashes
from tests.rebuild.small_buckets import FOUND

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("KILL_SEED", str(random.SystemRandom().randrange(10**6))))

STEPS = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]
MOMENTS = ("catalog_b: mbdump/recording: ", "edges: ", "recordings: ", "building the search index")
"""Log lines at which the build is killed: while it reads a dump, links, writes tables, publishes. Their order lets each build take up the
staged tables of the killed build before it."""


def kill_at(moment: str, dumps: Path, catalog: Path) -> None:
    """Start a build and kill it, with all its processes, as soon as it logs `moment`."""
    command = [sys.executable, "-m", "pipeline", "build", "--dumps", str(dumps), "--catalog", str(catalog)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as build:
        said = []
        for line in build.stderr or ():
            said.append(line)
            if moment in line:
                os.killpg(build.pid, signal.SIGKILL)
                break
        assert build.wait() == -signal.SIGKILL, f"the build never said {moment!r}: {said[-20:]}"


@pytest.mark.parametrize("moments", [MOMENTS[-1:], pytest.param(MOMENTS, marks=pytest.mark.long)], ids=["publishing", "all"])
def test_a_build_killed_at_any_moment_leaves_the_catalog_readable_and_the_next_build_clean(
    built_world: BuiltWorld, tmp_path: Path, moments: tuple[str, ...]
) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before, live = table_hashes(catalog), (catalog / "current").readlink()
    shutil.rmtree(catalog / "work" / "staging")
    for moment in moments:
        kill_at(moment, dumps, catalog)
        assert (catalog / "current").readlink() == live
        verify((catalog / "current").resolve())
        with open_catalog(catalog) as opened:
            assert opened.read_genres()
    assert half_written(catalog), "killed before anything was there to be cleared"
    resumed = run_pipeline("build", "--dumps", dumps, "--catalog", catalog).stderr
    # Every step before the snapshot was finished, and only the gate judges again.
    assert [step.name for step in STEPS if f"{step.name}: finished by run " not in resumed] == []
    assert (catalog / "current").readlink() != live
    assert table_hashes(catalog) == before
    assert half_written(catalog) == []


@pytest.mark.long
def test_build_killed_at_random_moments_goes_on_and_ends_byte_identical(built_world: BuiltWorld, tmp_path: Path) -> None:
    print(f"KILL_SEED={SEED} KILLS={KILLS}", flush=True)  # noqa: T201 - to repeat it
    dumps, catalog = copy_of(built_world, tmp_path)
    chance = random.Random(SEED)  # noqa: S311 - no secret
    whole = run_cut_build(dumps, catalog)
    before, killed = table_hashes(catalog), 0
    assert len(list_parts(catalog / "current" / "tables" / "recording")) > 1
    steps = buckets = 0
    while killed < KILLS:
        live = (catalog / "current").readlink()
        # Moments are counted in lines of progress: they are densest where a build does most, whatever the load of the machine.
        lines = run_cut_build(dumps, catalog, chance.randrange(len(whole)))
        steps += sum(": finished by run " in line for line in lines)
        buckets += sum(FOUND in line for line in lines)
        verify((catalog / "current").resolve())
        if (catalog / "current").readlink() == live:
            killed += 1
            print(f"kill {killed} after {lines[-1]}; {steps} steps and {buckets} buckets were used again", flush=True)  # noqa: T201
            continue
        assert table_hashes(catalog) == before
    run_cut_build(dumps, catalog)
    assert table_hashes(catalog) == before
    assert half_written(catalog) == []
    assert steps > KILLS, "no build went on behind the steps of another"
    assert buckets, "no build went on behind the buckets of another"


def run_cut_build(dumps: Path, catalog: Path, last: int | None = None) -> list[str]:
    """Run a full build in small buckets, from dumps where the one before was published, and kill it after line `last`. Return its lines."""
    command = [sys.executable, "-m", "tests.rebuild.small_buckets", "build", "--relink", "--dumps", str(dumps), "--catalog", str(catalog)]
    if not (catalog / "work" / "relink").exists():
        shutil.rmtree(catalog / "work" / "staging", ignore_errors=True)
    said = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as build:
        for number, line in enumerate(build.stderr or ()):
            said.append(line.strip())
            if number == last:
                os.killpg(build.pid, signal.SIGKILL)
                break
        code = build.wait()
    assert code == 0 or (code == -signal.SIGKILL and last is not None), f"the build ended with {code}: {said[-20:]}"
    return said


def half_written(catalog: Path) -> list[str]:
    return [path.name for path in (catalog / "snapshots").iterdir() if path.name.startswith(".")]
