"""Tests of the snapshots of a root: their order, the live one, and the ids that were given out."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.published_snapshots import (
    find_current_folder,
    find_highest_ids,
    find_snapshot,
    list_damaged_snapshots,
    list_snapshots,
    read_live_snapshot,
)
from catalog_store.publisher import find_unused_id, prune, publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST, Snapshot, read_manifest
from catalog_store.tables.files import list_parts
from tests.catalog_store.earlier_snapshots import PublishEarlier, ids, lay_manifest, live, make_current, set_clock

if TYPE_CHECKING:
    from pathlib import Path


def test_kind_of_which_no_id_was_given_begins_with_the_first(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={"label": 1, "recording": 21})
    assert find_highest_ids(tmp_path) == {"label": 1, "recording": 21}
    assert find_highest_ids(tmp_path, {"label": 5, "recording": 5}) == {"label": 5, "recording": 21}


def test_the_snapshot_published_last_is_the_newest_when_the_clock_went_back(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year, name in ((2026, "z"), (2024, "b"), (2025, "a")):
        set_clock(monkeypatch, year)
        publish(small, tmp_path, snapshot_id=name, next_ids={"recording": 21})
    assert ids(tmp_path) == ["z", "b", "a"]
    rollback(tmp_path, "z")
    assert prune(tmp_path, 1) == ["b"]
    assert ids(tmp_path) == ["z", "a"]


def test_snapshots_without_a_sequence_number_are_older_and_ordered_by_time(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for second, name in ((20, "y"), (19, "z")):
        older = json.loads((lay_manifest(tmp_path, name, second=second) / MANIFEST).read_text())
        del older["sequence"]
        (tmp_path / "snapshots" / name / MANIFEST).write_text(json.dumps(older))
    set_clock(monkeypatch, 1999)
    assert publish(small, tmp_path, snapshot_id="a", next_ids={}).manifest.sequence == 1
    assert ids(tmp_path) == ["z", "y", "a"]


def test_an_id_that_was_given_before_gets_a_number(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    assert find_unused_id(tmp_path, "a") == "a"
    publish_earlier(tmp_path, "a", "a-2", "c")
    assert prune(tmp_path, 1) == ["a", "a-2"]
    assert find_unused_id(tmp_path, "c") == "c-2"
    assert find_unused_id(tmp_path, "a") == "a-3", "callers may still ask what changed since the one that was pruned"
    assert find_unused_id(tmp_path, "d") == "d"


def test_a_damaged_manifest_of_an_old_snapshot_stops_no_publish_and_no_id_is_given_again(
    small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path
) -> None:
    publish_earlier(tmp_path, "a", "b", "c", recording=5)
    rollback(tmp_path, "a")
    (tmp_path / "snapshots" / "c" / MANIFEST).write_bytes(b"{")
    (tmp_path / "snapshots" / "b" / MANIFEST).unlink()
    assert sorted(list_damaged_snapshots(tmp_path)) == ["b", "c"]
    assert ids(tmp_path) == ["a"]
    assert prune(tmp_path, 1) == []
    following = publish(small, tmp_path, snapshot_id="d", next_ids={"recording": 5})
    assert following.manifest.next_ids["recording"] == 21, "the tables of b and c hold recordings 1 to 20"
    assert live(tmp_path) == "d"


def test_a_snapshot_of_which_nothing_can_be_read_is_named(small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a", "b")
    (tmp_path / "snapshots" / "a" / MANIFEST).write_bytes(b"{")
    shutil.rmtree(tmp_path / "snapshots" / "a" / "tables" / "artist")
    with pytest.raises(SnapshotInvalidError, match=r"snapshots/a has neither .* restore its manifest.json from a backup"):
        publish(small, tmp_path, snapshot_id="c", next_ids={})
    assert live(tmp_path) == "b"


def test_root_without_a_publish_has_no_snapshot(tmp_path: Path) -> None:
    assert find_current_folder(tmp_path) is None
    assert list_snapshots(tmp_path) == []
    with pytest.raises(NoSnapshotError, match="nothing is published"):
        open_catalog(tmp_path)


def test_snapshots_are_ordered_by_sequence_then_time_then_id(tmp_path: Path) -> None:
    for name, sequence, second in (("c", 2, 1), ("d", 1, 9), ("b", 0, 5), ("a", 0, 5), ("e", 0, 4)):
        lay_manifest(tmp_path, name, sequence=sequence, second=second)
    make_current(tmp_path, "d")
    assert ids(tmp_path) == ["e", "a", "b", "d", "c"]
    assert [snapshot.id for snapshot in list_snapshots(tmp_path) if snapshot.is_current] == ["d"]


def test_only_folders_that_held_a_catalog_count_as_damaged(tmp_path: Path) -> None:
    lay_manifest(tmp_path, "good", sequence=1)
    folder = tmp_path / "snapshots"
    (folder / "empty").mkdir()
    (folder / "tables-only" / "tables").mkdir(parents=True)
    (folder / "tables-file").mkdir()
    (folder / "tables-file" / "tables").write_text("")
    (folder / "manifest-only").mkdir()
    (folder / "manifest-only" / MANIFEST).write_text("{")
    for ignored in (".building-x", "no id"):
        (folder / ignored).mkdir()
        (folder / ignored / MANIFEST).write_text("{")
    (folder / "file").write_text("")
    assert ids(tmp_path) == ["good"]
    damaged = list_damaged_snapshots(tmp_path)
    assert sorted(damaged) == ["manifest-only", "tables-only"]
    assert "not a manifest" in damaged["manifest-only"]
    assert "it has no manifest.json" in damaged["tables-only"]


def test_highest_ids_are_the_largest_of_all_snapshots_and_of_the_caller(tmp_path: Path) -> None:
    lay_manifest(tmp_path, "a", sequence=1, recording=30, artist=4)
    lay_manifest(tmp_path, "b", sequence=2, recording=20, label=1)
    assert find_highest_ids(tmp_path) == {"recording": 30, "artist": 4, "label": 1}
    given = {"release": 1, "recording": 31, "artist": 3}
    assert find_highest_ids(tmp_path, given) == {"artist": 4, "recording": 31, "release": 1, "label": 1}
    assert list(find_highest_ids(tmp_path, given))[:3] == ["artist", "recording", "release"], (
        "manifests are the same bytes whatever the order"
    )
    assert given == {"release": 1, "recording": 31, "artist": 3}


def test_ids_of_a_damaged_snapshot_come_from_all_parts_of_its_tables(tmp_path: Path) -> None:
    held = {"recording": ([9, 2], [3]), "artist": ([1], [5, 4]), "release": ([],), "label": ([7],)}
    for kind, columns in held.items():
        folder = tmp_path / "snapshots" / "a" / "tables" / kind
        folder.mkdir(parents=True)
        for number, values in enumerate(columns):
            pl.DataFrame({f"{kind}_id": values}, schema={f"{kind}_id": pl.Int64}).write_parquet(folder / f"part-{number:05d}.parquet")
    assert find_highest_ids(tmp_path) == {"recording": 10, "artist": 6, "release": 1, "label": 8}
    list_parts(tmp_path / "snapshots" / "a" / "tables" / "label")[0].write_bytes(b"no parquet")
    with pytest.raises(SnapshotInvalidError, match="neither a usable"):
        find_highest_ids(tmp_path)


def test_snapshot_is_found_by_id_and_the_live_one_is_marked(tmp_path: Path) -> None:
    with pytest.raises(NoSnapshotError, match=r"no snapshot 'a' under .*: there are none$"):
        find_snapshot(tmp_path, "a")
    with pytest.raises(NoSnapshotError, match=r"nothing is published under .*: build a catalog first"):
        read_live_snapshot(tmp_path)
    one, two = (lay_manifest(tmp_path, name, sequence=number) for number, name in enumerate("ab", start=1))
    make_current(tmp_path, "b")
    assert find_snapshot(tmp_path, "a") == Snapshot(one, read_manifest(one), is_current=False)
    assert find_snapshot(tmp_path, "b") == read_live_snapshot(tmp_path) == Snapshot(two, read_manifest(two), is_current=True)
    (tmp_path / "snapshots" / "file").write_text("")
    for name in ("file", ".", "..", "c"):
        with pytest.raises(NoSnapshotError, match=r"there are a, b$"):
            find_snapshot(tmp_path, name)
    (one / MANIFEST).write_text("{")
    with pytest.raises(SnapshotInvalidError):
        find_snapshot(tmp_path, "a")


def test_current_that_is_no_link_is_an_error_and_not_an_empty_catalog(tmp_path: Path) -> None:
    (tmp_path / "current").mkdir()
    with pytest.raises(OSError, match="Invalid argument"):
        find_current_folder(tmp_path)


def test_unused_id_counts_up_past_folders_and_dangling_links(tmp_path: Path) -> None:
    (tmp_path / "snapshots" / "a").mkdir(parents=True)
    assert find_unused_id(tmp_path, "a") == "a-2"
    (tmp_path / "snapshots" / "a-2").symlink_to("nowhere")
    (tmp_path / "snapshots" / "a-4").mkdir()
    assert [find_unused_id(tmp_path, name) for name in ("a", "a-4", "b")] == ["a-3", "a-4-2", "b"]
