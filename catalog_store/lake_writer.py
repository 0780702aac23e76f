"""Writes the published tables into a DuckLake: one transaction for each build, with the rows that differ from the lake's newest version.

The program reads one job as JSON from standard input and prints the answer as JSON. It runs under an interpreter of its own, `.venv-lake`,
because packages of DuckLake's extension end at DuckDB 1.5. So it imports DuckDB and the standard library only. lake.py makes the jobs.

The lake has the published tables, and three tables that grow with each build:

  build         build, created_at
  id_change     build, kind, change, old_id, new_id: as `/v1/changes`, and `gained`
  field_change  build, table_name, column_name, row_count: rows of which the value changed; without a column the added and removed ones
"""

from __future__ import annotations

import importlib.util
import json
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXTENSIONS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
_ID_TABLES = ("recording", "artist", "release", "label")
_INLINED_ROWS = 0
"""Rows of a change that go into the catalog database instead of a file. None: every row can be read from the Parquet files."""
_ID_CHANGE = "build VARCHAR, kind VARCHAR, change VARCHAR, old_id BIGINT, new_id BIGINT"
_FIELD_CHANGE = "build VARCHAR, table_name VARCHAR, change VARCHAR, column_name VARCHAR, row_count BIGINT"
_HISTORY = (
    "CREATE TABLE IF NOT EXISTS lake.build (build VARCHAR, created_at TIMESTAMPTZ)",
    f"CREATE TABLE IF NOT EXISTS lake.id_change ({_ID_CHANGE})",
    f"CREATE TABLE IF NOT EXISTS lake.field_change ({_FIELD_CHANGE})",
)
_VIEWS = {
    "gained_id": "SELECT build, kind, new_id AS id FROM lake.id_change WHERE change = 'gained'",
    "lost_id": "SELECT build, kind, old_id AS id FROM lake.id_change WHERE change = 'removed'",
    "merged_id": "SELECT build, kind, old_id AS id, new_id AS into_id FROM lake.id_change WHERE change = 'merged'",
    "split_id": "SELECT build, kind, old_id AS id, new_id FROM lake.id_change WHERE change = 'split'",
    "changed_field": "SELECT build, table_name, column_name, row_count FROM lake.field_change WHERE change = 'changed'",
}


def main() -> int:
    """Run the job on standard input."""
    job = json.load(sys.stdin)
    try:
        with attach(job) as database:
            answer = {"commit": commit, "list": list_builds, "expire": expire}[job["action"]](database, job)
    except duckdb.Error as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


@contextmanager
def attach(job: dict[str, Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the lake as database `lake`; a commit makes it."""
    kind = job["lake"].partition(":")[0]
    names = ["ducklake", *filter(None, [_EXTENSIONS.get(kind)]), *(["httpfs"] if "://" in job["data"] else [])]
    settings = {"memory_limit": "2GB"} | {name: job[name] for name in ("memory_limit", "threads") if name in job}
    with closing(duckdb.connect(config=settings)) as database:
        database.execute("SET enable_progress_bar = false")  # it would go to standard output, before the answer
        for name in names:
            database.execute(f"LOAD {_quote(_find_extension(name))}")
        if "://" in job["data"]:
            database.execute("CREATE SECRET (TYPE s3, PROVIDER config, {})".format(", ".join(_render_secret(job.get("s3", {})))))
        options = f"DATA_PATH {_quote(job['data'])}, DATA_INLINING_ROW_LIMIT {_INLINED_ROWS}"
        database.execute(f"ATTACH {_quote('ducklake:' + job['lake'])} AS lake ({options})")
        yield database


def _render_secret(settings: dict[str, str]) -> list[str]:
    return [f"{name} {value if value in {'true', 'false'} else _quote(value)}" for name, value in settings.items()]


def _find_extension(name: str) -> Path:
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    if found is None or not found.submodule_search_locations:
        raise duckdb.IOException(f"the package duckdb-extension-{name} is missing: run scripts/setup .venv-lake requirements-lake.lock")
    file = Path(found.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
    if not file.is_file():
        raise duckdb.IOException(f"{file} is missing: the extension is not that of DuckDB {duckdb.__version__}")
    return file


def commit(database: duckdb.DuckDBPyConnection, job: dict[str, Any]) -> dict[str, Any]:
    """Bring the tables of the lake up to the job's build in one transaction. Nothing happens if the newest version is that build."""
    last = _read_last(database)
    if last.get("build") == job["build"]:
        return {"build": job["build"], "version": last["version"], "is_new": False, "rows": {}}
    known: dict[str, str] = last.get("digests", {})
    rows: dict[str, int] = {}
    database.execute("CALL lake.set_option('parquet_compression', 'zstd')")
    database.execute("BEGIN")
    # Rows of the history are collected: each INSERT into a lake would write a file.
    database.execute(f"CREATE TEMP TABLE new_id ({_ID_CHANGE})")
    database.execute(f"CREATE TEMP TABLE new_field ({_FIELD_CHANGE})")
    for statement in _HISTORY:
        database.execute(statement)
    for table in job["tables"]:
        if known.get(table["name"]) != table["digest"]:
            rows[table["name"]] = _write_table(database, job, table)
    for name, sql in _VIEWS.items():
        if not known:
            database.execute(f"CREATE VIEW lake.{name} AS {sql}")
    database.execute("INSERT INTO lake.build VALUES (?, ?)", [job["build"], job["created_at"]])
    if known and job["changes"]:
        database.executemany("INSERT INTO new_id VALUES (?, ?, ?, ?, ?)", job["changes"])
    for table, rows_of in (("id_change", "new_id"), ("field_change", "new_field")):
        database.execute(f"INSERT INTO lake.{table} SELECT * FROM {rows_of} ORDER BY ALL")
    extra = json.dumps({"build": job["build"], "digests": {table["name"]: table["digest"] for table in job["tables"]}})
    database.execute(f"CALL lake.set_commit_message('catalog', {_quote(job['build'])}, extra_info => {_quote(extra)})")
    database.execute("COMMIT")
    return {"build": job["build"], "version": _read_last(database)["version"], "is_new": True, "rows": rows}


def _read_last(database: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return version, build and digests of the newest commit of a build; nothing for a new lake."""
    found = database.execute(
        "SELECT snapshot_id, commit_extra_info FROM lake.snapshots() WHERE commit_extra_info IS NOT NULL ORDER BY snapshot_id DESC LIMIT 1"
    ).fetchone()
    return {**json.loads(found[1]), "version": found[0]} if found else {}


def _write_table(database: duckdb.DuckDBPyConnection, job: dict[str, Any], table: dict[str, Any]) -> int:
    """Delete the rows that the build no longer has, insert its new ones, and return how many rows were written."""
    source = f"SELECT * FROM read_parquet([{', '.join(map(_quote, table['parts']))}])"
    described = [(row[0], row[1]) for row in database.execute(f"DESCRIBE {source}").fetchall()]
    name, columns = _name(table["name"]), ", ".join(_name(column) for column, _ in described)
    source = source.replace("*", columns, 1)
    if _read_shape(database, table["name"]) != described:
        database.execute(f"DROP TABLE IF EXISTS lake.{name}")
        database.execute(f"CREATE TABLE lake.{name} ({', '.join(f'{_name(column)} {kind}' for column, kind in described)})")
        return int(_fetch_value(database, f"INSERT INTO lake.{name} {source}"))
    database.execute(f"CREATE OR REPLACE TEMP TABLE gone AS SELECT {columns} FROM lake.{name} EXCEPT ALL {source}")
    key = table["key"] or [column for column, _ in described]
    # A table without a key may hold a row several times. All its copies are deleted here, and those that stay are inserted below.
    same = " AND ".join(f"t.{_name(column)} IS NOT DISTINCT FROM g.{_name(column)}" for column in key)
    if _fetch_value(database, "SELECT count(*) FROM gone"):
        database.execute(f"DELETE FROM lake.{name} t USING (SELECT DISTINCT {', '.join(map(_name, key))} FROM gone) g WHERE {same}")
    order = ", ".join(map(_name, table["order"] or key))
    database.execute(
        f"CREATE OR REPLACE TEMP TABLE made AS SELECT * FROM ({source} EXCEPT ALL SELECT {columns} FROM lake.{name}) ORDER BY {order}"
    )
    written = int(_fetch_value(database, "SELECT count(*) FROM made"))
    if written:
        database.execute(f"INSERT INTO lake.{name} SELECT * FROM made")
    if table["key"]:
        _count_changes(database, job, table, [column for column, _ in described if column not in key])
    return written


def _read_shape(database: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, str]]:
    """Return columns and types of a table of the lake. A table whose parts have another shape is written anew."""
    sql = "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = 'lake' AND table_name = ? ORDER BY column_index"
    return database.execute(sql, [name]).fetchall()


def _count_changes(database: duckdb.DuckDBPyConnection, job: dict[str, Any], table: dict[str, Any], columns: list[str]) -> None:
    key = [_name(column) for column in table["key"]]
    pair = f"(SELECT *, true AS was FROM gone) g FULL JOIN (SELECT *, true AS now FROM made) m USING ({', '.join(key)})"
    counts = ["count(*) FILTER (was IS NULL)", "count(*) FILTER (now IS NULL)"]
    counts += [f"count(*) FILTER (was AND now AND g.{_name(column)} IS DISTINCT FROM m.{_name(column)})" for column in columns]
    added, removed, *changed = database.execute(f"SELECT {', '.join(counts)} FROM {pair}").fetchone() or ()
    found = [("added", None, added), ("removed", None, removed), *(("changed", *one) for one in zip(columns, changed, strict=True))]
    rows = [(job["build"], table["name"], change, column, count) for change, column, count in found if count]
    if rows:
        database.executemany("INSERT INTO new_field VALUES (?, ?, ?, ?, ?)", rows)
    if table["name"] in _ID_TABLES:
        kind, known = table["name"], {(*change[1:3], change[4 if change[2] == "split" else 3]) for change in job["changes"]}
        ids = database.execute(f"SELECT {key[0]} FROM made ANTI JOIN gone USING ({key[0]}) ORDER BY ALL").fetchall()
        # A new id of a split, and one that came back, are told as such.
        gained = [one for (one,) in ids if not {(kind, "split", one), (kind, "restored", one)} & known]
        if gained:
            database.executemany("INSERT INTO new_id VALUES (?, ?, 'gained', NULL, ?)", [(job["build"], kind, one) for one in gained])


def list_builds(database: duckdb.DuckDBPyConnection, _job: dict[str, Any]) -> dict[str, Any]:
    """Return version, build and time of each commit of a build, oldest first."""
    rows = database.execute(
        "SELECT snapshot_id, commit_message, snapshot_time::VARCHAR FROM lake.snapshots() WHERE commit_extra_info IS NOT NULL ORDER BY 1"
    ).fetchall()
    return {"builds": [{"version": version, "build": build, "committed_at": at} for version, build, at in rows]}


def expire(database: duckdb.DuckDBPyConnection, job: dict[str, Any]) -> dict[str, Any]:
    """Forget versions older than the job's days, merge small files, write files anew of which a tenth is deleted, remove unused files."""
    days = int(job["keep_days"])
    database.execute(f"CALL ducklake_expire_snapshots('lake', older_than => now() - INTERVAL {days} DAY)")
    database.execute("CALL ducklake_merge_adjacent_files('lake')")
    database.execute("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)")
    removed = database.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)").fetchall()
    # A killed commit leaves files that no version names. A commit that runs now has younger ones.
    orphans = database.execute("CALL ducklake_delete_orphaned_files('lake', older_than => now() - INTERVAL 1 DAY)").fetchall()
    return {"removed_files": len(removed) + len(orphans), **list_builds(database, job)}


def _fetch_value(database: duckdb.DuckDBPyConnection, sql: str) -> Any:  # noqa: ANN401 - any value
    found = database.execute(sql).fetchone()
    return found[0] if found else None


def _quote(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    sys.exit(main())
