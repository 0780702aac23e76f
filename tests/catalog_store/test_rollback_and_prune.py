"""Rollback and prune: which snapshots they accept, keep and remove."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.published_snapshots import find_highest_ids, list_damaged_snapshots, list_snapshots
from catalog_store.publisher import prune, publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST, Snapshot, read_manifest
from tests.catalog_store.earlier_snapshots import PublishEarlier, damage, ids, lay_manifest, live, make_current
from tests.unreadable_folders import refuse_listing


def test_rollback_goes_back_and_forth(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a", "b")
    assert rollback(tmp_path, "a").is_current
    assert live(tmp_path) == "a"
    assert [snapshot.is_current for snapshot in list_snapshots(tmp_path)] == [True, False]
    rollback(tmp_path, "b")
    assert live(tmp_path) == "b"


def test_rollback_refuses_unknown_and_damaged_snapshots(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a", "b")
    with pytest.raises(NoSnapshotError, match=r"'c'.*there are a, b"):
        rollback(tmp_path, "c")
    with pytest.raises(NoSnapshotError):
        rollback(tmp_path, "../snapshots/a")
    (tmp_path / "snapshots" / "a" / "serving" / "serving.sqlite").unlink()
    with pytest.raises(SnapshotInvalidError, match=r"serving/serving\.sqlite is missing"):
        rollback(tmp_path, "a")
    assert live(tmp_path) == "b"


def test_ids_given_out_are_remembered_through_a_rollback(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={"recording": 100})
    publish(small, tmp_path, snapshot_id="b", next_ids={"recording": 200, "artist": 7})
    rollback(tmp_path, "a")
    prune(tmp_path, 1)
    third = publish(small, tmp_path, snapshot_id="c", next_ids={"recording": 150})
    assert third.manifest.next_ids == {"artist": 7, "recording": 200}


def test_prune_keeps_the_newest_and_the_live_one(tmp_path: Path) -> None:
    for number, name in enumerate("abcd", start=1):
        lay_manifest(tmp_path, name, sequence=number)
    rollback(tmp_path, "a")
    assert prune(tmp_path, 2) == ["b"]
    assert ids(tmp_path) == ["a", "c", "d"]
    assert prune(tmp_path, 2) == []
    with pytest.raises(ValueError, match="keep is 0"):
        prune(tmp_path, 0)


def test_rollback_reads_the_files_through_unless_asked_not_to(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(copied(small, tmp_path / f"tables-{name}"), tmp_path, snapshot_id=name, next_ids={})
    reported: list[str] = []
    rollback(tmp_path, "a", report=reported.append)
    assert reported == ["verifying snapshot a: 0.0 of 0.0 GB read"]
    rollback(tmp_path, "b")
    damaged = tmp_path / "snapshots" / "a" / "serving" / "bodies" / "track.bin"
    content = damaged.read_bytes()
    damaged.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(SnapshotInvalidError, match=r"serving/bodies/track\.bin has other contents: roll back to another one"):
        rollback(tmp_path, "a")
    assert live(tmp_path) == "b"
    assert rollback(tmp_path, "a", contents=False).is_current


@pytest.mark.parametrize("contents", [True, False])
def test_rollback_refuses_a_manifest_that_breaks_its_seal(publish_earlier: PublishEarlier, tmp_path: Path, *, contents: bool) -> None:
    publish_earlier(tmp_path, "a", "b")
    damage(tmp_path / "snapshots" / "a" / MANIFEST, b'"recording": 21', b'"recording": 20')
    with pytest.raises(SnapshotInvalidError, match=r"a/manifest\.json is damaged: its seal does not match"):
        rollback(tmp_path, "a", contents=contents)
    assert live(tmp_path) == "b"


def copied(tables: dict[str, Path], place: Path) -> dict[str, Path]:
    """Copy the tables, because linked files would share a damage."""
    return {name: Path(shutil.copytree(folder, place / name)) for name, folder in tables.items()}


def test_missing_catalog_is_not_created(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(NoSnapshotError, match="no catalog at"):
        rollback(nowhere, "a")
    assert prune(nowhere, 1) == []
    assert not nowhere.exists()


def test_a_reader_outlives_the_removal_of_its_snapshot(small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a")
    with open_catalog(tmp_path) as catalog:
        publish(small, tmp_path, snapshot_id="b", next_ids={})
        assert prune(tmp_path, 1) == ["a"]
        assert catalog.snapshot_id == "a"
        assert catalog.read_track_body(1)
        assert catalog.search(artist="Velvet Foxes", title="Midnight Running").hits


@pytest.mark.parametrize(("keep", "removed"), [(1, ["a", "b"]), (2, ["a"]), (3, []), (4, []), (9, [])])
def test_prune_keeps_exactly_so_many_of_the_newest(tmp_path: Path, keep: int, removed: list[str]) -> None:
    for number, name in enumerate("abc", start=1):
        lay_manifest(tmp_path, name, sequence=number)
    make_current(tmp_path, "c")
    assert prune(tmp_path, keep) == removed
    assert ids(tmp_path) == [name for name in "abc" if name not in removed]


@pytest.mark.parametrize("keep", [0, -1])
def test_prune_refuses_to_keep_zero_snapshots(tmp_path: Path, keep: int) -> None:
    lay_manifest(tmp_path, "a", sequence=1)
    with pytest.raises(ValueError, match=f"keep is {keep}: at least the newest snapshot must stay"):
        prune(tmp_path, keep)
    assert ids(tmp_path) == ["a"]


def test_rollback_returns_the_live_snapshot_and_frees_the_lock_after_a_failure(tmp_path: Path) -> None:
    folders = {name: lay_manifest(tmp_path, name, sequence=number) for number, name in enumerate("abc", start=1)}
    make_current(tmp_path, "c")
    (folders["a"] / "catalog.duckdb").write_text("other")
    with pytest.raises(SnapshotInvalidError):
        rollback(tmp_path, "a")
    assert rollback(tmp_path, "b") == Snapshot(folders["b"], read_manifest(folders["b"]), is_current=True)
    assert (tmp_path / "current").readlink() == Path("snapshots/b")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".publish.lock", ".verified", "current", "snapshots"]


def test_unreadable_folder_of_snapshots_stops_every_operation(
    tmp_path: Path, small: dict[str, Path], publish_earlier: PublishEarlier, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_earlier(tmp_path, "first", "second")
    refuse_listing(monkeypatch, tmp_path / "snapshots")
    # An empty list would give out ids of the first snapshot once more, and tell an operator that nothing had to be removed.
    for operation in (
        lambda: prune(tmp_path, 1),
        lambda: publish(small, tmp_path, snapshot_id="third", next_ids={"recording": 21}),
        lambda: list_snapshots(tmp_path),
        lambda: list_damaged_snapshots(tmp_path),
        lambda: find_highest_ids(tmp_path),
    ):
        with pytest.raises(PermissionError, match=r"snapshots'$"):
            operation()
    monkeypatch.undo()
    assert (ids(tmp_path), live(tmp_path)) == (["first", "second"], "second")


def test_unreadable_root_stops_a_rollback_before_the_switch(
    tmp_path: Path, publish_earlier: PublishEarlier, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_earlier(tmp_path, "first", "second")
    refuse_listing(monkeypatch, tmp_path)
    # A marker that is not seen and stays would make the next prune remove what is live.
    with pytest.raises(PermissionError):
        rollback(tmp_path, "first")
    monkeypatch.undo()
    assert live(tmp_path) == "second"
