"""Nights of a simulated world: the cost of linking what 0.3 % changed rows affect beside a full linkage. The tables must be equal."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.linkage_runs import read_member
from benchmarks.measurement import Run, measure
from catalog_store.snapshot import FORMAT, FORMAT_VERSION, MANIFEST, Manifest, StoredFile
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, scan_live_atoms
from catalog_store.tables.files import read_table
from pipeline.linkage import mapped_atoms
from pipeline.linkage.id_registry import collect_registry
from pipeline.linkage.incremental.night import BASE_TABLES
from pipeline.paths import BuildPaths
from simulator.nightly import write_nightly_changes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

TABLES_COMPARED = ("atom", "atom_member", "atom_isrc", "edge", "cluster", "recording_member", "isrc_owner", "isrc_conflict")


def run_nights(world: BuildPaths, folder: Path, count: int) -> list[float]:
    """Print a line per night: what changed, CPU of both ways, whether they agree.

    Each day has a folder of its own: the first is linked in full and published, every later night builds on the one before. Returns each
    night's CPU as a share of linking everything.
    """
    columns = f"{'night':<7}{'changed':>9}{'merged':>8}{'split':>7}{'CPU s':>8}{'in full':>9}{'wall s':>8}{'peak MiB':>10}{'in full':>9}"
    print(f"\n{columns}  same tables")
    shares = []
    day = BuildPaths(folder / "eve")
    write_nightly_changes(world.staging_root, day.staging_root, night=0)
    _link(day)
    for number in range(1, count + 1):
        _publish(day)
        # Two copies of one night: both build on the same base and the same staged rows, and only one may reuse the
        # base.
        tonight, anew = BuildPaths(folder / f"night-{number}"), BuildPaths(folder / f"night-{number}-anew")
        changes = write_nightly_changes(day.staging_root, tonight.staging_root, night=number)
        for after in (tonight, anew):
            _copy_snapshots(day, after)
        shutil.copytree(tonight.staging_root, anew.staging_root)
        # The file by which an operator requests full linkage.
        anew.relink.touch()
        some, everything = _link(tonight), _link(anew)
        merged, split = _count_merges_and_splits(read_member(str(day.root)), read_member(str(tonight.root)))
        differing = [name for name in TABLES_COMPARED if not _is_same_result(name, (tonight, anew))]
        shares.append(some.cpu / everything.cpu)
        said = ("no: " + ", ".join(differing) if differing else "yes") + (", but linked in full" if some.answer["is_in_full"] else "")
        figures = f"{changes.height:>9,}{merged:>8}{split:>7}{some.cpu:>8.1f}{everything.cpu:>9.1f}{some.wall:>8.1f}"
        figures += f"{some.memory:>10.0f}{everything.memory:>9.0f}"
        print(f"{number:<7}{figures}  {said}", flush=True)
        day = tonight
    return shares


def _link(paths: BuildPaths) -> Run:
    return measure("benchmarks.linkage_runs:run_stages", str(paths.root))


def _publish(paths: BuildPaths) -> None:
    """Publish the linkage of a day as the live snapshot of its root."""
    next_ids = collect_registry(paths)
    name = f"day-{len(list(paths.snapshots.glob('*'))):03d}"
    tables = paths.snapshots / name / "tables"
    for table in (*BASE_TABLES, "redirect"):
        shutil.copytree(paths.table(table), tables / table)
    # Linkage reads the next ids of a snapshot from its manifest, and nothing else of it.
    none = StoredFile("none", 0, "")
    manifest = Manifest(FORMAT, FORMAT_VERSION, name, "2026-01-01T00:00:00Z", "none", {}, next_ids, none, ())
    (tables.parent / MANIFEST).write_bytes(manifest.encode())
    paths.current.unlink(missing_ok=True)
    paths.current.symlink_to(paths.snapshots / name)


def _copy_snapshots(before: BuildPaths, after: BuildPaths) -> None:
    """Give the next day the snapshots of the day before, and the files that its linkage keeps mapped."""
    shutil.copytree(before.snapshots, after.snapshots)
    shutil.copytree(mapped_atoms.get_mapped_folder(before), mapped_atoms.get_mapped_folder(after))
    after.current.symlink_to(after.snapshots / before.current.resolve().name)


def _is_same_result(name: str, days: Sequence[BuildPaths]) -> bool:
    """Compare row by row; of atoms only the valid ones."""
    if name in ATOM_TABLES:
        one, other = (scan_live_atoms(name, paths.table).collect().sort(TABLES[name].primary_key) for paths in days)
    else:
        one, other = (read_table(TABLES[name], paths.table(name)) for paths in days)
    return one.equals(other)


def _count_merges_and_splits(before: pl.DataFrame, after: pl.DataFrame) -> tuple[int, int]:
    """Return the number of today's recordings merged from several of yesterday's, and of yesterday's that were split."""
    both = before.join(after, on=["platform", "external_id"], suffix="_after").select("recording_id", "recording_id_after").unique()
    merged, split = (int((both.group_by(side).len()["len"] > 1).sum()) for side in ("recording_id_after", "recording_id"))
    return merged, split
