"""The schedule of the nightly job."""

import dagster as dg

from pipeline.defs.jobs import nightly_job


def build_nightly_schedule(cron: str) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly build at `cron` (UTC). It is stopped until an operator switches it on."""
    return dg.ScheduleDefinition(name="nightly", job=nightly_job, cron_schedule=cron, execution_timezone="UTC")
