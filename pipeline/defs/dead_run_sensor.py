"""A sensor that fails runs whose process no longer exists: after a reboot, the kernel's out-of-memory killer, or `kill -9`.

Dagster's default launcher starts runs as processes of this machine and does not watch them, so the run of a dead process stays STARTED.
One run at a time may write to the catalog. Without this sensor, the next run would stay QUEUED for ever.
"""

import os
import time
from pathlib import Path

import dagster as dg

from pipeline.build.catalog_claim import Process
from pipeline.defs.run_processes import read_process_ids

SENSOR = "fail_dead_runs"
_SECONDS_BETWEEN_LOOKS = 30
_CLOCK_SLACK_SECONDS = 60.0
"""Largest change of the clock since the start of a process at which it still counts as the same process."""


def build_dead_run_sensor() -> dg.SensorDefinition:
    """Return the sensor. It runs from the start, because an instance whose queue is blocked can do nothing else."""

    @dg.sensor(
        name=SENSOR,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=_SECONDS_BETWEEN_LOOKS,
        description="Fails a run whose process was killed, so that the next run in the queue can start.",
    )
    def fail_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        failed = fail_runs_of_dead_processes(context.instance)
        return dg.SkipReason(f"failed {', '.join(failed)}" if failed else "every started run has its process")

    return fail_dead_runs


def fail_runs_of_dead_processes(instance: dg.DagsterInstance) -> list[str]:
    """Report each started run without a living process as failed. Return the ids of these runs."""
    failed = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        dead = find_dead_process(run.run_id, instance)
        # A process that ends well reports its success first. The run read above may be older than that report.
        again = instance.get_run_by_id(run.run_id) if dead else None
        if again is not None and again.status == dg.DagsterRunStatus.STARTED:
            instance.report_run_failed(again, f"process {dead} of this run no longer exists: it was killed, or the machine restarted")
            failed.append(run.run_id)
    return failed


def find_dead_process(run_id: str, instance: dg.DagsterInstance) -> int | None:
    """Return the process id of a run if that process no longer exists."""
    found = next(read_process_ids(run_id, instance), None)
    # A run without a known process may just have been launched. To call it dead would fail a healthy run.
    return None if found is None or is_alive(*found) else found[0]


def is_alive(pid: int, since: float) -> bool:
    """Return whether the process with this number has lived since that time (seconds since the epoch)."""
    # After a reboot another process may have the number; then it started later. The kernel counts from the boot and the event log from the
    # epoch, so corrections of the clock are between the two.
    found = Process.find(pid)
    if found is None:
        return False
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    age = uptime - found.started / os.sysconf("SC_CLK_TCK")
    return time.time() - age <= since + _CLOCK_SLACK_SECONDS
