"""Start, watch, restart and stop the companion processes of the server. Each is a program that could run alone.

    companions = Companions([Companion("matcher", ("audio_recognition", "matcher", "--socket", path))], folder)
    companions.start()
    companions.check()       # call it again and again from the thread that started them: it restarts those that died
    companions.stop()        # in reverse order

The contract with a companion:

- It logs to standard error, which all processes share (catalog_store/log.py formats the lines).
- SIGTERM asks it to end within `stop_seconds`. It also comes when the supervisor was killed.
- It may write metrics in Prometheus' text format to the file that COMPANION_METRICS names (`prometheus_client.write_to_textfile`). The
  supervisor shows them on `/metrics`. A companion that wrote this file and then leaves it for SILENT_SECONDS hangs; it is killed.

process_supervisor.py lists the companions. Out of scope: what a companion does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from catalog_api.server.restart_backoff import RestartBackoff

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

log = structlog.get_logger("catalog_api")

METRICS_VARIABLE = "COMPANION_METRICS"
"""Environment variable of a companion: the file for its metrics."""
SILENT_SECONDS = 60.0
"""Companions write their metrics every second or so. Loading an index may starve the writing thread, but far less long than this."""


@dataclass(frozen=True)
class Companion:
    """A program to run beside the workers: `python -m <module>`, the module first, then its arguments."""

    name: str
    """The unique name in log and metrics."""
    module: tuple[str, ...]
    stop_seconds: float = 10.0
    """The time it may take to end in order."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the supervisor's own."""


@dataclass
class CompanionState:
    """The state of one companion, for the metrics."""

    name: str
    is_up: bool
    restarts: int
    metrics: Path


class _CompanionProcess:
    """A companion and its process."""

    def __init__(self, companion: Companion, folder: Path) -> None:
        self.companion = companion
        self.metrics = folder / f"companion-{companion.name}.prom"
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = RestartBackoff()
        self._restart_at = 0.0

    @property
    def is_up(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None

    def start(self) -> None:
        module = [sys.executable, "-m", *self.companion.module]
        command = [sys.executable, "-m", "catalog_api.server.parent_watchdog", str(os.getpid()), *module]
        environment = {**os.environ, **self.companion.environment, METRICS_VARIABLE: str(self.metrics)}
        # Its own process group: Ctrl-C reaches only the supervisor, which lets requests finish before it stops what they need.
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, process_group=0)  # noqa: S603 - ours
        self._backoff.record_start(time.monotonic())
        log.info("companion started", companion=self.companion.name, pid=self._process.pid)

    def check(self, now: float) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._record_death(self._process.returncode, now)
        if self._process is None:
            if now >= self._restart_at:
                self.restarts += 1
                self.start()
        elif self._is_silent():
            log.error("companion hangs and is killed", companion=self.companion.name, silent_seconds=SILENT_SECONDS)
            # The next check sees its death and restarts it.
            self._process.kill()

    def ask_to_stop(self) -> None:
        if self.is_up and self._process is not None:
            self._process.terminate()

    def await_end(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(self.companion.stop_seconds)
        except subprocess.TimeoutExpired:
            seconds = self.companion.stop_seconds
            log.warning("companion did not stop in time and is killed", companion=self.companion.name, seconds=seconds)
            self._process.kill()
            self._process.wait()

    def record_failure(self, error: OSError, now: float) -> None:
        """Record that it could not be started: the delay is that of a death."""
        seconds = self._backoff.record_death(now)
        self._restart_at = now + seconds
        log.error("companion cannot be started", companion=self.companion.name, reason=str(error), again_in_seconds=seconds)

    def _record_death(self, code: int, now: float) -> None:
        seconds = self._backoff.record_death(now)
        self._restart_at = now + seconds
        log.error("companion died", companion=self.companion.name, exit_code=code, again_in_seconds=seconds)
        self._process = None
        # An old file would show stale metrics, and its age would make the successor look silent.
        with suppress(OSError):
            self.metrics.unlink()

    def _is_silent(self) -> bool:
        try:
            # A companion may write no metrics; one that began to and stops hangs. File times are those of the wall clock, not
            # monotonic.
            written_at = self.metrics.stat().st_mtime
        except OSError:
            return False
        return time.time() - written_at > SILENT_SECONDS


class Companions:
    """All companions of one supervisor. Its main thread uses them: the kernel signals a companion when the thread that started it ends."""

    def __init__(self, companions: Sequence[Companion], folder: Path) -> None:
        """`folder` is the folder for their metrics."""
        self._processes = [_CompanionProcess(companion, folder) for companion in companions]

    def start(self) -> None:
        """Start all, in order."""
        for process in self._processes:
            process.start()

    def check(self) -> None:
        """Restart those that died, once their delay is over; kill those that hang."""
        now = time.monotonic()
        for process in self._processes:
            try:
                process.check(now)
            except OSError as error:  # the system gives no process; the others must still be checked
                process.record_failure(error, now)

    def stop(self) -> None:
        """Stop all in reverse order: a companion may need those started before it."""
        for process in reversed(self._processes):
            process.ask_to_stop()
            process.await_end()

    def read_states(self) -> list[CompanionState]:
        """Return the state of each. Any thread may call it."""
        return [CompanionState(one.companion.name, one.is_up, one.restarts, one.metrics) for one in self._processes]
