"""When the nightly job runs."""

import dagster as dg

from pipeline.defs.jobs import nightly_job


def nightly_schedule(cron: str) -> dg.ScheduleDefinition:
    """The nightly build at `cron` (UTC). Stopped until an operator switches it on."""
    return dg.ScheduleDefinition(name="nightly", job=nightly_job, cron_schedule=cron, execution_timezone="UTC")
