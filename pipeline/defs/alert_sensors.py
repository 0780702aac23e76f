"""Sensors that send alerts: a run failed, a build went through and some of its checks warn, or a source was not staged in time."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import dagster as dg

from pipeline.alerts import Alert, AlertError, Receivers
from pipeline.defs.dump_assets import build_staging_key
from pipeline.dumps.landing.sources import Source
from pipeline.settings import Settings

_MOST_PROBLEMS = 20
_SECONDS_BETWEEN_LOOKS = 60
_STALE = "FAIL"
"""Value of a state of freshness; Dagster does not export the class."""
_CHECK_FAILED = "DagsterAssetCheckFailedError"
"""Name of the error of a step with a failed blocking check; Dagster does not export the class."""


def build_receivers(settings: Settings) -> Receivers:
    """Return the receivers that an operator has named. ValueError when mail addresses lack a server."""
    if settings.alert_mail and not settings.mail_server:
        raise ValueError(f"CATALOG_ALERT_MAIL={settings.alert_mail!r}: needs CATALOG_MAIL_SERVER, as `smtp://localhost:25`")
    addresses = tuple(address.strip() for address in (settings.alert_mail or "").split(",") if address.strip())
    return Receivers(settings.alert_webhook, addresses, settings.mail_server, settings.mail_sender)


def list_warnings(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """Return a line for each check of a run that failed without stopping it."""
    return [_describe(check) for _, check in find_failed_checks(instance, run_id)]


def find_failed_checks(instance: dg.DagsterInstance, run_id: str) -> list[tuple[str, dg.AssetCheckEvaluation]]:
    """Return each failed check of a run with its step."""
    # Checks of all results of a run, also of those that a run retried: the last evaluation of a check counts.
    found: dict[tuple[dg.AssetKey, str], tuple[str, dg.AssetCheckEvaluation]] = {}
    for record in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
        event = record.get_dagster_event()
        check = event.asset_check_evaluation_data
        found[check.asset_key, check.check_name] = str(event.step_key), check
    return [(step, check) for step, check in found.values() if not check.passed]


def _describe(check: dg.AssetCheckEvaluation) -> str:
    problem = check.metadata.get("problem")
    return f"{check.asset_key.to_user_string()} {check.check_name}: {check.description or (problem.value if problem else 'failed')}"


def list_failures(context: dg.RunFailureSensorContext) -> Iterator[str]:
    """Yield why the steps of a run failed; the failure of the run itself if no step did."""
    steps = context.get_step_failure_events()
    checks = find_failed_checks(context.instance, context.dagster_run.run_id)
    for event in steps:
        failure = event.step_failure_data
        # Dagster's error names the failed checks of a step, and not what they found.
        if failure.error and failure.error.cls_name == _CHECK_FAILED:
            yield from (f"{step}: {_describe(check)}" for step, check in checks if step == event.step_key and check.blocking)
            continue
        # A dagster.Failure says what failed and where; the error that caused it may know neither platform nor date.
        said = failure.user_failure_data.description if failure.user_failure_data else None
        # The message of an error that a step raised is in its cause.
        cause = failure.error.cause if failure.error and failure.error.cause else failure.error
        yield f"{event.step_key}: {said or (cause.message.strip() if cause else 'failed')}"
    if not steps:
        end = find_end(context.instance, context.dagster_run.run_id)
        yield end or context.failure_event.message or "the run failed before its first step"


def find_end(instance: dg.DagsterInstance, run_id: str) -> str | None:
    """Return how the process of a run ended; None if nobody has seen it end."""
    # The server that started the process writes it as an event of its own. Its failure of the run has no cause.
    marker = f"Run execution process for {run_id}"
    events = [record.get_dagster_event() for record in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)]
    return next((event.message[event.message.index(marker) :] for event in events if event.message and marker in event.message), None)


def list_stale(instance: dg.DagsterInstance, sources: Mapping[str, Source]) -> dict[str, str]:
    """Return a line for each source whose staging the freshness daemon last found to be older than the source allows."""
    keys = {build_staging_key(name): source for name, source in sources.items() if source.fresh_days}
    records = instance.get_freshness_state_records(list(keys)) if keys else {}
    return {
        source.platform: f"{source.platform}: no run has staged it for {source.fresh_days} days: look at its last runs"
        for key, source in keys.items()
        if key in records and records[key].freshness_state.value == _STALE
    }


def build_alert_sensors(receivers: Receivers, sources: Mapping[str, Source] = MappingProxyType({})) -> list[dg.SensorDefinition]:
    """Return the sensors; none without a receiver of alerts. `sources` by input, for those with a limit of freshness."""
    if not receivers.webhook and not receivers.mail:
        return []

    # They write to no catalog, and an operator who names a receiver wants them to run.
    @dg.run_failure_sensor(
        name="alert_on_failure", default_status=dg.DefaultSensorStatus.RUNNING, description="Tells the operator that a run has failed."
    )
    def alert_on_failure(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        receivers.send(Alert("run_failed", run.job_name, run.run_id, tuple(list_failures(context))[:_MOST_PROBLEMS]))

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name="alert_on_warnings",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells the operator of a build that went through although checks warn: an old or broken dump, another layout.",
    )
    def alert_on_warnings(context: dg.RunStatusSensorContext) -> dg.SkipReason | None:
        run = context.dagster_run
        warnings = list_warnings(context.instance, run.run_id)
        if not warnings:
            return dg.SkipReason(f"run {run.run_id} has no warning")
        receivers.send(Alert("build_needs_a_look", run.job_name, run.run_id, tuple(warnings[:_MOST_PROBLEMS])))
        return None

    @dg.sensor(
        name="alert_on_stale_sources",
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=_SECONDS_BETWEEN_LOOKS,
        description="Tells the operator of a source that no run has staged within its limit `fresh_days`.",
    )
    def alert_on_stale_sources(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        stale, known = list_stale(context.instance, sources), json.loads(context.cursor or "[]")
        news, refusal = [line for name, line in stale.items() if name not in known], ""
        try:
            if news:
                receivers.send(Alert("source_is_stale", "", "", tuple(news)))
        except AlertError as error:
            # The cursor of a failed tick stays, so the next one sends the alert again: every minute, also to a receiver that has it.
            if not error.is_received:
                raise
            refusal = f"; {error}"
        return dg.SensorResult(skip_reason=f"{len(stale)} stale, {len(news)} of them news{refusal}", cursor=json.dumps(sorted(stale)))

    return [alert_on_failure, alert_on_warnings, alert_on_stale_sources]
