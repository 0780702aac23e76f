"""Tests of several processes over one catalog at once: real commands, `dagster job execute`, the multiprocess executor."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.snapshot import verify
from pipeline.build.catalog_claim import CatalogBusyError, Holder, claim
from tests.commands import run_pipeline
from tests.conftest import ROOT, run_module
from tests.rebuild.nights import copy_of, table_hashes
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow


@contextmanager
def started(log: Path, *arguments: str | Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in its own process group and kill it at the end. Its output goes to `log`: an unread pipe would block it."""
    command = [sys.executable, "-m", *map(str, arguments)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True, env={**os.environ, **environment}
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def claim_of(catalog: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
    """Wait for the record of the claim and return it."""
    until((catalog / ".claim.json").exists, "a claim", process)
    record: dict[str, str] = json.loads((catalog / ".claim.json").read_text())
    return record


def job(name: str) -> list[str]:
    return ["dagster", "job", "execute", "-m", "pipeline.definitions", "-j", name]


def test_commands_and_jobs_are_refused_while_a_build_runs_and_reclassifying_after_it_was_killed(
    built_world: BuiltWorld, tmp_path: Path
) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    live = read_live_snapshot(catalog).id
    places = {"CATALOG_ROOT": str(catalog), "CATALOG_DUMPS": str(dumps), "DAGSTER_HOME": str(tmp_path)}
    log = tmp_path / "log"
    with started(log, "pipeline", "build", "--dumps", dumps, "--catalog", catalog) as build:
        until(lambda: "recordings: " in log.read_text(), "the step", build)
        os.killpg(build.pid, signal.SIGSTOP)
        commands = [("rollback", "--to", live), ("registry", "rebuild")]
        said = [run_pipeline(*command, "--catalog", catalog, check=False) for command in commands]
        for refused in (*said, run_module(*job("reclassify"), check=False, **places)):
            assert refused.returncode == 1
            assert f"another build is running in {catalog}: python -m pipeline build (run " in refused.stderr
            assert f"process {build.pid} on " in refused.stderr
    refused = run_module(*job("reclassify"), check=False, **places)
    assert refused.returncode == 1
    assert "StaleWorkError: table " in refused.stderr
    assert "nightly_build" in refused.stderr
    assert read_live_snapshot(catalog).id == live


@pytest.mark.long
def test_build_is_refused_while_a_job_of_dagster_runs_and_takes_over_when_it_was_killed(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    places = {"CATALOG_ROOT": str(catalog), "CATALOG_DUMPS": str(dumps), "DAGSTER_HOME": str(tmp_path)}
    with started(tmp_path / "log", *job("reclassify"), **places) as run:
        holder = claim_of(catalog, run)
        os.killpg(run.pid, signal.SIGSTOP)
        refused = run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog, check=False)
        assert refused.returncode == 1
        assert f"Dagster's job reclassify (run {holder['run_id']}, process {run.pid} on " in refused.stderr
        assert "wait for it, or stop it" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert (catalog / ".claim.json").exists()
    live = read_live_snapshot(catalog).id
    run_module("pipeline", "rollback", "--catalog", catalog, "--to", live)
    assert not (catalog / ".claim.json").exists()


@pytest.mark.long
def test_steps_of_one_run_work_in_parallel_processes_and_other_runs_wait(
    built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before, live = table_hashes(catalog), read_live_snapshot(catalog).id
    (tmp_path / "home").mkdir()
    places = {"CATALOG_ROOT": str(catalog), "CATALOG_DUMPS": str(dumps), "DAGSTER_HOME": str(tmp_path / "home")}
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    module = ["dagster", "job", "execute", "-m", "tests.pipeline.defs.side_by_side", "-j", "nightly_build"]
    refusals = 0
    with started(tmp_path / "log", *module, **places) as run:
        holder = claim_of(catalog, run)
        assert holder["executor"]["pid"] == run.pid  # type: ignore[index]
        while run.poll() is None:  # in steps and between them
            refused = run_module("pipeline", "rollback", "--catalog", catalog, "--to", live, check=False)
            refusals += f"Dagster's job nightly_build (run {holder['run_id']}" in refused.stderr
            assert refused.returncode == 1 or run.poll() is not None
            time.sleep(1)
        assert run.returncode == 0
    assert refusals > 3
    assert table_hashes(catalog) == before
    verify(read_live_snapshot(catalog).folder)
    run_module("pipeline", "rollback", "--catalog", catalog, "--to", live)


def test_step_in_a_process_of_its_own_ends_with_the_killed_process_of_its_run(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"

    def is_free() -> bool:
        try:
            claim(catalog, Holder("another", "a test")).release()
        except CatalogBusyError:
            return False
        return True

    # An upstream that never answers: the step is at work until it is ended.
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        upstream.settimeout(PATIENCE_SECONDS)
        location = f"http://127.0.0.1:{upstream.getsockname()[1]}/"
        (tmp_path / "sources.yaml").write_text(f"sources: {{catalog_a: {{location: '{location}'}}}}")
        places = {"CATALOG_ROOT": str(catalog), "CATALOG_SOURCES": str(tmp_path / "sources.yaml"), "DAGSTER_HOME": str(tmp_path)}
        module = ["dagster", "job", "execute", "-m", "tests.pipeline.defs.side_by_side", "-j", "nightly_build"]
        with started(tmp_path / "log", *module, **places) as run:
            connection, _ = upstream.accept()
            run.kill()
            run.wait()
        with connection:
            until(is_free, "the end of the step")


@pytest.mark.long
def test_finished_run_of_a_living_process_holds_no_claim(built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("CATALOG_ROOT", str(catalog))
    monkeypatch.setenv("CATALOG_DUMPS", str(dumps))
    from tests.pipeline.defs import side_by_side  # noqa: PLC0415 - it reads the environment

    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        done = dg.execute_job(dg.reconstructable(side_by_side.reclassify), instance)
        assert done.success
    assert json.loads((catalog / ".claim.json").read_text())["executor"]["pid"] == os.getpid()
    run_module("pipeline", "rollback", "--catalog", catalog, "--to", read_live_snapshot(catalog).id)
