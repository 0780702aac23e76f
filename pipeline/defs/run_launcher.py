"""A run launcher that reports dead processes: after a reboot, the kernel's out-of-memory killer, or `kill -9`.

Dagster's own launcher starts runs as processes of this machine and does not watch them. The run of a dead process stays STARTED. As one run
goes at a time, the next one then stays QUEUED for ever. This launcher answers Dagster's run monitoring; `dagster.yaml` names it.

Dagster exports neither the form of that answer nor its states. tests/pipeline/defs/test_dagster_internals.py fails when it changes them.
"""

import os
import time
from pathlib import Path

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

from pipeline.build.catalog_claim import Process
from pipeline.defs.run_processes import read_process_ids

_CLOCK_SLACK_SECONDS = 60.0
"""Largest change of the clock since the start of a process at which it still counts as the same process."""


class LocalRunLauncher(dg.DefaultRunLauncher):
    """Dagster's default launcher, which also reports whether the process of a run lives."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: run monitoring may ask."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return RUNNING while the process lives, or when no process is known."""
        # A run without a known process may just have been launched. To call it dead would fail a healthy run.
        found = next(read_process_ids(run.run_id, self._instance), None)
        if found is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        pid, since = found
        if is_alive(pid, since):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(
            WorkerStatus.FAILED, f"process {pid} of this run no longer exists: it was killed, or the machine restarted"
        )


def is_alive(pid: int, since: float) -> bool:
    """Return whether the process with this number has lived since that time (seconds since the epoch)."""
    # After a reboot another process may have the number; then it started later. The kernel counts from the boot and the event log from the
    # epoch, so corrections of the clock lie between the two.
    found = Process.find(pid)
    if found is None:
        return False
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    age = uptime - found.started / os.sysconf("SC_CLK_TCK")
    return time.time() - age <= since + _CLOCK_SLACK_SECONDS
