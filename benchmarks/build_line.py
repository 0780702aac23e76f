"""The whole pipeline at a given size: simulate a world, build it twice, compare the builds, print the cost of each stage.

    python -m benchmarks.build_line --recordings 1000000 --work DIR

Prints the stages of the first build (wall seconds, processor seconds with those of workers, peak memory of the building process and of its
largest worker, spilled and written bytes), linkage against the truth, the second build (unchanged dumps) and whether its tables are the
same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> tuple[float, str]:
    """Run `python -m pipeline <arguments>` and return wall seconds and standard output; exit with all that a failed command said."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "pipeline", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pipeline {' '.join(arguments)} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - started, done.stdout


def hash_tables(catalog: Path) -> dict[str, str]:
    """Return the SHA-256 of every Parquet part of the live snapshot."""
    tables = (catalog / "current" / "tables").resolve()
    return {str(path.relative_to(tables)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(tables.rglob("*.parquet"))}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--work", type=Path, required=True, help="empty folder for dumps and catalog")
    options = parser.parse_args()
    world, catalog = options.work / "world", options.work / "catalog"

    seconds, _ = run("simulate", "--recordings", str(options.recordings), "--seed", str(options.seed), "--out", str(world))
    print(f"simulate {options.recordings:,} recordings: {seconds:.0f} s")
    seconds, output = run("build", "--dumps", str(world), "--catalog", str(catalog))
    built = json.loads(output)
    # A source without a dump is a stage without a cost.
    measured = [stage for stage in built["stages"] if "seconds" in stage]
    print(f"build: {seconds:.0f} s, {built['recordings']:,} recordings\n")
    print(f"| {'stage':24} | wall s | CPU s | of workers | peak GB | worker GB | spilled GB | written GB |\n|{'---|' * 8}")
    for stage in measured:
        times = [stage[name] for name in ("seconds", "cpu_seconds", "worker_cpu_seconds")]
        sizes = [stage[name] / 1e9 for name in ("peak_memory_bytes", "worker_peak_memory_bytes", "spill_bytes", "written_bytes")]
        print(f"| {stage['stage']:24} | " + " | ".join([*(f"{value:.1f}" for value in times), *(f"{value:.2f}" for value in sizes)]) + " |")
    cpu = sum(stage["cpu_seconds"] for stage in measured)
    # The building process resets its peak before each stage, so the system's figure covers only the other commands.
    stages = max(max(stage["peak_memory_bytes"], stage["worker_peak_memory_bytes"]) for stage in measured)
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"\n{cpu:.1f} CPU-s, {cpu / built['recordings'] * 1e6:.0f} per million recordings")
    print(f"largest process: {max(stages, others) / 1e9:.2f} GB")

    answer = json.loads(run("evaluate", "--catalog", str(catalog), "--truth", str(world))[1])
    print({name: answer[name] for name in ("precision", "recall", "f1", "mixed_clusters", "recordings", "true_recordings")})

    first = hash_tables(catalog)
    seconds, _ = run("build", "--dumps", str(world), "--catalog", str(catalog))
    print(f"second build, dumps unchanged: {seconds:.0f} s; tables byte-identical: {hash_tables(catalog) == first} ({len(first)} parts)")


if __name__ == "__main__":
    main()
