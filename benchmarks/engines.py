"""One world, built by each engine: CPU of every process, memory and stages, and whether the tables are equal.

    python -m benchmarks.engines WORLD --work DIR --engines local sail spark

WORLD is a folder of `python -m pipeline simulate`. Spark needs `scripts/spark_tools`. Each build gets two tasks at once. Processor time of
stages is that of our functions: on Sail they run inside of its server, so its own work is part of theirs; on Spark they run in processes
of Python, and the Java processes are in the sum alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.build_line import hash_tables
from benchmarks.measurement import ROOT, Run, measure
from tests.pipeline.engine.sail import start_sail
from tests.pipeline.engine.spark_daemons import PYTHON, start_spark

ENGINES = ("local", "sail", "spark")
TASKS = 2
_SAMPLE_SECONDS = 1.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class MemoryGauge(threading.Thread):
    """Keeps the largest sum of resident memory of this process and all that it has started. Shared pages count several times."""

    def __init__(self) -> None:
        """Begin with the group of this process."""
        super().__init__(daemon=True)
        self.most_bytes = 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Measure at intervals."""
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.most_bytes = max(self.most_bytes, sum(map(_read_resident_bytes, _list_family())))

    def stop(self) -> int:
        """End, and return the bytes."""
        self._ended.set()
        self.join()
        return self.most_bytes


def _list_family() -> set[int]:
    """Return this process and its descendants, and what they have left behind."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    # The supervisor above this process adopts orphans (benchmarks/measurement.py).
    family = {os.getppid()}
    while found := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= found
    return family


def _read_resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def build(engine: str, world: str, work: str) -> dict[str, Any]:
    """Build the world on an engine, and return its stages, the largest memory of all processes, and the hashes of the tables."""
    folder = Path(work) / engine
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as servers:
        environment = {}
        if engine == "sail":
            environment = {"CATALOG_ENGINE": servers.enter_context(start_sail(folder / "log"))}
        elif engine == "spark":
            environment = {"CATALOG_ENGINE": servers.enter_context(start_spark(folder, TASKS)).url, "SPARK_LOCAL_IP": "127.0.0.1"}
        gauge = MemoryGauge()
        gauge.start()
        python = str(PYTHON) if engine == "spark" else sys.executable
        command = [python, "-m", "pipeline", "build", "--dumps", world, "--catalog", str(folder / "catalog")]
        settings = {**os.environ, "CATALOG_ENGINE_TASKS": str(TASKS), **environment}
        built = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=settings).stdout)
        memory = gauge.stop()
    tables = hash_tables(folder / "catalog")
    shutil.rmtree(folder)
    return {"recordings": built["recordings"], "stages": built["stages"], "memory": memory, "tables": tables}


def print_stages(runs: dict[str, Run]) -> None:
    """Print CPU, wall seconds and peak memory of each stage, and of whole builds."""
    stages = {engine: {s["stage"]: s for s in run.answer["stages"] if "seconds" in s} for engine, run in runs.items()}
    print(
        "| stage | "
        + " | ".join(f"{engine} CPU s | of workers | wall s | main GB | worker GB" for engine in runs)
        + " |\n|---|"
        + "---|" * 5 * len(runs)
    )
    for stage in next(iter(stages.values())):
        cells = []
        for found in stages.values():
            cost = found[stage]
            cells += [f"{cost['cpu_seconds']:.1f}", f"{cost['worker_cpu_seconds']:.1f}", f"{cost['seconds']:.1f}"]
            cells += [f"{cost[name] / 1e9:.2f}" for name in ("peak_memory_bytes", "worker_peak_memory_bytes")]
        print(f"| {stage} | " + " | ".join(cells) + " |")
    first = next(iter(runs.values()))
    for engine, run in runs.items():
        ours, theirs = (sum(stage[name] for stage in stages[engine].values()) for name in ("cpu_seconds", "worker_cpu_seconds"))
        print(
            f"{engine}: {run.cpu:.0f} CPU-s of all processes ({run.cpu / first.cpu:.2f}), {ours:.0f} of stages, "
            f"{theirs:.0f} of these in workers ({theirs / ours:.0%}); {run.wall:.0f} s; "
            f"{run.answer['memory'] / 1e9:.2f} GB at most; tables equal: {run.answer['tables'] == first.answer['tables']}"
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder for catalogs, which are removed")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    options = parser.parse_args()
    runs = {}
    for engine in options.engines:
        runs[engine] = measure("benchmarks.engines:build", engine, str(options.world.resolve()), str(options.work.resolve()))
        recordings = runs[engine].answer["recordings"]
        print(f"{engine}: {recordings:,} recordings, {runs[engine].cpu:.0f} CPU-s, {runs[engine].wall:.0f} s", flush=True)
    print_stages(runs)


if __name__ == "__main__":
    main()
