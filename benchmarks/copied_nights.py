"""Nights on a catalog of copied staging tables, for sizes that take too long to simulate: what each step costs beside a full build.

    python -m benchmarks.copied_steps CATALOG --copies 4 --work DIR --keep-mapped
    python -m benchmarks.copied_nights DIR --nights 2

DIR holds a published catalog. A night changes its staged rows (simulator/nightly.py) and runs every step behind staging over the tables of
the day before, each in a process of its own. The last night also runs in full, in DIR-full: a copy by hard links, with `--relink`. Prints
the lines of `copied_steps` for every run, the processor seconds of each step in both, the new bytes of each night's snapshot, and the
tables that differ. `benchmarks.layered_reading DIR DIR-full` then compares their answers.
"""

from __future__ import annotations

import argparse
import os
import shutil
from functools import partial
from pathlib import Path

from benchmarks.copied_steps import list_steps, log_sections, run_steps
from benchmarks.nights import find_differing_tables, print_new_bytes, print_shares
from catalog_store.published_snapshots import read_live_snapshot
from pipeline.engine.step_process import run_in_own_process
from pipeline.linkage.mapped_atoms import get_mapped_folder
from pipeline.paths import BuildPaths
from simulator.nightly import write_nightly_changes


def change_staging(paths: BuildPaths, night: int) -> int:
    """Replace the staging tables by those of the day after, and return the number of changed source records."""
    tonight = paths.staging_root.with_name("staging-tonight")
    shutil.rmtree(tonight, ignore_errors=True)
    # In a process of its own: it reads whole tables of a platform.
    changes = run_in_own_process("changes", partial(write_nightly_changes, paths.staging_root, tonight, night=night))
    shutil.rmtree(paths.staging_root)
    tonight.rename(paths.staging_root)
    return changes.height


def link_catalog(source: BuildPaths, target: BuildPaths) -> None:
    """Copy a catalog by hard links, without the mapped files of linkage. Builds replace files and never change one."""
    shutil.rmtree(target.root, ignore_errors=True)
    shutil.copytree(
        source.root, target.root, symlinks=True, copy_function=os.link, ignore=shutil.ignore_patterns(get_mapped_folder(source).name)
    )


def run_all(paths: BuildPaths, snapshot: str) -> dict[str, float]:
    """Run all steps, and return the CPU seconds of each."""
    steps = list_steps(snapshot)
    return {name: usage.cpu_seconds for name, usage in run_steps(paths, steps, list(steps), delete_mapped=False).items()}


def main() -> None:
    """Run the nights and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, metavar="DIR")
    parser.add_argument("--nights", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, metavar="N", help="go on with night N of earlier runs in the same folder")
    options = parser.parse_args()
    log_sections()
    paths, full_paths = BuildPaths(options.root), BuildPaths(options.root.with_name(f"{options.root.name}-full"))
    last = options.first + options.nights - 1
    for number in range(options.first, last + 1):
        print(f"\nnight {number}: {change_staging(paths, number):,} source records changed\n", flush=True)
        if number == last:
            link_catalog(paths, full_paths)
        before = read_live_snapshot(paths.root).folder
        some = run_all(paths, f"night-{number}")
        print_new_bytes(before, read_live_snapshot(paths.root).folder)
    print("\nthe last night in full\n", flush=True)
    full_paths.ask_for_relink()
    print_shares(run_all(full_paths, f"night-{last}"), some)
    print(f"\ndiffering tables: {find_differing_tables(paths, full_paths) or 'none'}")


if __name__ == "__main__":
    main()
