"""A standalone Spark on this machine: a master and workers, each a process group of its own. `scripts/spark_tools` installs it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tests.pipeline.engine.sail import ROOT, listens
from tests.ports import free_port
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = ROOT / ".venv-spark" / "bin" / "python"


class Spark(NamedTuple):
    """`url` of the master, and the daemons of the workers."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    log: Path

    def has_logged(self, text: str, times: int = 1) -> bool:
        """Return whether the master has logged a text so many times."""
        return self.log.read_text(encoding="utf-8").count(text) >= times


@contextmanager
def start_spark(folder: Path, workers: int = 2) -> Iterator[Spark]:
    """Start a master and workers with two cores each, with logs and work in `folder`, and kill them at the end."""
    port, pages, log = free_port(), [str(free_port()) for _ in range(workers + 1)], folder / "master.log"
    with ExitStack() as daemons:
        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", pages[0])
        daemons.enter_context(_start_daemon(log, "org.apache.spark.deploy.master.Master", *place))
        until(lambda: listens(port))
        spark = Spark(f"spark://127.0.0.1:{port}", [], log)
        for number in range(1, workers + 1):
            # Spark starts no second copy of a task on the host of the first one.
            host = f"127.0.0.{number + 1}"
            command = ("org.apache.spark.deploy.worker.Worker", "--host", host, "-c", "2", "-m", "1g", "--webui-port", pages[number])
            work = {"SPARK_WORKER_DIR": str(folder / f"worker{number}"), "SPARK_LOCAL_IP": host}
            daemon = _start_daemon(folder / f"worker{number}.log", *command, spark.url, **work)
            spark.workers.append(daemons.enter_context(daemon))
        until(lambda: spark.has_logged("Registering worker", workers))
        yield spark


@contextmanager
def _start_daemon(log: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    home = next((ROOT / ".venv-spark").glob("lib/python*/site-packages/pyspark"))
    with log.open("wb") as output:
        command = [str(home / "bin" / "spark-class"), *arguments]
        settings = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT), **environment}
        daemon = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=settings, start_new_session=True)
    try:
        yield daemon
    finally:
        kill_group(daemon)


def kill_group(daemon: subprocess.Popen[bytes]) -> None:
    """Kill a daemon with its executors."""
    if daemon.poll() is None:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
