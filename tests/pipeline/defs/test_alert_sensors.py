"""Alert sensors over real runs: a failed build, and one whose checks warn."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.freshness import FreshnessDaemon
from dagster._grpc.server import DagsterApiServer
from dagster._utils import get_run_crash_explanation

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.alerts import AlertError, Receivers
from pipeline.definitions import build_definitions
from pipeline.defs.alert_sensors import build_alert_sensors, build_receivers, list_failures
from pipeline.defs.dump_assets import build_landing_key, build_staging_key
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.run_history import FORGET
from pipeline.defs.table_steps import TableStep, build_table_assets
from pipeline.dumps.landing.sources import Source
from pipeline.settings import Settings
from tests.conftest import ROOT
from tests.mail_server import mail_server
from tests.webhook_delivery.receiver import answers, receiving

if TYPE_CHECKING:
    from pathlib import Path


def run_and_evaluate(
    definitions: dg.Definitions, instance: dg.DagsterInstance, sensor: str, job: dg.JobDefinition, keys: list[dg.AssetKey] | None = None
) -> None:
    """Run the job and evaluate the sensor over it, as the daemon does."""
    result = job.execute_in_process(instance=instance, raise_on_error=False, asset_selection=keys)
    found = definitions.resolve_sensor_def(sensor)
    if result.success:
        context = dg.build_run_status_sensor_context(sensor, result.get_run_success_event(), instance, result.dagster_run)
        found(context)
    else:
        failure = result.get_run_failure_event()
        context = dg.build_run_status_sensor_context(sensor, failure, instance, result.dagster_run)
        found(context.for_run_failure())


@pytest.mark.slow
def test_failed_build_is_reported_with_the_reason_of_its_step(tmp_path: Path) -> None:
    (tmp_path / "dumps" / "store_a").mkdir(parents=True)
    with receiving() as receiver, dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        resource = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"))
        definitions = build_definitions({"catalog": resource}, receivers=Receivers(webhook=receiver.url))
        run_and_evaluate(definitions, instance, "alert_on_failure", definitions.resolve_job_def(NIGHTLY))
        [received] = receiver.received
    alert = json.loads(received.body)
    assert alert["kind"] == "run_failed"
    assert alert["job"] == NIGHTLY
    assert any("atoms: " in problem and "no dump: there is nothing to build from" in problem for problem in alert["problems"]), alert


def test_step_with_a_failed_check_is_reported_with_what_the_check_found(tmp_path: Path) -> None:
    table = TABLES["label"]

    def write_a_negative_count(_paths: object) -> None:
        rows = pl.DataFrame([(1, "a", -1)], schema=table.polars_schema, orient="row")
        write_table(table, tmp_path / "work" / "catalog" / "label", rows)

    step = build_table_assets(TableStep("labels", (table,), (), write_a_negative_count))
    with receiving() as receiver, dg.DagsterInstance.ephemeral() as instance:
        sensors = build_alert_sensors(Receivers(webhook=receiver.url))
        definitions = dg.Definitions(assets=[step], resources={"catalog": CatalogResource(root=str(tmp_path))}, sensors=sensors)
        run_and_evaluate(definitions, instance, "alert_on_failure", definitions.resolve_implicit_global_asset_job_def())
        [received] = receiver.received
    [problem] = json.loads(received.body)["problems"]
    found = "label.release_count is at least 0: 1 rows at fault, the first: label_id=1, release_count=-1"
    assert problem == f"labels: catalog/label label_keeps_its_spec: {found}"


def test_killed_run_is_reported_with_the_end_of_its_process() -> None:
    job = build_definitions({"catalog": CatalogResource(root="unset")}).resolve_job_def(FORGET)
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(job)
        # As Dagster's server of code does for a process that it started.
        end = get_run_crash_explanation(f"Run execution process for {run.run_id}", -signal.SIGKILL)
        instance.report_engine_event(end, run, cls=DagsterApiServer)
        failed = instance.report_run_failed(run)
        context = dg.build_run_status_sensor_context("alert_on_failure", failed, instance, run).for_run_failure()
        [problem] = list_failures(context)
    assert problem.startswith(f"Run execution process for {run.run_id} was terminated by signal 9 (SIGKILL). ")


def test_build_with_warnings_is_reported_and_one_without_is_not(tmp_path: Path) -> None:
    (tmp_path / "dumps" / "suggestions").mkdir(parents=True)
    with receiving() as receiver, dg.DagsterInstance.ephemeral() as instance:
        resource = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"))
        definitions = build_definitions({"catalog": resource}, receivers=Receivers(webhook=receiver.url))
        job = definitions.resolve_implicit_global_asset_job_def()
        run_and_evaluate(definitions, instance, "alert_on_warnings", job, [build_landing_key("works")])
        assert not receiver.received
        run_and_evaluate(definitions, instance, "alert_on_warnings", job, [build_landing_key("suggestions")])
        [received] = receiver.received
    alert = json.loads(received.body)
    assert alert["kind"] == "build_needs_a_look"
    [problem] = alert["problems"]
    assert problem.startswith("landing/suggestions dump_is_fresh: suggestions: ")
    assert "the folder is empty" in problem


@pytest.mark.slow
def test_source_that_no_run_stages_in_time_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources.yaml").write_text(
        "sources:\n  store_a: {location: /srv/store_a, fresh_days: 10}\n  works: {location: /srv/works}\n"
    )
    monkeypatch.setenv("CATALOG_SOURCES", str(tmp_path / "sources.yaml"))
    monkeypatch.setenv("CATALOG_ROOT", str(tmp_path / "catalog"))
    sources = {"store_a": Source("store_a", "/srv/store_a", fresh_days=10), "works": Source("works", "/srv/works")}
    module = ModuleTarget("pipeline.definitions", attribute=None, working_directory=str(ROOT), location_name="pipeline.definitions")
    with receiving() as receiver, dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        [sensor] = [one for one in build_alert_sensors(Receivers(webhook=receiver.url), sources) if one.name == "alert_on_stale_sources"]
        cursor: str | None = None
        for name in sources:
            instance.report_runless_asset_event(dg.AssetMaterialization(build_staging_key(name)))
        staged = instance.get_latest_materialization_event(build_staging_key("store_a"))
        assert staged is not None
        with WorkspaceProcessContext(instance, module) as workspace:
            for days, messages in ((9, 0), (11, 1), (12, 1)):
                now = staged.timestamp + days * 86_400
                monkeypatch.setattr("dagster._core.definitions.freshness_evaluator.get_current_timestamp", lambda now=now: now)
                list(FreshnessDaemon().run_iteration(workspace))
                with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
                    cursor = sensor.evaluate_tick(context).cursor
                assert len(receiver.received) == messages, days
        alert = json.loads(receiver.received[0].body)
    assert (alert["kind"], alert["problems"]) == ("source_is_stale", ["store_a: no run has staged it for 10 days: look at its last runs"])
    assert alert["text"].startswith("music catalog: 1 source not staged in time\n- store_a")


def test_stale_source_is_reported_once_although_one_of_two_receivers_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.defs.alert_sensors.list_stale", lambda *_: {"store_a": "store_a: no run has staged it"})

    def evaluate(receivers: Receivers, cursor: str | None) -> dg.SensorExecutionData:
        [sensor] = [one for one in build_alert_sensors(receivers) if one.name == "alert_on_stale_sources"]
        with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, dg.build_sensor_context(instance=instance, cursor=cursor) as context:
            return sensor.evaluate_tick(context)

    with receiving(answers(500)) as receiver, mail_server() as server:
        tick = evaluate(Receivers(receiver.url, ("a@example.org",), server.url, "c@example.org"), None)
        assert "127.0.0.1: answers 500" in str(tick.skip_message)
        evaluate(Receivers(receiver.url, ("a@example.org",), server.url, "c@example.org"), tick.cursor)
        assert len(server.messages) == 1
        with pytest.raises(AlertError):
            evaluate(Receivers(receiver.url), None)


def test_without_receivers_there_are_no_alert_sensors() -> None:
    definitions = build_definitions({"catalog": CatalogResource(root="unset")})
    assert not [sensor for sensor in definitions.sensors or () if sensor.name.startswith("alert")]


def test_receivers_come_from_settings() -> None:
    settings = Settings(alert_webhook="https://x.example/h", alert_mail="a@x.example, b@x.example", mail_server="smtp://mail:25")
    assert build_receivers(settings).mail == ("a@x.example", "b@x.example")
    with pytest.raises(ValueError, match="needs CATALOG_MAIL_SERVER"):
        build_receivers(Settings(alert_mail="a@x.example"))
