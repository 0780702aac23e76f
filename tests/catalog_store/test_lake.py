"""The lake of all builds, read with DuckLake. `make test-slow` installs its environment (scripts/analyst_tools)."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from catalog_store.lake import INTERPRETER, Lake, commit_live_snapshot, expire_versions, list_builds
from catalog_store.published_snapshots import find_snapshot
from catalog_store.publisher import publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot_difference import compare_snapshots
from tests.catalog_store.catalog_tables import make_changed_ids, make_frames, write_frames
from tests.catalog_store.test_snapshot_difference import NEXT, edit
from tests.conftest import ROOT, run_module
from tests.s3_server import serve_s3
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PYTHON = ROOT / ".venv-lake" / "bin" / "python"
ASK = """
import json, sys
from catalog_store.lake_writer import attach
job = json.load(sys.stdin)
with attach(job) as database:
    print(json.dumps([database.execute(sql).fetchall() for sql in job["sql"]], default=str))
"""


def ask(lake: Lake, *sql: str, s3: dict[str, str] | None = None) -> list[list[list[Any]]]:
    """Return the rows of each query."""
    job = json.dumps({"lake": lake.database, "data": lake.data, "sql": sql, "s3": s3 or {}})
    found = subprocess.run([PYTHON, "-c", ASK], cwd=ROOT, input=job, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    answer: list[list[list[Any]]] = json.loads(found.stdout)
    return answer


def require_rows(root: Path, lake: Lake, build: str, version: int) -> None:
    """Require that the version holds exactly the rows of the snapshot's Parquet parts."""
    snapshot = find_snapshot(root, build)
    queries = []
    for name in ("recording", "track", "recording_alias", "recording_source", "release", "redirect", "recording_member"):
        parts = ", ".join("'" + str(snapshot.folder / part.path).replace("'", "''") + "'" for part in snapshot.manifest.tables[name].files)
        lake_rows, part_rows = f"FROM lake.{name} AT (VERSION => {version})", f"FROM read_parquet([{parts}])"
        queries.append(f"SELECT count(*) FROM (({lake_rows} EXCEPT ALL {part_rows}) UNION ALL ({part_rows} EXCEPT ALL {lake_rows}))")
    assert [rows[0][0] for rows in ask(lake, *queries)] == [0] * len(queries)


def publish_rows(root: Path, name: str, rows: dict[str, list[dict[str, Any]]], next_ids: dict[str, int] = NEXT) -> None:
    publish(write_frames(root / "tables" / name, rows), root, snapshot_id=name, next_ids=next_ids)


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lake]:
    """Return a catalog of snapshots `old` and `new`, both committed, whose folder has a quote in its name."""
    root = tmp_path_factory.mktemp("lake") / "Zoë's catalog"
    before, after = make_changed_ids()
    after, _ = edit(after, random.Random(1))  # noqa: S311 - test data
    lake = Lake.find(root, None, None)
    for name, rows, ids in (("old", before, NEXT), ("new", after, NEXT | {"recording": 102})):
        publish_rows(root, name, rows, ids)
        assert commit_live_snapshot(root, lake)["is_new"]
    return root, lake


def test_missing_environment_is_an_error_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "python"))
    with pytest.raises(FileNotFoundError, match=r"scripts/setup \.venv-lake requirements-lake\.lock"):
        list_builds(Lake.find(tmp_path, None, None))


def test_lake_that_is_not_there_is_neither_listed_nor_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(INTERPRETER, sys.executable)
    lake = Lake.find(tmp_path, None, None)
    assert list_builds(lake) == {"builds": []}
    with pytest.raises(FileNotFoundError, match=r"no lake at sqlite:.*: `lake commit` makes one"):
        expire_versions(tmp_path, lake, 30)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_each_version_holds_exactly_the_rows_of_its_build(two_nights: tuple[Path, Lake]) -> None:
    root, lake = two_nights
    versions = {one["build"]: one["version"] for one in list_builds(lake)["builds"]}
    assert list(versions) == ["old", "new"]
    for build, version in versions.items():
        require_rows(root, lake, build, version)


@pytest.mark.slow
def test_changes_of_ids_and_fields_are_those_of_the_interface_and_of_diff(two_nights: tuple[Path, Lake]) -> None:
    root, lake = two_nights
    listed, gained, fields = ask(
        lake,
        "SELECT kind, change, old_id, new_id FROM lake.id_change WHERE build = 'new' AND change <> 'gained' ORDER BY ALL",
        "SELECT kind, id FROM lake.gained_id",
        "SELECT table_name, column_name, row_count FROM lake.changed_field WHERE build = 'new' ORDER BY ALL",
    )
    with open_catalog(root) as catalog:
        changes = catalog.list_changes("old").changes
    assert sorted(map(tuple, listed), key=str) == sorted(((one.kind, one.change, one.old_id, one.new_id) for one in changes), key=str)
    assert gained == [["recording", 101]]
    found = compare_snapshots(find_snapshot(root, "old"), find_snapshot(root, "new"))
    counted = {(name, column): count for name, table in found.tables.items() for column, count in table.columns.items()}
    assert {(name, column): count for name, column, count in fields} == counted != {}


@pytest.mark.slow
def test_second_commit_of_a_build_changes_nothing_and_a_rollback_is_a_version(tmp_path: Path) -> None:
    before = make_frames(12, 1)
    after, _ = edit(before, random.Random(1))  # noqa: S311 - test data
    lake = Lake.find(tmp_path, None, None)
    for name, rows in (("old", before), ("new", after)):
        publish_rows(tmp_path, name, rows)
        commit_live_snapshot(tmp_path, lake)
    assert not commit_live_snapshot(tmp_path, lake)["is_new"]
    rollback(tmp_path, "old")
    version = commit_live_snapshot(tmp_path, lake)["version"]
    assert [one["build"] for one in list_builds(lake)["builds"]] == ["old", "new", "old"]
    require_rows(tmp_path, lake, "old", version)
    answer = json.loads(run_module("catalog_store", "lake", "expire", "--catalog", tmp_path, "--keep-days", "1").stdout)
    assert answer["builds"][-1]["build"] == "old"
    require_rows(tmp_path, lake, "new", answer["builds"][1]["version"])


@pytest.mark.slow
def test_killed_commit_leaves_no_version_and_the_next_one_is_whole(tmp_path: Path) -> None:
    lake = Lake.find(tmp_path, None, None)
    publish_rows(tmp_path, "old", make_frames(12, 1))
    commit_live_snapshot(tmp_path, lake)
    publish_rows(tmp_path, "new", make_frames(2_000, 2))
    data = tmp_path / "lake" / "data"
    known = {*data.rglob("*.parquet")}
    command = [sys.executable, "-m", "catalog_store", "lake", "commit", "--catalog", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: {*data.rglob("*.parquet")} - known, "a file of the new version", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert [one["build"] for one in list_builds(lake)["builds"]] == ["old"]
    require_rows(tmp_path, lake, "old", list_builds(lake)["builds"][0]["version"])
    require_rows(tmp_path, lake, "new", commit_live_snapshot(tmp_path, lake)["version"])


@pytest.mark.slow
def test_commit_that_cannot_write_its_catalog_changes_nothing(tmp_path: Path) -> None:
    lake = Lake.find(tmp_path, None, None)
    publish_rows(tmp_path, "old", make_frames(12, 1))
    commit_live_snapshot(tmp_path, lake)
    publish_rows(tmp_path, "new", make_frames(12, 2))
    with closing(sqlite3.connect(tmp_path / "lake" / "lake.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="was not changed"):
            commit_live_snapshot(tmp_path, lake)
    assert [one["build"] for one in list_builds(lake)["builds"]] == ["old"]
    require_rows(tmp_path, lake, "new", commit_live_snapshot(tmp_path, lake)["version"])


@pytest.mark.slow
def test_lake_in_postgresql_and_object_storage(
    tmp_path: Path, new_postgresql_database: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_postgresql_database("lake")
    with serve_s3(monkeypatch) as client:
        client.create_bucket(Bucket="lake")
        lake = Lake(f"postgres:{url}", "s3://lake/data/")
        for name, seed in (("old", 1), ("new", 2)):
            publish_rows(tmp_path, name, make_frames(12, seed))
            commit_live_snapshot(tmp_path, lake)
        assert [one["build"] for one in list_builds(lake)["builds"]] == ["old", "new"]
        assert client.list_objects_v2(Bucket="lake", Prefix="data/")["KeyCount"] > 0
        expired = expire_versions(tmp_path, lake, keep_days=1)
        assert [one["build"] for one in expired["builds"]] == ["old", "new"]
