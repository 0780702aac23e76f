"""Linkage beside Splink 5 on the two halves of harsh worlds, and our misses by kind of dirt.

    python -m benchmarks.harsh [--recordings 20000] [--seeds 811 812 813] [--runs 2] [--work DIR]

Each world (`pipeline simulate --world harsh`) is read by our adapters and cut into the half with codes and the half without. Both linkers
get the same records. Ours runs from the staged tables to the recordings and makes its own keys. Splink gets the keys, words, albums and
years ready-made, is trained in the run, and cuts at its best threshold by the truth. Every run is a fresh process, on the same
processors, in turns; the run with the least CPU counts. Precision is that of all records, recall that of the decidable ones
(docs/design/simulator.md). `scripts/setup .venv-bench requirements-bench.lock` makes Splink's environment.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks.harsh_worlds import read_dirt, stage_halves
from benchmarks.linkage import SPLINK_PYTHON
from benchmarks.linkage_worlds import read_truth
from benchmarks.measurement import Run, measure
from benchmarks.thresholds import find_best_weight
from pipeline.linkage.dirt_figures import evaluate_dirt

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

GOALS = {"with_codes": (0.999, 0.97), "without_codes": (0.995, 0.95)}
"""Precision and recall of each half."""
KINDS_SHOWN = 20
LOWEST_SHARE = 0.002
"""Share of the pairs of Splink's wide blocking rules; its best threshold leaves far more."""


def compare(paths: BuildPaths, half: str, folder: Path, runs: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Print a line per linker and return the figures of ours and of Splink's."""
    truth, dirt = read_truth(paths), read_dirt(paths)
    folder.mkdir(parents=True)
    keys = measure("benchmarks.harsh_worlds:write_peer_rows", str(paths.root), str(folder))
    measure("benchmarks.splink_harsh:explore", str(folder), python=str(SPLINK_PYTHON))
    records = pl.read_parquet(folder / "rows.parquet", columns=["record", "platform", "external_id"])
    owners = records.join(truth, on=["platform", "external_id"], how="left", maintain_order="left")["true_recording_id"]
    weight, _ = find_best_weight(pl.read_parquet(folder / "pairs.parquet"), owners, LOWEST_SHARE)
    taken: dict[str, list[Run]] = {"ours": [], "Splink": []}
    for _ in range(runs):
        taken["ours"].append(measure("benchmarks.linkage_runs:link_in_memory", str(paths.root), str(folder / "ours.parquet")))
        peer = measure("benchmarks.splink_harsh:train_and_cluster", str(folder), str(weight), python=str(SPLINK_PYTHON))
        taken["Splink"].append(peer)
    clusters = pl.read_parquet(folder / "clusters.parquet")
    found = clusters.select(pl.col("record").cast(pl.Int64), recording_id=pl.col("cluster_id").cast(pl.Int64))
    members = {"ours": pl.read_parquet(folder / "ours.parquet"), "Splink": records.join(found, on="record")}
    figures = {name: evaluate_dirt(member, truth, dirt) for name, member in members.items()}
    for name in members:
        found_half: Any = figures[name]["halves"]
        quality, run = found_half[half], min(taken[name], key=lambda run: run.cpu)
        print(f"{half:<15}{name:<8}{quality['precision']:>11.5f}{quality['recall']:>9.5f}{quality['f1']:>9.5f}", end="")
        print(f"{run.cpu:>9.1f}{run.wall:>9.1f}{run.memory:>10.0f}{quality['records']:>9}{quality['destroyed']:>10}")
        figures[name]["cpu"] = run.cpu
    print(f"{'':<15}Splink's threshold: match weight {weight:.2f}; making its rows took {keys.cpu:.1f} CPU s, not counted", flush=True)
    return figures["ours"], figures["Splink"]


def _print_verdicts(half: str, ours: dict[str, Any], peer: dict[str, Any]) -> None:
    mine, theirs = ours["halves"][half], peer["halves"][half]
    for name, found, goal in (
        *((name, mine[name], goal) for name, goal in zip(("precision", "recall"), GOALS[half], strict=True)),
        ("F1, beside Splink's", mine["f1"], theirs["f1"]),
        ("CPU, Splink / ours", peer["cpu"] / ours["cpu"], 1.0),
    ):
        print(f"{half:<15}{name:<24}{found:>9.5f}  goal >= {goal:<9.5f}{'holds' if found >= goal else 'MISSED'}")


def _print_kinds(ours: dict[str, Any], peer: dict[str, Any]) -> None:
    """Print the kinds of dirt with most wrong pairs of ours, with Splink's beside them."""
    print(f"{'kind':<28}{'records':>8}{'P':>9}{'R':>9}{'missed':>8}{'false':>7}{'Splink P':>11}{'R':>9}{'missed':>8}{'false':>7}")
    for kind, found in list(ours["kinds"].items())[:KINDS_SHOWN]:
        theirs = peer["kinds"][kind]
        print(f"{kind:<28}{found['records']:>8}", end="")
        print(f"{found['precision']:>9.4f}{found['recall']:>9.4f}{found['missed_pairs']:>8.0f}{found['false_pairs']:>7.0f}", end="")
        print(f"{theirs['precision']:>11.4f}{theirs['recall']:>9.4f}{theirs['missed_pairs']:>8.0f}{theirs['false_pairs']:>7.0f}")


def main() -> None:
    """Compare on each seed and half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=20_000, help="true recordings in a world (default %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[811, 812, 813])
    parser.add_argument("--runs", type=int, default=1, help="runs per linker, in turns, of which the cheapest counts (default %(default)s)")
    parser.add_argument("--work", type=Path, help="folder for worlds, kept and used again (default: a temporary one)")
    options = parser.parse_args()
    if not SPLINK_PYTHON.exists():
        raise SystemExit("Splink is not installed: run `scripts/setup .venv-bench requirements-bench.lock` (or `make bench`)")
    with tempfile.TemporaryDirectory() as scratch:
        for seed in options.seeds:
            halves = stage_halves(options.work or Path(scratch), options.recordings, seed)
            print(f"\nseed {seed}, {options.recordings:,} recordings")
            print(f"{'half':<23}{'precision':>11}{'recall':>9}{'F1':>9}{'CPU s':>9}{'wall s':>9}{'peak MiB':>10}", end="")
            print(f"{'records':>9}{'destroyed':>10}")
            for half, paths in halves.items():
                ours, peer = compare(paths, half, Path(scratch) / f"{seed}-{half}", options.runs)
                _print_verdicts(half, ours, peer)
                _print_kinds(ours, peer)


if __name__ == "__main__":
    main()
