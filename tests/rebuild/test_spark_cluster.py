"""A build on a real Spark: a master and two workers, of which one is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run_module
from tests.pipeline.engine.sail import listens
from tests.ports import free_port
from tests.rebuild.nights import table_hashes
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = ROOT / ".venv-spark" / "bin" / "python"
RECORDINGS = 100_000


@contextmanager
def start_daemon(log: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon of Spark with its executors in a process group of its own, and kill the group at the end."""
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
    if daemon.poll() is None:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()


@pytest.mark.long
def test_a_build_on_spark_survives_the_death_of_a_worker(tmp_path: Path) -> None:
    world, here, there = (tmp_path / name for name in ("world", "here", "there"))
    run_module("pipeline", "simulate", "--recordings", str(RECORDINGS), "--seed", "5", "--out", world)
    run_module("pipeline", "build", "--dumps", world, "--catalog", here)
    port, pages = free_port(), [str(free_port()) for _ in range(3)]
    master, log = f"spark://127.0.0.1:{port}", tmp_path / "build.log"
    with ExitStack() as daemons:
        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", pages[0])
        daemons.enter_context(start_daemon(tmp_path / "master.log", "org.apache.spark.deploy.master.Master", *place))
        until(lambda: listens(port))
        workers = [
            daemons.enter_context(
                start_daemon(
                    tmp_path / f"worker{number}.log",
                    *("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g"),
                    *("--webui-port", pages[number], master),
                    SPARK_WORKER_DIR=str(tmp_path / f"worker{number}"),
                )
            )
            for number in (1, 2)
        ]
        until(lambda: (tmp_path / "master.log").read_text(encoding="utf-8").count("Registering worker") == len(workers))
        with log.open("wb") as output:
            settings = {**os.environ, "CATALOG_ENGINE": master, "CATALOG_ENGINE_TASKS": "2", "SPARK_LOCAL_IP": "127.0.0.1"}
            command = [str(PYTHON), "-m", "pipeline", "build", "--dumps", str(world), "--catalog", str(there)]
            build = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=settings)
        # The buckets of atoms are the longest series of tasks.
        until(lambda: any((there / "work" / "linkage" / "normalised.spill").glob("normalised-*.done")), "the first slice", build)
        kill_group(workers[0])
        until(lambda: "Removing worker" in (tmp_path / "master.log").read_text(encoding="utf-8"), "the loss of a worker", build)
        assert build.wait(PATIENCE_SECONDS) == 0, log.read_text(encoding="utf-8")[-4000:]
    assert table_hashes(there) == table_hashes(here)
