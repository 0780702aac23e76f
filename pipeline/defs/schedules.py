"""The schedule of the nightly job."""

import dagster as dg

from pipeline.defs.jobs import nightly_job


def build_nightly_schedule(cron: str) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly build at `cron` (UTC)."""
    # Dagster's default status is STOPPED: an operator switches the schedule on.
    return dg.ScheduleDefinition(name="nightly", job=nightly_job, cron_schedule=cron, execution_timezone="UTC")
