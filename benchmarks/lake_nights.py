"""The lake over the snapshots of a catalog: bytes and processor time of each night, the share of changed rows, and whether rows are equal.

    python -m benchmarks.lake_nights WORK/night-3 --lake DIR

`python -m benchmarks.nights --nights 3 --work WORK` makes the catalog. Its snapshots are committed in order to a new lake.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_store.analyst_file import is_in_file
from catalog_store.folder_listing import list_tree
from catalog_store.lake import Lake, commit_snapshot, expire_versions, find_interpreter, list_builds
from catalog_store.publisher import list_snapshots

if TYPE_CHECKING:
    from catalog_store.snapshot import Snapshot

_COUNT = """
import json, sys
from catalog_store.lake_writer import attach
job = json.load(sys.stdin)
with attach(job) as database:
    print(json.dumps([database.execute(sql).fetchone()[0] for sql in job["sql"]]))
"""


def measure_files(lake: Lake) -> tuple[int, int]:
    """Return bytes and number of the files of a lake in a folder."""
    files = [file for file in list_tree(Path(lake.data).parent) if file.is_file()]
    return sum(file.stat().st_size for file in files), len(files)


def count_differences(lake: Lake, snapshot: Snapshot, version: int, names: list[str]) -> int:
    """Return how many rows of the version and of the snapshot's parts have no equal on the other side."""
    queries = []
    for name in names:
        parts = ", ".join(f"'{snapshot.folder / part.path}'" for part in snapshot.manifest.tables[name].files)
        one, other = f"FROM lake.{name} AT (VERSION => {version})", f"FROM read_parquet([{parts}])"
        queries.append(f"SELECT count(*) FROM (({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one}))")
    job = json.dumps({"lake": lake.database, "data": lake.data, "sql": queries})
    found = subprocess.run([find_interpreter(), "-c", _COUNT], input=job, capture_output=True, text=True, check=True)
    return sum(json.loads(found.stdout))


def main() -> None:
    """Commit, compare, expire and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--lake", type=Path, required=True, help="new folder")
    options = parser.parse_args()
    options.lake.mkdir(parents=True)
    lake = Lake.find(options.lake, None, None)
    snapshots = list_snapshots(options.catalog)
    before, versions = (0, 0), dict[str, int]()
    print("| build | rows | written rows | share | new bytes | share of the first | new files | CPU s |\n" + "|---" * 8 + "|")
    first = 0
    answer: dict[str, Any] = {}
    for snapshot in snapshots:
        spent = _measure_children()
        answer = commit_snapshot(options.lake, snapshot, lake)
        spent, after = _measure_children() - spent, measure_files(lake)
        versions[snapshot.id] = answer["version"]
        rows = sum(table.rows for name, table in snapshot.manifest.tables.items() if is_in_file(name))
        new, written = after[0] - before[0], sum(answer["rows"].values())
        first = first or new
        shares = f"{rows:,} | {written:,} | {written / rows:.2%} | {new:,} | {new / first:.2%}"
        print(f"| {snapshot.id} | {shares} | {after[1] - before[1]} | {spent:.1f} |", flush=True)
        before = after
    tables = [
        name for name in snapshots[0].manifest.tables if name in {"recording", "track", "release", "recording_member", "platform_link"}
    ]
    differing = {one.id: count_differences(lake, one, versions[one.id], tables) for one in snapshots}
    print(f"\nrows that differ between a version and its snapshot, {', '.join(tables)}: {differing}")
    spent = _measure_children()
    expire_versions(options.lake, lake, keep_days=366)
    spent, kept = _measure_children() - spent, list_builds(lake)["builds"]
    print(f"after expire: {measure_files(lake)} bytes and files, {spent:.1f} CPU s, {len(kept)} versions")
    print(f"differing rows after expire: {count_differences(lake, snapshots[0], versions[snapshots[0].id], tables)}")


def _measure_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
