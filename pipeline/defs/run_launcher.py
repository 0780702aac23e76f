"""How Dagster's daemon learns that a run is over whose process died: in a reboot, by the kernel's memory killer, by `kill -9`.

Dagster's own launcher starts runs as processes of this machine and never looks at them again: a run whose process died stays STARTED, and
with one run at a time the next one is QUEUED for ever. This launcher answers what run monitoring asks; `dagster.yaml` names it.
"""

import os
import time
from pathlib import Path

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus

from pipeline.build.claim import Process
from pipeline.defs.run_processes import process_ids

_CLOCK_SLACK_SECONDS = 60.0
"""How far the clock may have been set between the start of a process and now, without the process being taken for another one."""


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's default launcher, which also tells whether the process of a run lives."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Run monitoring asks."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """RUNNING while the process lives, or when nothing is known of one."""
        told = next(process_ids(run.run_id, self._instance), None)
        if told is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        pid, since = told
        if is_alive(pid, since):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"process {pid} of this run is gone: killed, or the machine was started anew")


def is_alive(pid: int, since: float) -> bool:
    """Whether a process of that number lives and was there at that time: after a reboot another one may have the number."""
    found = Process.find(pid)
    if found is None:
        return False
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    age = uptime - found.started / os.sysconf("SC_CLK_TCK")
    return time.time() - age <= since + _CLOCK_SLACK_SECONDS
