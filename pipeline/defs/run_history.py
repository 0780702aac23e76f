"""Retention of Dagster's runs: Dagster itself never removes events and logs."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipeline.defs.resources import CatalogResource

FORGET = "forget_old_runs"
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_MOST_AT_ONCE = 1000
"""Runs removed by one run of the job; the next run removes the others."""


@dg.op(description="Remove ended runs that are older than CATALOG_KEEP_RUN_DAYS, except those that made the current version of an asset.")
def forget_runs(context: dg.OpExecutionContext, catalog: CatalogResource) -> int:
    """Remove old runs with their events and captured logs, and return their number."""
    instance = context.instance
    oldest = datetime.now(UTC) - timedelta(days=catalog.keep_run_days)
    needed = set(find_needed_runs(instance))
    old = instance.get_run_ids(filters=dg.RunsFilter(statuses=_ENDED, created_before=oldest), limit=_MOST_AT_ONCE)
    expired = [run_id for run_id in old if run_id not in needed]
    for run_id in expired:
        # delete_run leaves the captured output of the steps behind.
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    catalog.report(f"removed {len(expired)} runs from before {oldest:%Y-%m-%d}")
    return len(expired)


def find_needed_runs(instance: dg.DagsterInstance) -> Iterator[str]:
    """Yield the runs that made the current assets and partitions, and the last run of each asset. Dagster shows them at any age."""
    for entry in (record.asset_entry for record in instance.get_asset_records()):
        # The last run may have failed before it made the asset.
        if entry.last_run_id:
            yield entry.last_run_id
        if entry.last_materialization:
            yield entry.last_materialization.run_id
        # Without its run Dagster takes a filled partition for an empty one.
        for partition in instance.get_materialized_partitions(entry.asset_key):
            newest = dg.AssetRecordsFilter(asset_key=entry.asset_key, asset_partitions=[partition])
            yield from (found.run_id for found in instance.fetch_materializations(newest, limit=1).records)


@dg.job(name=FORGET, description="Bounds the run history of Dagster; writes to no catalog.")
def forget_old_runs() -> None:
    """Remove old runs."""
    forget_runs()


def build_retention_schedule() -> dg.ScheduleDefinition:
    """Return the schedule: every Sunday, long after the nightly build, and running by default."""
    return dg.ScheduleDefinition(
        name=FORGET,
        job=forget_old_runs,
        cron_schedule="0 15 * * 0",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,  # it writes to no catalog, and without it the history grows for ever
    )
