"""Start, watch, restart and stop the companion processes of the server. Each is a program that could run alone.

    companions = Companions([Companion("matcher", ("audio_recognition", "matcher", "--socket", path))], folder)
    companions.start()
    companions.look()        # call it again and again from the thread that started them: it restarts those that died
    companions.stop()        # in reverse order

The contract with a companion:

- It logs to standard error, which all processes share (catalog_store/log.py formats the lines).
- SIGTERM asks it to end within `stop_seconds`. It also comes when the supervisor was killed.
- It may write metrics in Prometheus' text format to the file that COMPANION_METRICS names (`prometheus_client.write_to_textfile`). The
  supervisor shows them on `/metrics`. A companion that wrote this file and then leaves it for SILENT_SECONDS hangs; it is killed.

process_supervisor.py lists the companions. What must not live here: what a companion does.
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

from catalog_api.server.restart_backoff import Restarts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

log = structlog.get_logger("catalog_api")

METRICS_VARIABLE = "COMPANION_METRICS"
"""Environment variable of a companion: the file for its metrics."""
SILENT_SECONDS = 60.0
"""Of a file of metrics that is written every second or so: far longer than loading an index may starve the thread that writes it."""


@dataclass(frozen=True)
class Companion:
    """A program to run beside the workers: `python -m <module>`, the module first, then its arguments."""

    name: str
    """In log and metrics; unique."""
    module: tuple[str, ...]
    stop_seconds: float = 10.0
    """What it may take to end in order."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside the supervisor's own."""


@dataclass
class State:
    """Of one companion, for the metrics."""

    name: str
    is_up: bool
    restarts: int
    metrics: Path


class _Run:
    """A companion and its process."""

    def __init__(self, companion: Companion, folder: Path) -> None:
        self.companion = companion
        self.metrics = folder / f"companion-{companion.name}.prom"
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = Restarts()
        self._again_at = 0.0

    @property
    def is_up(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None

    def start(self) -> None:
        module = [sys.executable, "-m", *self.companion.module]
        tied = [sys.executable, "-m", "catalog_api.server.parent_watchdog", str(os.getpid()), *module]
        environment = {**os.environ, **self.companion.environment, METRICS_VARIABLE: str(self.metrics)}
        # A group of its own: Ctrl-C reaches the supervisor, which lets requests finish before it stops what they need.
        self._process = subprocess.Popen(tied, env=environment, stdin=subprocess.DEVNULL, process_group=0)  # noqa: S603 - ours
        self._restarts.note_start(time.monotonic())
        log.info("companion started", companion=self.companion.name, pid=self._process.pid)

    def look(self, now: float) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._note_death(self._process.returncode, now)
        if self._process is None:
            if now >= self._again_at:
                self.restarts += 1
                self.start()
        elif self._is_silent():
            log.error("companion hangs and is killed", companion=self.companion.name, silent_seconds=SILENT_SECONDS)
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

    def note_failure(self, error: OSError, now: float) -> None:
        """It could not be started: wait as after a death."""
        seconds = self._restarts.note_death(now)
        self._again_at = now + seconds
        log.error("companion cannot be started", companion=self.companion.name, reason=str(error), again_in_seconds=seconds)

    def _note_death(self, code: int, now: float) -> None:
        seconds = self._restarts.note_death(now)
        self._again_at = now + seconds
        log.error("companion died", companion=self.companion.name, exit_code=code, again_in_seconds=seconds)
        self._process = None
        with suppress(OSError):
            self.metrics.unlink()

    def _is_silent(self) -> bool:
        try:
            written_at = self.metrics.stat().st_mtime
        except OSError:
            return False
        return time.time() - written_at > SILENT_SECONDS


class Companions:
    """All companions of one supervisor. To be used by its main thread: a companion is told when the thread that started it is gone."""

    def __init__(self, companions: Sequence[Companion], folder: Path) -> None:
        """`folder` is where their metrics are written."""
        self._runs = [_Run(companion, folder) for companion in companions]

    def start(self) -> None:
        """Start all, in order."""
        for run in self._runs:
            run.start()

    def look(self) -> None:
        """Start anew what died, once its time has come; kill what hangs."""
        now = time.monotonic()
        for run in self._runs:
            try:
                run.look(now)
            except OSError as error:  # no process to be had: it must not keep the others from being looked at
                run.note_failure(error, now)

    def stop(self) -> None:
        """End all, the last first: one may lean on those started before it."""
        for run in reversed(self._runs):
            run.ask_to_stop()
            run.await_end()

    def states(self) -> list[State]:
        """How they are. From any thread."""
        return [State(run.companion.name, run.is_up, run.restarts, run.metrics) for run in self._runs]
