"""The lake over the snapshots of a catalog: bytes and processor time of each night, changed rows, and whether rows and changes are equal.

    python -m benchmarks.lake_nights WORK/night-3 --lake DIR

`python -m benchmarks.nights --nights 3 --work WORK` makes the catalog. Its snapshots are committed in order to a new lake.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_store import open_catalog
from catalog_store.analyst_file import is_in_file
from catalog_store.folder_listing import list_tree
from catalog_store.lake import Lake, commit_snapshot, expire_versions, find_interpreter, list_builds
from catalog_store.published_snapshots import list_snapshots
from catalog_store.snapshot_difference import compare_snapshots

if TYPE_CHECKING:
    from catalog_store.snapshot import Snapshot

_ASK = """
import json, sys
from catalog_store.lake_writer import attach
job = json.load(sys.stdin)
with attach(job) as database:
    print(json.dumps([database.execute(sql).fetchall() for sql in job["sql"]]))
"""


def measure_files(lake: Lake) -> tuple[int, int]:
    """Return bytes and number of the files of a lake in a folder."""
    files = [file for file in list_tree(Path(lake.data).parent) if file.is_file()]
    return sum(file.stat().st_size for file in files), len(files)


def ask(lake: Lake, queries: list[str]) -> list[list[list[Any]]]:
    """Return the rows of each query."""
    job = json.dumps({"lake": lake.database, "data": lake.data, "sql": queries})
    found = subprocess.run([find_interpreter(), "-c", _ASK], input=job, capture_output=True, text=True, check=True)
    answer: list[list[list[Any]]] = json.loads(found.stdout)
    return answer


def count_differences(lake: Lake, snapshot: Snapshot, version: int, names: list[str]) -> int:
    """Return how many rows of the version and of the snapshot's parts have no equal on the other side."""
    queries = []
    for name in names:
        parts = ", ".join(f"'{snapshot.folder / part.path}'" for part in snapshot.manifest.tables[name].files)
        one, other = f"FROM lake.{name} AT (VERSION => {version})", f"FROM read_parquet([{parts}])"
        queries.append(f"SELECT count(*) FROM (({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one}))")
    return sum(count for [[count]] in ask(lake, queries))


def list_changes(root: Path, old: Snapshot, new: Snapshot) -> list[list[Any]]:
    """Return what `/v1/changes` lists between the builds: kind, change, old id, new id."""
    found: list[list[Any]] = []
    with open_catalog(root) as catalog:
        cursor = None
        while True:
            page = catalog.list_changes(old.id, until=new.id, cursor=cursor)
            found += [[one.kind, one.change, one.old_id, one.new_id] for one in page.changes]
            cursor = page.next_cursor
            if cursor is None:
                return found


def compare_changes(root: Path, lake: Lake, old: Snapshot, new: Snapshot) -> str:
    """Return how many ids and fields changed, and whether `/v1/changes`, the lake and `catalog_store diff` agree on them."""
    changes = list_changes(root, old, new)
    difference = compare_snapshots(old, new)
    ids, gained, fields = ask(
        lake,
        [
            f"SELECT kind, change, old_id, new_id FROM lake.id_change WHERE build = '{new.id}' AND change <> 'gained'",
            f"SELECT kind, count(*) FROM lake.gained_id WHERE build = '{new.id}' GROUP BY kind",
            f"SELECT table_name, column_name, row_count FROM lake.changed_field WHERE build = '{new.id}'",
        ],
    )
    counted = Counter((kind, change) for kind, change, *_ in changes) + Counter({(kind, "gained"): count for kind, count in gained})
    of_diff = Counter({(kind, change): count for kind, counts in difference.ids.items() for change, count in counts.items()})
    # The lake has the tables of the analysts' file and none of linkage's own.
    in_lake = {name: table for name, table in difference.tables.items() if is_in_file(name)}
    columns = {(name, column): count for name, table in in_lake.items() for column, count in table.columns.items()}
    is_equal = sorted(ids, key=str) == sorted(changes, key=str) and counted == +of_diff
    are_fields = {(name, column): count for name, column, count in fields} == columns
    return f"{len(changes)} changed ids, {sum(columns.values())} changed fields; equal: {is_equal}, {are_fields}"


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
    for older, newer in pairwise(snapshots):
        print(f"{older.id} to {newer.id}: {compare_changes(options.catalog, lake, older, newer)}", flush=True)
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
