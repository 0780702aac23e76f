from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.published_snapshots import find_snapshot
from catalog_store.publisher import publish
from catalog_store.reader import open_catalog
from catalog_store.snapshot_difference import compare_snapshots, write_changed_rows
from catalog_store.snapshot_pull import pull
from catalog_store.tables import TABLES
from tests.catalog_store.catalog_tables import make_changed_ids, make_frames, write_frames
from tests.commands import run_pipeline
from tests.conftest import run_module

if TYPE_CHECKING:
    from pathlib import Path

NEXT = {"recording": 100, "artist": 50, "release": 50, "label": 10}
EDITED = {
    "recording": {"title": "Another Title", "duration_ms": None, "popularity": 0.123},
    "track": {"title": "Another Title", "genres": ["House"], "popularity": None},
    "label": {"name": "Another Label"},
}
"""By table, columns and the value that an edit gives them."""
Frames = dict[str, list[dict[str, Any]]]


def edit(before: Frames, chance: random.Random) -> tuple[Frames, set[tuple[str, int, str]]]:
    """Return the rows with some values changed, and the cells that differ."""
    after = {name: [dict(row) for row in rows] for name, rows in before.items()}
    cells = set()
    for name, columns in EDITED.items():
        [key] = TABLES[name].primary_key
        for row in after[name]:
            for column, value in columns.items():
                if chance.random() < 0.2 and row[column] != value:
                    row[column] = value
                    cells.add((name, row[key], column))
    return after, cells


def publish_pair(root: Path, before: Frames, after: Frames, next_ids: dict[str, int] = NEXT) -> None:
    for name, rows, ids in (("old", before, NEXT), ("new", after, next_ids)):
        publish(write_frames(root / "tables" / name, rows), root, snapshot_id=name, next_ids=ids)


@pytest.mark.parametrize("seed", range(2))
def test_every_changed_cell_is_counted_and_written_once(tmp_path: Path, seed: int) -> None:
    before = make_frames(30, 1)
    after, cells = edit(before, random.Random(seed))  # noqa: S311 - test data
    before["redirect"] = [{"kind": "artist", "old_id": 40, "new_id": 7}]
    after["redirect"] = []
    publish_pair(tmp_path, before, after)
    old, new = (find_snapshot(tmp_path, name) for name in ("old", "new"))
    found = compare_snapshots(old, new)
    assert set(found.tables) == {name for name, _, _ in cells} | {"redirect"}
    for name in found.tables.keys() & EDITED.keys():
        assert found.tables[name].columns == Counter(column for one, _, column in cells if one == name)
        assert found.tables[name].changed == len({key for one, key, _ in cells if one == name})
    assert (found.tables["redirect"].removed, found.tables["redirect"].added) == (1, 0)
    written = {path.stem: pl.read_parquet(path) for path in write_changed_rows(old, new, tmp_path / "rows")}
    listed = [
        (name, row[TABLES[name].primary_key[0]], row["column"])
        for name in written.keys() & EDITED.keys()
        for row in written[name].to_dicts()
    ]
    assert sorted(listed) == sorted(cells)
    assert written["redirect"].rows() == [("artist", 40, "removed", None, None, None)]


def test_equal_snapshots_do_not_differ_and_read_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_frames(30, 1)
    publish_pair(tmp_path, rows, rows)
    monkeypatch.setattr("catalog_store.snapshot_difference._compare_table", None)
    found = compare_snapshots(find_snapshot(tmp_path, "old"), find_snapshot(tmp_path, "new"))
    assert found.tables == {}
    assert not any(count for kind in found.ids.values() for count in kind.values())


def test_changes_of_ids_are_those_of_the_interface(tmp_path: Path) -> None:
    publish_pair(tmp_path, *make_changed_ids(), NEXT | {"recording": 102})
    found = compare_snapshots(find_snapshot(tmp_path, "old"), find_snapshot(tmp_path, "new"))
    with open_catalog(tmp_path) as catalog:
        listed = Counter((change.kind, change.change) for change in catalog.list_changes("old").changes)
    counted = {(kind, name): count for kind, counts in found.ids.items() for name, count in counts.items() if name != "gained" and count}
    assert (
        counted == listed == {("recording", "merged"): 1, ("recording", "split"): 1, ("recording", "restored"): 1, ("artist", "removed"): 1}
    )
    assert found.ids["recording"]["gained"] == 1, "101; a split explains 100"


def test_table_without_rows_in_one_snapshot_is_compared(tmp_path: Path) -> None:
    before, after = make_frames(12, 1), make_frames(12, 1)
    before["redirect"] = []
    after["redirect"] = [{"kind": "recording", "old_id": 90, "new_id": 4}]
    publish_pair(tmp_path, before, after)
    found = compare_snapshots(find_snapshot(tmp_path, "old"), find_snapshot(tmp_path, "new"))
    assert found.tables["redirect"].added == 1


def test_command_prints_the_difference_and_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    before = make_frames(12, 1)
    after, _ = edit(before, random.Random(1))  # noqa: S311 - test data
    publish_pair(tmp_path / "cata'log", before, after)
    arguments = ("pipeline", "diff", "old", "new", "--catalog", str(tmp_path / "cata'log"), "--rows", str(tmp_path / "ro'ws"))
    printed = json.loads(run_module(*arguments).stdout)
    assert (printed["old"], printed["new"]) == ("old", "new")
    assert printed["tables"]["label"] == {
        "changed": printed["tables"]["label"]["columns"]["name"],
        "columns": printed["tables"]["label"]["columns"],
    }
    again = run_module(*arguments, check=False)
    assert (again.returncode, "is not empty" in again.stderr) == (1, True)
    unknown = run_module("pipeline", "diff", "never", "new", "--catalog", str(tmp_path / "cata'log"), check=False)
    assert (unknown.returncode, "never" in unknown.stderr) == (1, True)


@pytest.mark.parametrize(
    ("how", "reason"), [("lost", "tables/redirect/part-"), ("rotten", "`verify` names"), ("server", "files of a server")]
)
def test_command_names_damaged_and_absent_tables(tmp_path: Path, how: str, reason: str) -> None:
    before = make_frames(12, 1)
    publish_pair(tmp_path / "catalog", before, edit(before, random.Random(1))[0])  # noqa: S311 - test data
    pull(str(tmp_path / "catalog"), tmp_path / "node", role="serving" if how == "server" else "all")
    tables = tmp_path / "node" / "snapshots" / "new" / "tables"
    if how == "lost":
        next((tables / "redirect").iterdir()).unlink()
    elif how == "rotten":
        file = next((tables / "label").iterdir())
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(bytes(len(content)))
    refused = run_pipeline("diff", "new", "new", "--catalog", tmp_path / "node", check=False)
    assert refused.returncode == 1
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr
