"""Whole nights of a simulated world, stage by stage: what a night with 0.3 % changed rows costs beside a full build.

    python -m benchmarks.nights --recordings 100000 --nights 2 --work DIR

Builds a catalog from dumps, then changes its staged rows as a night would (simulator/nightly.py) in two copies of it. Every stage after
staging runs in both, in a process of its own: in the one as a night runs, in the other with `--relink`. Staging is measured on dumps with
as many changed records (benchmarks/night_dumps.py), over the tables of the day before and without them. Prints the processor seconds of
each stage in both (its checks included, workers too), whether all published tables are equal row by row and all staged parts byte by byte,
and the share of the next snapshot's bytes that the live one does not have, kind by kind.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import shutil
from functools import partial
from pathlib import Path

from benchmarks.build_line import run
from benchmarks.measurement import measure
from benchmarks.night_dumps import change_dumps, find_differing_parts
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.publisher import publish
from catalog_store.serving.serving_build import ROWS_PER_BLOCK
from catalog_store.snapshot import StoredFile, TablePart, read_manifest
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, TABLES
from catalog_store.tables.atoms import ATOM_TABLES, scan_live_atoms
from catalog_store.tables.files import count_rows, list_parts, read_table
from pipeline.build.recognition import build_recognition
from pipeline.build.workbench import open_text_memory
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.checks import run_asset_checks
from pipeline.defs.quality_assets import build_figure_check
from pipeline.defs.snapshot_assets import PUBLISHED
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.engine.usage import measure_usage
from pipeline.linkage.id_registry import read_next_ids
from pipeline.paths import BuildPaths
from pipeline.quality.build_figures import build_figures
from pipeline.quality.code_loss import count_code_losses
from pipeline.quality.id_drift import measure_id_drift
from pipeline.quality.report.examples import choose_examples
from simulator.nightly import write_nightly_changes

UNCOMPARED = {"linkage_version", "atom_gone", "atom_change", "build_figure"}
"""Tables that say how linkage came to its result, and not what it is."""


def run_stages(root: str, name: str) -> dict[str, float]:
    """Run every stage after staging, publish snapshot `name`, and return the CPU seconds of each stage."""
    paths = BuildPaths(Path(root))
    cost = {}
    for step in (*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()):
        with measure_usage() as usage:
            step.run(paths)
            results = list(run_asset_checks(step.list_checks(paths), paths.root / "work" / "scratch"))
        failed = [result.check_name for result in results if not result.passed]
        if failed:
            raise SystemExit(f"{step.name}: {failed}")
        cost[step.name] = usage.cpu_seconds
    for stage, function in (("recognition", build_recognition), ("gate", _judge), ("snapshot", partial(_publish, name=name))):
        with measure_usage() as usage:
            function(paths)
        cost[stage] = usage.cpu_seconds
    return cost


def _judge(paths: BuildPaths) -> None:
    """Do the work of the gate, but for its verdicts and the page."""
    measure_id_drift(paths)
    build_figures(paths)
    count_code_losses(paths)
    choose_examples(paths)
    list(run_asset_checks([build_figure_check(paths)], paths.root / "work" / "scratch"))


def _publish(paths: BuildPaths, name: str) -> None:
    tables = {table.name: paths.table(table.name) for table in PUBLISHED}
    with start_workers(is_small=count_rows(tables["recording"]) <= ROWS_PER_BLOCK) as pool:
        publish(
            tables,
            paths.root,
            snapshot_id=name,
            next_ids=read_next_ids(paths),
            recognition=paths.recognition,
            run=partial(map_ordered, pool=pool),
            anew=paths.relink.exists(),
            texts=open_text_memory(paths),
        )


def find_differing_tables(one: BuildPaths, other: BuildPaths) -> list[str]:
    """Return the published tables that differ in a row."""
    differing = []
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES):
        if table.name in UNCOMPARED or not one.table(table.name).is_dir():
            continue
        # Few tables have other parts, so large ones are not read.
        if _have_equal_bytes(one.table(table.name), other.table(table.name)):
            continue
        if table.name in ATOM_TABLES:
            rows = [scan_live_atoms(table.name, paths.table).collect().sort(TABLES[table.name].primary_key) for paths in (one, other)]
        else:
            rows = [read_table(table, paths.table(table.name)) for paths in (one, other)]
        if not rows[0].equals(rows[1]):
            differing.append(table.name)
    return differing


def _have_equal_bytes(one: Path, other: Path) -> bool:
    parts = list_parts(one)
    if [part.name for part in parts] != [part.name for part in list_parts(other)]:
        return False
    return all(filecmp.cmp(part, other / part.name, shallow=False) for part in parts)


def print_shares(full: dict[str, float], some: dict[str, float]) -> None:
    """Print the CPU seconds of each stage in full and in a night, and their ratio."""
    print(f"\n| {'stage':20} | in full, CPU s | night, CPU s | share |\n|{'---|' * 4}")
    for stage in (*full, "sum"):
        pair = [sum(costs.values()) if stage == "sum" else costs[stage] for costs in (full, some)]
        print(f"| {stage:20} | {pair[0]:.2f} | {pair[1]:.2f} | {pair[1] / pair[0] if pair[0] else 1:.0%} |", flush=True)


def print_new_bytes(before: Path, after: Path) -> None:
    """Print of each kind of files the bytes that an earlier snapshot does not have."""
    print(f"\n| {'files':24} | bytes | new | share |\n|{'---|' * 4}")
    for kind, (new, size) in measure_new_bytes(before, after).items():
        print(f"| {kind:24} | {size:,} | {new:,} | {new / size if size else 0:.1%} |", flush=True)


def measure_new_bytes(before: Path, after: Path) -> dict[str, tuple[int, int]]:
    """Return of each kind of files the bytes that an earlier snapshot does not have, and all bytes; equal files have equal checksums."""
    known = {file.sha256 for file in _list_files(before)}
    # By checksum: files of equal content count once.
    files = {file.sha256: file for file in _list_files(after)}.values()
    kinds = {kind: [file for file in files if kind in _name_kinds(file.path)] for file in files for kind in _name_kinds(file.path)}
    return {
        kind: (sum(file.bytes for file in found if file.sha256 not in known), sum(file.bytes for file in found))
        for kind, found in sorted(kinds.items())
    }


def _name_kinds(path: str) -> tuple[str, ...]:
    """Return the kinds that a file counts for: all, tables or serving, and the folder below serving."""
    top, _, rest = path.partition("/")
    return ("all", *((top,) if rest else ()), *((f"serving/{rest.split('/')[0]}",) if top == "serving" else ()))


def _list_files(folder: Path) -> list[StoredFile | TablePart]:
    manifest = read_manifest(folder)
    return [file for table in manifest.tables.values() for file in table.files] + [manifest.analyst_file, *manifest.serving]


def copy_catalog(source: Path, target: Path) -> None:
    """Copy what the next build reads: work and snapshots, without the dumps."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("landing"))


def stage_night(folder: Path, number: int) -> tuple[list[dict[str, float]], list[str]]:
    """Return what staging the dumps of a night costs without the tables of the day before, and with them; and the parts that differ."""
    dumps, staged, anew = folder / "dumps", folder / "staged", folder / "staged-anew"
    if not staged.is_dir():
        measure("benchmarks.night_dumps:stage_all", str(folder / "world"), str(staged))
    change_dumps(folder / "world", dumps, number)
    shutil.rmtree(anew, ignore_errors=True)
    costs = [measure("benchmarks.night_dumps:stage_all", str(dumps), str(place)).answer for place in (anew, staged)]
    return costs, find_differing_parts(staged, anew)


def run_night(day: Path, folder: Path, number: int) -> Path:
    """Print the night after `day`, and return the root of its catalog."""
    tonight, full_root = folder / f"night-{number}", folder / f"night-{number}-full"
    copy_catalog(day, tonight)
    # The eve adds the rows that the first night joins and parts.
    changes = write_nightly_changes(BuildPaths(day).staging_root, BuildPaths(tonight).staging_root, night=number)
    copy_catalog(tonight, full_root)
    BuildPaths(full_root).ask_for_relink()
    name = f"night-{number}"
    staging, differing = stage_night(folder, number)
    some, full = (measure("benchmarks.nights:run_stages", str(root), name).answer for root in (tonight, full_root))
    full, some = (
        {f"staging {name}": cost for name, cost in costs.items()} | after for costs, after in zip(staging, (full, some), strict=True)
    )
    print(f"\nnight {number}: {changes.height:,} source records changed")
    print_shares(full, some)
    print_new_bytes(read_live_snapshot(day).folder, read_live_snapshot(tonight).folder)
    print(f"\ndiffering staged parts: {differing or 'none'}")
    print(f"\ndiffering tables: {find_differing_tables(BuildPaths(tonight), BuildPaths(full_root)) or 'none'}", flush=True)
    # Only the newest full build stays. benchmarks.layered_reading compares it with the last night.
    shutil.rmtree(folder / f"night-{number - 1}-full", ignore_errors=True)
    return tonight


def main() -> None:
    """Build, run the nights and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=931)
    parser.add_argument("--nights", type=int, default=2)
    parser.add_argument("--first", type=int, default=1, metavar="N", help="go on with night N of earlier runs in the same folder")
    parser.add_argument("--work", type=Path, required=True, help="folder for dumps and catalogs; a catalog in it is used again")
    options = parser.parse_args()
    world, catalog = options.work / "world", options.work / "catalog"
    if not catalog.is_dir():
        run("simulate", "--recordings", str(options.recordings), "--seed", str(options.seed), "--out", str(world))
        built = json.loads(run("build", "--dumps", str(world), "--catalog", str(catalog))[1])
        staging = sum(stage.get("cpu_seconds", 0) for stage in built["stages"] if "staging" in stage["stage"])
        print(f"{built['recordings']:,} recordings; staging {staging:.1f} CPU-s")
    day = options.work / (f"night-{options.first - 1}" if options.first > 1 else "eve")
    if not day.is_dir():
        # A catalog of another program has no rows to carry over: the day before the first night is built by this one.
        copy_catalog(catalog, day)
        BuildPaths(day).ask_for_relink()
        measure("benchmarks.nights:run_stages", str(day), "eve")
        BuildPaths(day).relink.unlink()
    for number in range(options.first, options.first + options.nights):
        day = run_night(day, options.work, number)


if __name__ == "__main__":
    main()
