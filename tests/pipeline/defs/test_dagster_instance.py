"""Tests of the instance of dagster.yaml: a reboot, the interface, the run history."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import dagster as dg
import pytest
import yaml
from dagster._core.events import EngineEventData

from catalog_store.published_snapshots import read_live_snapshot
from pipeline.definitions import build_definitions
from pipeline.defs.archive_assets import name_partitions
from pipeline.defs.dead_run_sensor import SENSOR, fail_runs_of_dead_processes, is_alive
from pipeline.defs.resources import RECLASSIFY, CatalogResource
from pipeline.defs.run_history import FORGET
from tests.conftest import ROOT
from tests.ports import free_port
from tests.rebuild.nights import copy_of, require_consistent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import BuiltWorld

LAUNCH = """
mutation Launch($job: String!) {
  launchRun(executionParams: {
    selector: {repositoryName: "__repository__", repositoryLocationName: "pipeline.definitions", jobName: $job}, runConfigData: {}
  }) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}
"""


def test_instance_has_the_settings_that_operators_expect() -> None:
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    assert settings["telemetry"]["enabled"] is False
    assert settings["nux"]["enabled"] is False
    assert settings["concurrency"]["runs"]["max_concurrent_runs"] == 1
    assert settings["run_monitoring"]["enabled"] is True
    assert settings["run_retries"]["retry_on_asset_or_op_failure"] is False
    assert settings["retention"]["schedule"]["purge_after_days"] > 0


def test_dagster_reads_the_instance(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_monitoring_enabled
        assert not instance.nux_enabled
        assert not instance.telemetry_enabled


def test_process_started_after_the_run_is_not_the_run() -> None:
    now = time.time()
    assert is_alive(os.getpid(), now)
    assert not is_alive(os.getpid(), now - 3600 * 24 * 365), "the number was given to another process since"
    with subprocess.Popen(["true"]) as gone:  # noqa: S607
        gone.wait()
    assert not is_alive(gone.pid, now)


def start_run(instance: dg.DagsterInstance, pid: int | None) -> dg.DagsterRun:
    """Record a started run as Dagster's launcher does: the process id in an event, then the start."""
    run = instance.create_run_for_job(dg.GraphDefinition("nothing").to_job())
    event_type, data = dg.DagsterEventType.ENGINE_EVENT, EngineEventData({} if pid is None else {"pid": dg.MetadataValue.text(str(pid))})
    instance.report_dagster_event(dg.DagsterEvent(event_type.value, run.job_name, event_specific_data=data), run.run_id)
    instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.PIPELINE_START.value, run.job_name), run.run_id)
    return run


def test_only_the_run_of_a_dead_process_is_failed() -> None:
    with subprocess.Popen(["true"]) as gone:  # noqa: S607
        gone.wait()
    with dg.DagsterInstance.ephemeral() as instance:
        dead, alive, unknown, ended = (start_run(instance, pid) for pid in (gone.pid, os.getpid(), None, gone.pid))
        instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, ended.job_name), ended.run_id)
        assert fail_runs_of_dead_processes(instance) == [dead.run_id]
        assert fail_runs_of_dead_processes(instance) == []
        states = [instance.get_run_by_id(run.run_id).status.value for run in (dead, alive, unknown, ended)]  # type: ignore[union-attr]
        assert states == ["FAILURE", "STARTED", "STARTED", "SUCCESS"]


def test_run_that_ends_between_two_looks_is_not_failed() -> None:
    with subprocess.Popen(["true"]) as gone:  # noqa: S607
        gone.wait()
    with dg.DagsterInstance.ephemeral() as instance:
        run = start_run(instance, gone.pid)
        listed = instance.get_runs()
        instance.report_dagster_event(dg.DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, run.job_name), run.run_id)
        with mock.patch.object(instance, "get_runs", return_value=listed):
            assert fail_runs_of_dead_processes(instance) == []


def test_dead_run_sensor_runs_from_the_start(tmp_path: Path) -> None:
    resource = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"))
    sensor = build_definitions({"catalog": resource}).resolve_sensor_def(SENSOR)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


@pytest.mark.parametrize(("days", "left"), [(0, 1), (1, 2)])
def test_old_runs_are_removed_except_the_makers_of_assets(tmp_path: Path, days: int, left: int) -> None:
    (tmp_path / "dumps" / "suggestions").mkdir(parents=True)
    resource = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"), keep_run_days=days)
    definitions = build_definitions({"catalog": resource})
    with dg.DagsterInstance.ephemeral() as instance:
        landing = [dg.AssetKey(["landing", "suggestions"])]
        job = definitions.resolve_implicit_global_asset_job_def()
        assert job.execute_in_process(asset_selection=landing, instance=instance).success
        assert job.execute_in_process(asset_selection=landing, instance=instance).success
        assert definitions.resolve_job_def(FORGET).execute_in_process(instance=instance).success
        assert len(instance.get_runs()) == left + 1, "and the run that forgets"


def test_run_that_made_an_asset_stays_if_a_later_one_failed(tmp_path: Path) -> None:
    (tmp_path / "dumps" / "suggestions").mkdir(parents=True)
    (tmp_path / "broken.yaml").write_text("sources: [")
    sound = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"), keep_run_days=0)
    broken = CatalogResource(root=str(tmp_path / "catalog"), sources=str(tmp_path / "broken.yaml"))
    with dg.DagsterInstance.ephemeral() as instance:
        made, failed = (
            build_definitions({"catalog": resource})
            .resolve_implicit_global_asset_job_def()
            .execute_in_process(asset_selection=[dg.AssetKey(["landing", "suggestions"])], instance=instance, raise_on_error=False)
            for resource in (sound, broken)
        )
        assert (made.success, failed.success) == (True, False)
        assert build_definitions({"catalog": sound}).resolve_job_def(FORGET).execute_in_process(instance=instance).success
        assert instance.get_run_by_id(made.run_id)


def test_runs_that_filled_partitions_stay(tmp_path: Path) -> None:
    for day in ("2026-01-05", "2026-01-12"):
        dump = tmp_path / "dumps" / "store_a" / day
        dump.mkdir(parents=True)
        (dump / "tracks.ndjson.gz").write_bytes(b"")
    resource = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"), keep_run_days=0)
    definitions = build_definitions({"catalog": resource})
    archived = dg.AssetKey(["archived_dump", "store_a"])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(name_partitions("store_a"), ["2026-01-05", "2026-01-12"])
        job = definitions.resolve_implicit_global_asset_job_def()
        for day in ("2026-01-05", "2026-01-05", "2026-01-12"):
            assert job.execute_in_process(asset_selection=[archived], instance=instance, partition_key=day).success
        assert definitions.resolve_job_def(FORGET).execute_in_process(instance=instance).success
        assert instance.get_materialized_partitions(archived) == {"2026-01-05", "2026-01-12"}
        assert len(instance.get_runs()) == 2 + 1, "and the run that forgets"


@contextlib.contextmanager
def dev(environment: dict[str, str]) -> Iterator[None]:
    """Run `scripts/dev` and kill all its processes at the end, as when a machine stops."""
    options = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen([ROOT / "scripts" / "dev"], env={**os.environ, **environment}, **options) as services:  # type: ignore[call-overload]
        try:
            yield
        finally:
            for pid in {services.pid, *descendants(services.pid)}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> set[int]:
    children = {int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()}
    return children.union(*map(descendants, children))


def ask(port: int, query: str, **variables: str) -> dict[str, object]:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        data: dict[str, object] = json.loads(answer.read())["data"]
        return data


def until(happened: Callable[[], object], seconds: int = 600) -> object:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if found := happened():
                return found
        time.sleep(0.2)
    raise AssertionError("it did not happen")


@pytest.mark.long
def test_dead_run_ends_after_a_reboot_and_the_next_one_starts(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    live, home = read_live_snapshot(catalog).id, tmp_path / "home"
    home.mkdir()
    shutil.copy(ROOT / "dagster.yaml", home)
    port = free_port()
    places = {"CATALOG_ROOT": str(catalog), "CATALOG_DUMPS": str(dumps), "DAGSTER_HOME": str(home), "PORT": str(port)}
    with dg.DagsterInstance.from_config(str(home)) as instance:

        def status(run: str) -> str:
            found = instance.get_run_by_id(run)
            assert found
            return found.status.value

        with dev(places):
            until(lambda: ask(port, "{ version }"))
            runs = [str(until(lambda: ask(port, LAUNCH, job=RECLASSIFY)["launchRun"]["run"]["runId"])) for _ in range(2)]  # type: ignore[index]
            until(lambda: (catalog / ".claim.json").exists() and status(runs[0]) == "STARTED")
            assert json.loads((catalog / ".claim.json").read_text())["run_id"] == runs[0]
        assert [status(run) for run in runs] == ["STARTED", "QUEUED"]
        with dev(places):
            until(lambda: status(runs[0]) == "FAILURE")
            until(lambda: status(runs[1]) == "SUCCESS")
        assert read_live_snapshot(catalog).id != live
        require_consistent(catalog)
