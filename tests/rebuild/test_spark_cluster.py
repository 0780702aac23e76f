"""A build on a real Spark: a master and two workers, of which one is killed meanwhile, with second copies of slow tasks.

Also an executor as the image for Kubernetes starts it, and Spark as a reader of the published tables.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, run_module
from tests.pipeline.engine.spark_daemons import PYTHON, kill_group, start_spark
from tests.ports import free_port
from tests.rebuild.nights import table_hashes
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

RECORDINGS = 100_000


def write_settings(folder: Path) -> Path:
    """Let Spark copy every task that takes more than a second, and record its events; return the folder of settings."""
    (folder / "conf").mkdir()
    (folder / "events").mkdir()
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.task.duration.threshold": "1s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return folder / "conf"


def count_copies(events: Path) -> int:
    """Return the number of second copies of tasks that Spark has started."""
    lines = [json.loads(line) for file in events.iterdir() for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(line["Event"] == "SparkListenerTaskStart" and line["Task Info"]["Speculative"] for line in lines)


@pytest.mark.long
def test_a_build_on_spark_survives_the_death_of_a_worker_and_copies_of_tasks(tmp_path: Path) -> None:
    world, here, there, log = (tmp_path / name for name in ("world", "here", "there", "build.log"))
    run_module("pipeline", "simulate", "--recordings", str(RECORDINGS), "--seed", "5", "--out", world)
    run_module("pipeline", "build", "--dumps", world, "--catalog", here)
    conf = write_settings(tmp_path)
    with start_spark(tmp_path) as spark:
        with log.open("wb") as output:
            engine = {"CATALOG_ENGINE": spark.url, "CATALOG_ENGINE_TASKS": "2", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(conf)}
            command = [str(PYTHON), "-m", "pipeline", "build", "--dumps", str(world), "--catalog", str(there)]
            build = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **engine})
        # The buckets of atoms are the longest series of tasks.
        until(lambda: any((there / "work" / "linkage" / "normalised.spill").glob("normalised-*.done")), "the first slice", build)
        kill_group(spark.workers[0])
        until(lambda: spark.has_logged("Removing worker"), "the loss of a worker", build)
        assert build.wait(PATIENCE_SECONDS) == 0, log.read_text(encoding="utf-8")[-4000:]
    assert table_hashes(there) == table_hashes(here)
    assert count_copies(tmp_path / "events")


ASK = """
import os, sys
from pipeline.engine.pool import Engine, map_ordered, use_engine
from tests.pipeline.engine.pool_functions import process
with use_engine(Engine(sys.argv[1], 2)):
    print(os.getpid() not in list(map_ordered(process, range(3))))
"""
OPENED = ("java.nio", "sun.nio.ch", "java.lang", "java.lang.invoke", "java.util", "java.util.concurrent", "java.net")
"""Packages that Spark has its executors open."""


@pytest.mark.long
def test_the_entry_point_of_the_image_starts_an_executor(tmp_path: Path) -> None:
    port, conf = free_port(), tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(f"spark.driver.host 127.0.0.1\nspark.driver.port {port}\n")
    here = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(conf)}
    with start_spark(tmp_path, workers=0) as spark, (tmp_path / "executor.log").open("wb") as log:
        driver = subprocess.Popen([str(PYTHON), "-c", ASK, spark.url], cwd=ROOT, env=here, stdout=subprocess.PIPE, text=True)
        until(lambda: spark.has_logged("Registered app"), "the driver", driver)
        [application] = set(re.findall(r"app-\d+-\d+", spark.log.read_text(encoding="utf-8")))
        # Spark sets these in the pod of an executor.
        pod = {"POD_IP": "127.0.0.1", "POD_NAME": "pod", "ID": "1", "CORES": "2", "MEMORY": "1g"}
        options = {f"SPARK_JAVA_OPT_{number}": f"--add-opens=java.base/{name}=ALL-UNNAMED" for number, name in enumerate(OPENED)}
        place = {"SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}", "SPARK_APPLICATION_ID": application}
        variables = {
            **place,
            **options,
            "SPARK_RESOURCE_PROFILE_ID": "0",
            **{f"SPARK_EXECUTOR_{name}": value for name, value in pod.items()},
        }
        command = [str(ROOT / "scripts" / "spark_executor"), "executor"]
        executor = subprocess.Popen(command, env={**here, **variables}, stdout=log, stderr=subprocess.STDOUT)
        try:
            assert driver.communicate(timeout=PATIENCE_SECONDS)[0].strip().endswith("True")
            assert executor.wait(PATIENCE_SECONDS) == 0
        finally:
            driver.kill()
            executor.kill()


READ = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for folder in sorted(Path(sys.argv[1]).iterdir()):
    table = spark.read.parquet(str(folder))
    rows = [list(row.asDict(recursive=True).values()) for row in table.collect()]
    Path(sys.argv[2], folder.name).write_text(json.dumps([table.columns, sorted(map(str, rows))]))
"""


@pytest.mark.long
def test_spark_reads_the_rows_of_every_published_table(built_world: BuiltWorld, tmp_path: Path) -> None:
    tables = built_world.catalog / "current" / "tables"
    here = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    subprocess.run([str(PYTHON), "-c", READ, str(tables), str(tmp_path)], cwd=ROOT, env=here, check=True, timeout=PATIENCE_SECONDS)
    for folder in sorted(tables.iterdir()):
        table = pq.read_table(folder)
        rows = sorted(str(list(row.values())) for row in table.to_pylist())
        assert json.loads((tmp_path / folder.name).read_text(encoding="utf-8")) == [table.column_names, rows], folder.name
