"""Tests of kill -9 during a full build and a night, in each of their parts and at random moments.

KILLS is the number of random ones for each test (50 when not set) and KILL_SEED their seed, which is printed.
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

from benchmarks import night_dumps
from catalog_store import open_catalog
from catalog_store.snapshot import verify
from catalog_store.tables.files import list_parts
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.linkage.incremental.night import read_night
from pipeline.paths import BuildPaths
from tests.commands import run_pipeline
from tests.conftest import ROOT, BuiltWorld
from tests.rebuild.nights import copy_of, table_hashes
from tests.rebuild.small_buckets import FOUND

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("KILL_SEED", str(random.SystemRandom().randrange(10**6))))

RECORDS_PER_CHANGE = 90
"""One record of so many is changed in the dumps of a night. More than 5 % would link everything again."""
NIGHTLY_TABLES = {"atom", "atom_change", "atom_gone", "atom_isrc", "atom_member", "build_figure"}
"""Tables in which a night differs from full linkage, and from another night of the same dumps: changes, gone atoms, and their counts."""
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
    whole = run_full_build(dumps, catalog)
    before, killed = table_hashes(catalog), 0
    assert len(list_parts(catalog / "current" / "tables" / "recording")) > 1
    steps = buckets = 0
    while killed < KILLS:
        live = (catalog / "current").readlink()
        # Moments are counted in lines of progress: they are densest where a build does most, whatever the load of the machine.
        lines = run_full_build(dumps, catalog, chance.randrange(len(whole)))
        steps += sum(": finished by run " in line for line in lines)
        buckets += sum(FOUND in line for line in lines)
        verify((catalog / "current").resolve())
        if (catalog / "current").readlink() == live:
            killed += 1
            print(f"kill {killed} after {lines[-1]}; {steps} steps and {buckets} buckets were used again", flush=True)  # noqa: T201
            continue
        assert table_hashes(catalog) == before
    run_full_build(dumps, catalog)
    assert table_hashes(catalog) == before
    assert half_written(catalog) == []
    assert steps > KILLS, "no build went on behind the steps of another"
    assert buckets, "no build went on behind the buckets of another"


@pytest.mark.long
def test_night_killed_at_random_moments_goes_on_and_ends_byte_identical(
    built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"KILL_SEED={SEED} KILLS={KILLS}", flush=True)  # noqa: T201 - to repeat it
    dumps, base = copy_of(built_world, tmp_path)
    chance = random.Random(SEED)  # noqa: S311 - no secret
    run_full_build(dumps, base)
    monkeypatch.setattr(night_dumps, "STEP", RECORDS_PER_CHANGE)
    night_dumps.change_dumps(dumps, tmp_path / "night", 1)

    whole, linked_anew = (shutil.copytree(base, tmp_path / name, symlinks=True) for name in ("whole", "linked_anew"))
    lines_of_night = len(run_cut_build(tmp_path / "night", whole))
    expected = table_hashes(whole)
    assert expected != table_hashes(base)
    assert read_night(BuildPaths(whole)).base, "the night linked everything again"
    run_cut_build(tmp_path / "night", linked_anew, "--relink")
    assert leave_out_atoms(table_hashes(linked_anew)) == leave_out_atoms(expected)

    killed = steps = buckets = 0
    while killed < KILLS:
        catalog = shutil.copytree(base, tmp_path / f"killed-{killed}", symlinks=True)
        live = (catalog / "current").readlink()
        while killed < KILLS and (catalog / "current").readlink() == live:
            lines = run_cut_build(tmp_path / "night", catalog, last=chance.randrange(lines_of_night))
            steps += sum(": finished by run " in line for line in lines)
            buckets += sum(FOUND in line for line in lines)
            verify((catalog / "current").resolve())
            killed += 1
            print(f"night {killed} ended after {lines[-1]}; {steps} steps and {buckets} buckets were used again", flush=True)  # noqa: T201
        if (catalog / "current").readlink() == live:
            run_cut_build(tmp_path / "night", catalog)
        assert table_hashes(catalog) == expected
        # The last kill may have come after the switch. The same dumps once more remove what it left.
        run_cut_build(tmp_path / "night", catalog)
        assert leave_out_atoms(table_hashes(catalog)) == leave_out_atoms(expected)
        assert half_written(catalog) == []
        shutil.rmtree(catalog)
    assert steps, "no night went on behind the steps of another"
    assert buckets, "no night went on behind the buckets of another"


def leave_out_atoms(hashes: dict[str, str]) -> dict[str, str]:
    """Return the hashes without those of NIGHTLY_TABLES."""
    return {path: file_hash for path, file_hash in hashes.items() if path.split("/")[1] not in NIGHTLY_TABLES}


def run_full_build(dumps: Path, catalog: Path, last: int | None = None) -> list[str]:
    """Run a full build, from dumps where the one before was published. Arguments and result as for `run_cut_build`."""
    if not (catalog / "work" / "relink").exists():
        shutil.rmtree(catalog / "work" / "staging", ignore_errors=True)
    return run_cut_build(dumps, catalog, "--relink", last=last)


def run_cut_build(dumps: Path, catalog: Path, *options: str, last: int | None = None) -> list[str]:
    """Run a build in small buckets, and kill it after line `last`. Return its lines."""
    command = [sys.executable, "-m", "tests.rebuild.small_buckets", "build", *options, "--dumps", str(dumps), "--catalog", str(catalog)]
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
