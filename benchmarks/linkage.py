"""Linkage beside Splink 5 on the same rows, its memory at two sizes, and the effect of its guards.

    python -m benchmarks.linkage [--sections splink memory guards nights] [--recordings 100000] [--seed 21] [--runs 1] [--work DIR]

splink: a simulated world read by our adapters. From the same keys to clusters: ours, and Splink on DuckDB with training and with a model
trained before, each at its best threshold by the truth. Beside them the whole of ours, from staged tables to lasting ids on
disk (or a frame in memory), which makes the keys and more. Every contestant in a fresh process (`scripts/setup .venv-bench
requirements-bench.lock` makes Splink's environment), on the same processors, in turns; of several runs the one with the least CPU counts.
CPU is that of all processes, reading and writing included.
memory: linkage alone, stage by stage in fresh processes, at one size and at `--times` it. guards: mixed recordings with and without them.
nights: nights with 0.3 % changed rows, merges and splits among them; goal: at most 15 % of the CPU of linking everything, same tables.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.linkage_nights import run_nights
from benchmarks.linkage_runs import STAGES, read_member
from benchmarks.linkage_worlds import list_parquet_files, read_truth, stage_world
from benchmarks.measurement import Run, measure
from benchmarks.thresholds import find_best_weight
from pipeline.linkage.evaluation import evaluate

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

ROOT = Path(__file__).resolve().parent.parent
SPLINK_PYTHON = ROOT / ".venv-bench" / "bin" / "python"

TRAINED_GOAL, PRETRAINED_GOAL = 2.5, 1.2
"""Goals: the CPU time of Splink divided by ours."""
MEMORY_GOAL = 0.5
"""Share of Splink's peak."""
FLAT_GOAL = 1.15
"""Growth of a worker's peak that counts as flat."""
GUARDS_GOAL = 100
NIGHT_GOAL = 0.15


@dataclass(frozen=True)
class Contestant:
    """The cost of one linker in its best run, and its quality."""

    name: str
    run: Run
    figures: dict[str, float]

    def __str__(self) -> str:
        run, figures = self.run, self.figures
        quality = "".join(f"{figures[name]:>11.5f}" for name in ("precision", "recall", "f1"))
        return f"{self.name:<28}{run.cpu:>9.1f}{run.wall:>9.1f}{run.memory:>10.0f}{quality}{figures['mixed']:>9.0f}"


def compare_with_splink(paths: BuildPaths, folder: Path, runs: int) -> None:
    """Print the table of contestants and the goals."""
    if not SPLINK_PYTHON.exists():
        raise SystemExit("Splink is not installed: run `scripts/setup .venv-bench requirements-bench.lock` (or `make bench`)")
    root, keys, truth = str(paths.root), str(folder / "keys"), read_truth(paths)
    normalised = measure("benchmarks.linkage_runs:write_keys_of_world", root, keys)
    versions = measure("benchmarks.splink_peer:explore", keys, str(folder), python=str(SPLINK_PYTHON)).answer
    records = pl.read_parquet(list_parquet_files(Path(keys)), columns=["record", "platform", "external_id"])
    weight, _ = find_best_weight(
        pl.read_parquet(folder / "pairs.parquet"),
        records.join(truth, on=["platform", "external_id"], how="left", maintain_order="left")["true_recording_id"],
    )
    calls = {
        "ours, from the same keys": ("benchmarks.linkage_runs:link_from_keys", keys, str(folder / "from_keys.parquet")),
        "ours, tables": ("benchmarks.linkage_runs:run_stages", root),
        "ours, frame": ("benchmarks.linkage_runs:link_in_memory", root, str(folder / "frame.parquet")),
        "Splink with training": ("benchmarks.splink_peer:train_and_cluster", keys, str(folder), str(weight)),
        "Splink pre-trained": ("benchmarks.splink_peer:cluster_pretrained", keys, str(folder), str(weight)),
    }
    taken: dict[str, list[Run]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, (function, *arguments) in calls.items():
            environment = {"python": str(SPLINK_PYTHON)} if "splink_peer" in function else {}
            taken[name].append(measure(function, *arguments, **environment))
    members = {
        "ours, from the same keys": pl.read_parquet(folder / "from_keys.parquet"),
        "ours, tables": read_member(root),
        "ours, frame": pl.read_parquet(folder / "frame.parquet"),
        "Splink with training": _read_splink_member(records, folder / "trained.parquet"),
        "Splink pre-trained": _read_splink_member(records, folder / "pretrained.parquet"),
    }
    found = {
        name: Contestant(name, min(taken[name], key=lambda run: run.cpu), _compute_figures(member, truth))
        for name, member in members.items()
    }
    print(f"\n{records.height:,} records; Splink {versions['splink']}, DuckDB {versions['duckdb']}, Polars {version('polars')}; ", end="")
    print(f"{len(os.sched_getaffinity(0))} processors; runs: {runs}; Splink's threshold: match weight {weight:.3f}")
    print(f"{'':<28}{'CPU s':>9}{'wall s':>9}{'peak MiB':>10}{'precision':>11}{'recall':>11}{'F1':>11}{'mixed/M':>9}")
    print(*found.values(), sep="\n")
    print(f"making the keys, which ours does and Splink is given: {normalised.cpu:.1f} CPU s\n")
    _print_verdicts(found, normalised)


def _read_splink_member(records: pl.DataFrame, clusters: Path) -> pl.DataFrame:
    found = pl.read_parquet(clusters).select(pl.col("record").cast(pl.Int64), recording_id=pl.col("cluster_id").cast(pl.Int64))
    return records.join(found, on="record").select("platform", "external_id", "recording_id")


def _compute_figures(member: pl.DataFrame, truth: pl.DataFrame) -> dict[str, float]:
    """Return precision, recall, f1 and mixed recordings per million recordings."""
    found = evaluate(member, truth)
    numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return {**numbers, "mixed": numbers["mixed_clusters"] / numbers["recordings"] * 1e6}


def _print_verdicts(found: dict[str, Contestant], normalised: Run) -> None:
    from_keys, ours = found["ours, from the same keys"], found["ours, tables"]
    trained, pretrained = found["Splink with training"], found["Splink pre-trained"]
    for peer, goal in ((trained, TRAINED_GOAL), (pretrained, PRETRAINED_GOAL)):
        ratio = peer.run.cpu / from_keys.run.cpu
        whole = (peer.run.cpu + normalised.cpu) / ours.run.cpu
        _print_line(
            f"CPU, {peer.name} / ours", f"{ratio:.2f}x from the same keys ({whole:.2f}x with keys, ids, tables)", goal, holds=ratio >= goal
        )
    least_memory = min(trained.run.memory, pretrained.run.memory)
    shares = from_keys.run.memory / least_memory, ours.run.memory / least_memory
    shown = f"{shares[0]:.2f}x from the same keys ({shares[1]:.2f}x tables)"
    _print_line("peak memory, ours / Splink's smaller", shown, MEMORY_GOAL, holds=max(shares) <= MEMORY_GOAL, at_most=True)
    best = max(trained.figures["f1"], pretrained.figures["f1"])
    least = min(from_keys.figures["f1"], ours.figures["f1"])
    _print_line("F1, ours, the lesser", f"{least:.5f}", round(best, 5), holds=least >= best)


def _print_line(what: str, found: str, goal: float, *, holds: bool, at_most: bool = False) -> None:
    print(f"{what:<46}{found:<48}goal {'<=' if at_most else '>='} {goal} {'holds' if holds else 'MISSED'}")


def measure_memory(small: BuildPaths, large: BuildPaths, times: int) -> None:
    """Print the peak of every stage, of the process that runs it and of its largest worker, at both sizes.

    The workers of a stage hold the records and must be flat. The process that runs it holds values per record (ids), so its growth is shown
    in bytes per further record.
    """
    print(f"\n{'stage, peak MiB':<24}{'own at 1x':>12}{f'at {times}x':>10}{'bytes a record':>16}{'workers at 1x':>16}{f'at {times}x':>10}")
    grown, records = [], [0, 0]
    for name in STAGES:
        runs = [measure("benchmarks.linkage_runs:run_stage", str(paths.root), name) for paths in (small, large)]
        records = [run.answer.get("records", known) for run, known in zip(runs, records, strict=True)]
        own, workers = [run.own_memory for run in runs], [run.worker_memory for run in runs]
        held = (own[1] - own[0]) * 2**20 / (records[1] - records[0])
        print(f"{name:<24}{own[0]:>12.0f}{own[1]:>10.0f}{held:>16.0f}{workers[0]:>16.0f}{workers[1]:>10.0f}")
        if min(workers) > 0:
            grown.append(workers[1] / workers[0])
    _print_line("growth of a worker's peak", f"{max(grown):.2f}x", FLAT_GOAL, holds=max(grown) <= FLAT_GOAL, at_most=True)


def measure_guards(paths: BuildPaths) -> None:
    """Print the number of mixed recordings with the guards and without."""
    found = measure("benchmarks.linkage_runs:evaluate_guards", str(paths.root)).answer
    on, off = found["on"], found["off"]
    print(
        f"\n{on['records']:,} records: mixed recordings with the guards {on['mixed_clusters']}, without {off['mixed_clusters']}; ", end=""
    )
    print(f"precision {on['precision']:.5f} and {off['precision']:.5f}")
    growth = off["mixed_clusters"] / max(1, on["mixed_clusters"])
    _print_line("growth without the guards", f"{growth:.0f}x", GUARDS_GOAL, holds=growth >= GUARDS_GOAL)


def main() -> None:
    """Run the requested sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=["splink", "memory", "guards", "nights"], default=["splink", "guards"])
    parser.add_argument("--recordings", type=int, default=100_000, help="true recordings in the world; 2.6 times as many records")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--nights", type=int, default=2, help="how many nights, each built on the one before (default 2)")
    parser.add_argument("--times", type=int, default=5, help="how much larger the larger world of `memory` is (default 5)")
    parser.add_argument("--runs", type=int, default=1, help="runs per contestant, in turns, of which the cheapest counts (default 1)")
    parser.add_argument("--work", type=Path, help="folder for worlds, kept and used again (default: a temporary one)")
    parser.add_argument("--world", type=Path, help="a world that `pipeline simulate` wrote with that size and seed, instead of a new one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        paths = stage_world(work, options.recordings, options.seed, options.world)
        print(f"world of {options.recordings:,} recordings, seed {options.seed}")
        if "splink" in options.sections:
            compare_with_splink(paths, Path(scratch), options.runs)
        if "guards" in options.sections:
            measure_guards(paths)
        if "memory" in options.sections:
            measure_memory(paths, stage_world(work, options.recordings * options.times, options.seed), options.times)
        if "nights" in options.sections:
            share = max(run_nights(paths, Path(scratch) / "nights", options.nights))
            _print_line("CPU of a night / linking everything", f"{share:.1%}", NIGHT_GOAL, holds=share <= NIGHT_GOAL, at_most=True)


if __name__ == "__main__":
    main()
