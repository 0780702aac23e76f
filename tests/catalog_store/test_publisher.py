from __future__ import annotations

import fcntl
import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store import publisher
from catalog_store.errors import MissingTableError, NoSnapshotError, PublishBusyError, SnapshotExistsError, SnapshotInvalidError
from catalog_store.publisher import current_folder, damaged_snapshots, highest_ids, prune, publish, rollback, snapshots, unused_id
from catalog_store.reader import open_catalog
from catalog_store.snapshot import MANIFEST, read_manifest, verify
from catalog_store.tables.files import parts
from tests.catalog_store.catalog_tables import make_tables

if TYPE_CHECKING:
    from datetime import tzinfo


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_tables(tmp_path_factory.mktemp("small"), 20)


def ids(root: Path) -> list[str]:
    return [snapshot.id for snapshot in snapshots(root)]


def live(root: Path) -> str:
    with open_catalog(root) as catalog:
        return catalog.snapshot_id


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_publish_makes_a_whole_snapshot_and_switches_to_it(small: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={"recording": 21}, report=told.append)
    assert snapshot.is_current
    assert live(tmp_path) == "a"
    assert current_folder(tmp_path) == snapshot.folder
    assert verify(snapshot.folder) == snapshot.manifest
    assert set(snapshot.manifest.tables) == set(small)
    assert snapshot.manifest.tables["recording"].rows == 20
    assert snapshot.manifest.next_ids == {"recording": 21}
    assert "building the search index" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [".publish.lock", "current", "snapshots"]
    assert (tmp_path / "current").readlink() == Path("snapshots/a")


def test_attachments_lie_beside_the_catalog_and_are_verified(small: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "made.html").write_text("<p>ours</p>")
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={}, attachments={"report.html": tmp_path / "made.html"})
    (tmp_path / "made.html").write_text("changed afterwards")
    assert (snapshot.folder / "report.html").read_text() == "<p>ours</p>"
    assert verify(snapshot.folder).attachments[0].path == "report.html"
    (snapshot.folder / "report.html").unlink()
    with pytest.raises(SnapshotInvalidError, match=r"report\.html is missing"):
        verify(snapshot.folder)


def test_kind_of_which_no_id_was_given_begins_with_the_first(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={"label": 1, "recording": 21})
    assert highest_ids(tmp_path) == {"label": 1, "recording": 21}
    assert highest_ids(tmp_path, {"label": 5, "recording": 5}) == {"label": 5, "recording": 21}


def test_index_of_fingerprints_is_taken_along_with_its_folders(small: dict[str, Path], tmp_path: Path) -> None:
    index = tmp_path / "index"
    (index / "segments").mkdir(parents=True)
    (index / "layout.json").write_text("{}")
    for name in ("0", "1"):
        (index / "segments" / name).write_bytes(b"landmarks")
    snapshot = publish(small, tmp_path / "root", snapshot_id="a", next_ids={}, recognition=index)
    taken = snapshot.folder / "serving" / "recognition"
    assert files_of(taken) == files_of(index)
    assert (taken / "segments" / "0").samefile(index / "segments" / "0"), "hard-linked, not copied"
    assert {"serving/recognition/layout.json", "serving/recognition/segments/0"} <= {file.path for file in verify(snapshot.folder).serving}


def test_a_manifest_without_attachments_is_still_read(small: dict[str, Path], tmp_path: Path) -> None:
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={})
    manifest = snapshot.folder / MANIFEST
    older = json.loads(manifest.read_text())
    del older["attachments"]
    manifest.write_text(json.dumps(older))
    assert verify(snapshot.folder).attachments == ()


def test_same_tables_and_id_give_the_same_bytes(small: dict[str, Path], tmp_path: Path) -> None:
    for root in ("one", "two"):
        publish(small, tmp_path / root, snapshot_id="a", next_ids={"recording": 21})
    one, two = (files_of(tmp_path / root / "snapshots" / "a") for root in ("one", "two"))
    assert set(one) == set(two)
    changed = {"catalog.duckdb", MANIFEST}
    assert {name for name in one if one[name] != two[name]} <= changed
    assert {name for name in one if name.startswith("serving/")} >= {"serving/serving.sqlite", "serving/search/pair_documents.npy"}


def test_parts_are_linked_not_copied_where_the_file_system_can(small: dict[str, Path], tmp_path: Path) -> None:
    if next(iter(small.values())).stat().st_dev != tmp_path.stat().st_dev:
        pytest.skip("two file systems")
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={})
    assert parts(small["recording"])[0].samefile(parts(snapshot.folder / "tables" / "recording")[0])


def test_parts_are_copied_where_links_are_impossible(small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(_self: Path, _target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={})
    assert parts(small["recording"])[0].read_bytes() == parts(snapshot.folder / "tables" / "recording")[0].read_bytes()


def test_a_snapshot_is_never_overwritten(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={})
    with pytest.raises(SnapshotExistsError, match="publish under another id"):
        publish(small, tmp_path, snapshot_id="a", next_ids={})


@pytest.mark.parametrize("snapshot_id", ["", "../x", ".hidden", "a/b", "x" * 65, "a b"])
def test_ids_that_are_no_folder_names_are_refused(small: dict[str, Path], tmp_path: Path, snapshot_id: str) -> None:
    with pytest.raises(ValueError, match="snapshot id"):
        publish(small, tmp_path, snapshot_id=snapshot_id, next_ids={})


def test_missing_and_unpublishable_tables_are_named(small: dict[str, Path], tmp_path: Path) -> None:
    tables = {**small, "source_recording": tmp_path}
    del tables["work"]
    with pytest.raises(MissingTableError, match=r"missing tables \['work'\].*not published \['source_recording'\]"):
        publish(tables, tmp_path, snapshot_id="a", next_ids={})


def test_a_failed_publish_keeps_the_old_catalog_and_the_next_one_is_clean(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={})
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "part-00000.parquet").write_bytes(b"no parquet")
    with pytest.raises(Exception, match=r"(?i)parquet|magic"):
        publish({**small, "track": broken}, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "a"
    publish(small, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "b"
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == ["a", "b"]


def test_only_one_process_publishes_at_a_time(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={})
    with (tmp_path / ".publish.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for act in (
            lambda: publish(small, tmp_path, snapshot_id="b", next_ids={}),
            lambda: rollback(tmp_path, "a"),
            lambda: prune(tmp_path, 1),
        ):
            with pytest.raises(PublishBusyError, match="wait for it"):
                act()
    rollback(tmp_path, "a")


def test_rollback_goes_back_and_forth(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(small, tmp_path, snapshot_id=name, next_ids={})
    assert rollback(tmp_path, "a").is_current
    assert live(tmp_path) == "a"
    assert [snapshot.is_current for snapshot in snapshots(tmp_path)] == [True, False]
    rollback(tmp_path, "b")
    assert live(tmp_path) == "b"


def test_rollback_refuses_unknown_and_damaged_snapshots(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(small, tmp_path, snapshot_id=name, next_ids={})
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


def test_prune_keeps_the_newest_and_the_live_one(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        publish(small, tmp_path, snapshot_id=name, next_ids={})
    rollback(tmp_path, "a")
    assert prune(tmp_path, 2) == ["b"]
    assert ids(tmp_path) == ["a", "c", "d"]
    assert prune(tmp_path, 2) == []
    with pytest.raises(ValueError, match="keep is 0"):
        prune(tmp_path, 0)


def test_the_snapshot_published_last_is_the_newest_when_the_clock_went_back(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year, name in ((2026, "z"), (2025, "b"), (2024, "a"), (2025, "c")):
        set_clock(monkeypatch, year)
        publish(small, tmp_path, snapshot_id=name, next_ids={"recording": 21})
    assert ids(tmp_path) == ["z", "b", "a", "c"]
    rollback(tmp_path, "z")
    assert prune(tmp_path, 2) == ["b"]
    assert ids(tmp_path) == ["z", "a", "c"]
    rollback(tmp_path, "c")
    assert prune(tmp_path, 1) == ["z", "a"]


def test_snapshots_without_a_sequence_number_are_older_and_ordered_by_time(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for year, name in ((2020, "y"), (2019, "z")):
        set_clock(monkeypatch, year)
        folder = publish(small, tmp_path, snapshot_id=name, next_ids={}).folder
        older = json.loads((folder / MANIFEST).read_text())
        del older["sequence"], older["seal"]
        (folder / MANIFEST).write_text(json.dumps(older))
    set_clock(monkeypatch, 1999)
    assert publish(small, tmp_path, snapshot_id="a", next_ids={}).manifest.sequence == 1
    assert ids(tmp_path) == ["z", "y", "a"]


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(year, 1, 1, tzinfo=tz)

    monkeypatch.setattr(publisher, "datetime", Clock)


def test_an_id_that_was_given_before_gets_a_number(small: dict[str, Path], tmp_path: Path) -> None:
    assert unused_id(tmp_path, "a") == "a"
    for name in ("a", "a-2", "b", "c"):
        publish(small, tmp_path, snapshot_id=name, next_ids={})
    assert prune(tmp_path, 1) == ["a", "a-2", "b"]
    assert unused_id(tmp_path, "c") == "c-2"
    assert unused_id(tmp_path, "a") == "a-3", "callers may still ask what changed since the one that was pruned"
    assert unused_id(tmp_path, "d") == "d"


def damage(path: Path, text: bytes, instead: bytes) -> None:
    content = path.read_bytes()
    assert content.count(text) >= 1
    path.write_bytes(content.replace(text, instead, 1))


def test_a_damaged_manifest_of_an_old_snapshot_stops_no_publish_and_no_id_is_given_again(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        publish(small, tmp_path, snapshot_id=name, next_ids={"recording": 5})
    rollback(tmp_path, "a")
    (tmp_path / "snapshots" / "c" / MANIFEST).write_bytes(b"{")
    (tmp_path / "snapshots" / "b" / MANIFEST).unlink()
    assert sorted(damaged_snapshots(tmp_path)) == ["b", "c"]
    assert ids(tmp_path) == ["a"]
    assert prune(tmp_path, 1) == []
    following = publish(small, tmp_path, snapshot_id="d", next_ids={"recording": 5})
    assert following.manifest.next_ids["recording"] == 21, "the tables of b and c hold recordings 1 to 20"
    assert live(tmp_path) == "d"


def test_a_snapshot_of_which_nothing_can_be_read_is_named(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(small, tmp_path, snapshot_id=name, next_ids={})
    (tmp_path / "snapshots" / "a" / MANIFEST).write_bytes(b"{")
    shutil.rmtree(tmp_path / "snapshots" / "a" / "tables" / "artist")
    with pytest.raises(SnapshotInvalidError, match=r"snapshots/a has neither .* restore its manifest.json from a backup"):
        publish(small, tmp_path, snapshot_id="c", next_ids={})
    assert live(tmp_path) == "b"


def test_rollback_reads_the_files_through_unless_told_not_to(small: dict[str, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish(copied(small, tmp_path / f"tables-{name}"), tmp_path, snapshot_id=name, next_ids={})
    told: list[str] = []
    rollback(tmp_path, "a", report=told.append)
    assert told == ["verifying snapshot a: 0.0 of 0.0 GB read"]
    rollback(tmp_path, "b")
    damaged = tmp_path / "snapshots" / "a" / "serving" / "bodies" / "track.bin"
    content = damaged.read_bytes()
    damaged.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(SnapshotInvalidError, match=r"serving/bodies/track\.bin has other contents: roll back to another one"):
        rollback(tmp_path, "a")
    assert live(tmp_path) == "b"
    assert rollback(tmp_path, "a", contents=False).is_current


@pytest.mark.parametrize("contents", [True, False])
def test_rollback_refuses_a_manifest_that_breaks_its_seal(small: dict[str, Path], tmp_path: Path, *, contents: bool) -> None:
    for name in ("a", "b"):
        publish(small, tmp_path, snapshot_id=name, next_ids={"recording": 21})
    damage(tmp_path / "snapshots" / "a" / MANIFEST, b'"recording": 21', b'"recording": 20')
    with pytest.raises(SnapshotInvalidError, match=r"a/manifest\.json is damaged, it breaks its seal"):
        rollback(tmp_path, "a", contents=contents)
    assert live(tmp_path) == "b"


def copied(tables: dict[str, Path], place: Path) -> dict[str, Path]:
    """Files of their own: linked ones would share a damage."""
    return {name: Path(shutil.copytree(folder, place / name)) for name, folder in tables.items()}


def test_nothing_is_made_where_there_is_no_catalog(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(NoSnapshotError, match="no catalog at"):
        rollback(nowhere, "a")
    assert prune(nowhere, 1) == []
    assert not nowhere.exists()


def test_a_reader_outlives_the_removal_of_its_snapshot(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={})
    with open_catalog(tmp_path) as catalog:
        publish(small, tmp_path, snapshot_id="b", next_ids={})
        assert prune(tmp_path, 1) == ["a"]
        assert catalog.snapshot_id == "a"
        assert catalog.track_body(1)
        assert catalog.search(artist="Velvet Foxes", title="Midnight Running").hits


def test_the_root_can_be_moved(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path / "here", snapshot_id="a", next_ids={})
    (tmp_path / "here").rename(tmp_path / "there")
    assert live(tmp_path / "there") == "a"


def test_a_snapshot_killed_between_its_two_renames_leaves_its_id_free(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={})

    def killed(_root: Path, _link: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publisher, "_switch", killed)
        with pytest.raises(KeyboardInterrupt):
            publish(small, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "a"
    publish(small, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "b"
    assert not list(tmp_path.glob(".publishing-*"))


def test_before_the_first_publish_there_is_nothing(tmp_path: Path) -> None:
    assert current_folder(tmp_path) is None
    assert snapshots(tmp_path) == []
    with pytest.raises(NoSnapshotError, match="nothing is published"):
        open_catalog(tmp_path)


def test_tables_without_rows_can_be_published(tmp_path: Path) -> None:
    tables = make_tables(tmp_path / "tables", 0)
    for name in ("work_recording", "recording_member", "isrc_conflict", "external_redirect", "redirect"):
        frame = pl.read_parquet(parts(tables[name])[0]).clear()
        frame.write_parquet(parts(tables[name])[0])
    publish(tables, tmp_path, snapshot_id="a", next_ids={})
    assert read_manifest(tmp_path / "snapshots" / "a").tables["recording"].rows == 0
    with open_catalog(tmp_path) as catalog:
        assert catalog.track_body(1) is None
        assert catalog.search(artist="a", title="b").hits == []
