"""Tests of builds that are killed at random moments, each followed by another operation: the catalog stays whole.

KILLS says how many (300 when not set), KILL_SEED which ones; the seed is printed, and each kill with what came next. 300 take some 90
minutes on one processor: `KILLS=20 .venv/bin/python -m pytest -m long -s tests/rebuild/test_kill_loop.py`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

import duckdb
import pytest

from catalog_store import open_catalog
from catalog_store.published_snapshots import find_current_folder, list_snapshots
from tests.conftest import ROOT, run_module
from tests.rebuild.nights import newest, require_consistent

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("KILL_SEED", str(random.SystemRandom().randrange(10**6))))
RECORDINGS = 40
WORLDS = (3, 4)
"""Seeds of two worlds. Deliveries of a platform come from either, so that tables of two builds do not fit together."""
LET_THROUGH = {
    "CATALOG_LARGEST_SHRINK": "1", "CATALOG_LOWEST_PRECISION": "0", "CATALOG_LOWEST_RECALL": "0",
    "CATALOG_LOWEST_GOLDEN_PRECISION": "0", "CATALOG_LOWEST_GOLDEN_RECALL": "0", "CATALOG_LARGEST_FALL": "1",
    "CATALOG_LARGEST_JUMP": "1000000", "CATALOG_LARGEST_MOVE": "1", "CATALOG_LOWEST_ROWS": "0", "CATALOG_LARGEST_LOSS": "1",
}  # fmt: skip
"""Settings that let every night pass the gate. The gate compares a night with the one before, and these differ on purpose."""
LONGEST_SECONDS = 1800
"""Longest run of an operation that takes 10 s on a quiet machine. A loop of hours beside other loads must not fail for want of processor
time."""
IN_PROCESS = """
import dagster as dg
from pipeline.definitions import defs
with dg.DagsterInstance.get() as instance:
    raise SystemExit(not defs.resolve_job_def("nightly_build").execute_in_process(instance=instance, raise_on_error=False).success)
"""
KINDS = {"recording": "recording_id", "artist": "artist_id", "label": "label_id", "release": "release_id"}


@dataclass
class Loop:
    """A catalog under the loop, and the known facts about it."""

    catalog: Path
    dumps: Path
    home: Path
    worlds: list[Path]
    chance: random.Random
    lasts: dict[str, float] = field(default_factory=dict)
    """Duration of a build that was not killed, by the way in which it was started."""
    given: dict[str, set[int]] = field(default_factory=lambda: {kind: set() for kind in KINDS})
    free: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    seen: set[str] = field(default_factory=set)
    day: date = date(2027, 1, 1)

    @property
    def environment(self) -> dict[str, str]:
        return {**LET_THROUGH, "CATALOG_ROOT": str(self.catalog), "CATALOG_DUMPS": str(self.dumps), "DAGSTER_HOME": str(self.home)}

    def command(self, start: str) -> list[str]:
        build = ["-m", "pipeline", "build", "--dumps", str(self.dumps), "--catalog", str(self.catalog)]
        return {
            "command": build,
            "relinking command": [*build, "--relink"],
            "job in process": ["-c", IN_PROCESS],
            "dagster job execute": ["-m", "dagster", "job", "execute", "-m", "pipeline.definitions", "-j", "nightly_build"],
        }[start]

    def deliver(self) -> None:
        """Let some platforms deliver something else."""
        self.day += timedelta(days=1)
        for platform in self.chance.sample(sorted(path.name for path in self.dumps.iterdir() if newest_of(path)), 3):
            source = newest(self.chance.choice(self.worlds), platform)
            shutil.rmtree(self.dumps / platform)
            shutil.copytree(source, self.dumps / platform / str(self.day))

    def kill(self, start: str) -> str:
        """Start a build and kill it at some moment, often while it publishes. Return a description."""
        everything, publishing = self.chance.random() < 0.5, self.chance.random() < 0.35
        delay = self.chance.uniform(0, 1.5) if publishing else self.chance.uniform(0, 1.05 * self.lasts.get(start, 30))
        begun = time.monotonic()
        # A killed publish leaves its folder behind until the next one removes it.
        left_over = set((self.catalog / "snapshots").glob(".building-*"))
        options = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        with subprocess.Popen([sys.executable, *self.command(start)], env={**os.environ, **self.environment}, **options) as build:  # type: ignore[call-overload]
            while publishing and build.poll() is None and left_over.issuperset((self.catalog / "snapshots").glob(".building-*")):
                time.sleep(0.005)
            end = time.monotonic() + delay
            while build.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            if build.poll() is None:
                (os.killpg if everything else os.kill)(build.pid, signal.SIGKILL)
            build.wait()
        if build.returncode == 0:
            self.lasts[start] = time.monotonic() - begun
        assert build.returncode in {0, -signal.SIGKILL}, f"{start} failed by itself: {build.returncode}"
        where = "while publishing" if publishing else "at any time"
        ended = "was done before" if build.returncode == 0 else f"killed {'with its workers' if everything else 'alone'}"
        return f"{start}, {where}, after {time.monotonic() - begun:.1f} s: {ended}"

    def go_on(self, operation: str) -> str:
        """Run the next operation and return its outcome."""
        started = time.monotonic()
        said = self._run(operation)
        refusals = [line for line in said.stderr.splitlines() if "nightly_build" in line or "whole build" in line]
        if said.returncode and (operation not in {"reclassify", "reclassify job"} or not refusals):
            pytest.fail(f"{operation} failed: {said.stderr[-4000:]}")
        return (
            f"{operation}: {'refused, ' + refusals[0].strip()[:160] if said.returncode else 'done'} in {time.monotonic() - started:.1f} s"
        )

    def _run(self, operation: str) -> subprocess.CompletedProcess[str]:
        catalog = ("--catalog", self.catalog)
        if operation == "reclassify":
            return run_module("pipeline", "reclassify", *catalog, check=False, timeout_seconds=LONGEST_SECONDS, **LET_THROUGH)
        if operation == "reclassify job":
            job = ("dagster", "job", "execute", "-m", "pipeline.definitions", "-j", "reclassify")
            return run_module(*job, check=False, timeout_seconds=LONGEST_SECONDS, **self.environment)
        if operation == "rollback":
            listed = [json.loads(line)["id"] for line in run_module("pipeline", "snapshots", *catalog).stdout.splitlines()]
            return run_module("pipeline", "rollback", *catalog, "--to", self.chance.choice(listed), check=False)
        keep = {"CATALOG_KEEP_SNAPSHOTS": "1" if operation == "prune" else "3"}
        start = "relinking command" if operation == "relink" else self.chance.choice(["command", "dagster job execute"])
        return run_module(*self.command(start)[1:], check=False, timeout_seconds=LONGEST_SECONDS, **self.environment, **keep)

    def check(self) -> None:
        """Check the invariants that hold after each kill and each operation."""
        require_consistent(self.catalog)
        live = find_current_folder(self.catalog)
        assert live
        assert (live / "manifest.json").is_file()
        with open_catalog(self.catalog) as opened:
            assert opened.read_genres()
        for snapshot in (snapshot for snapshot in list_snapshots(self.catalog) if snapshot.id not in self.seen):
            self.seen.add(snapshot.id)
            for kind, column in KINDS.items():
                ids = {row[0] for row in ids_in(snapshot.folder / "tables" / kind, column)}
                reused = {number for number in ids - self.given[kind] if number < self.free[kind]}
                assert not reused, f"snapshot {snapshot.id} gives {kind} ids to others that were given before: {sorted(reused)[:5]}"
                self.given[kind] |= ids
                assert snapshot.manifest.next_ids[kind] >= self.free[kind]
                self.free[kind] = snapshot.manifest.next_ids[kind]


def ids_in(folder: Path, column: str) -> list[tuple[int]]:
    return duckdb.execute(f"SELECT {column} FROM read_parquet('{folder}/*.parquet')").fetchall()


def newest_of(platform: Path) -> bool:
    """Return whether the platform delivers dated dumps."""
    return any(path.is_dir() and path.name.count("-") == 2 for path in platform.iterdir())


STARTS = ("command", "job in process", "dagster job execute")
OPERATIONS = ("build", "reclassify", "reclassify job", "rollback", "prune", "relink")


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    worlds = [tmp_path / f"world-{seed}" for seed in WORLDS]
    for seed, world in zip(WORLDS, worlds, strict=True):
        run_module("pipeline", "simulate", "--recordings", str(RECORDINGS), "--seed", str(seed), "--fingerprints", "0.7", "--out", world)
    (tmp_path / "home").mkdir()
    shutil.copytree(worlds[0], tmp_path / "dumps")
    shutil.rmtree(tmp_path / "dumps" / "truth")
    made = Loop(tmp_path / "catalog", tmp_path / "dumps", tmp_path / "home", worlds, random.Random(SEED))  # noqa: S311 - no secret
    run_module(*made.command("command")[1:], **made.environment)
    return made


@pytest.mark.long
def test_no_kill_at_any_moment_leaves_a_catalog_that_is_not_whole(loop: Loop) -> None:
    print(f"KILL_SEED={SEED} KILLS={KILLS}", flush=True)  # noqa: T201 - to repeat it
    loop.check()
    for number in range(KILLS):
        loop.deliver()
        killed = loop.kill(STARTS[number % len(STARTS)])
        loop.check()
        came_next = loop.go_on(loop.chance.choice(OPERATIONS))
        loop.check()
        print(f"{number + 1}: {killed}; {came_next}", flush=True)  # noqa: T201 - hours of nothing tell nobody how far it is
