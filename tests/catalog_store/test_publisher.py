"""Publish: what a snapshot holds, what is refused, and what a failure leaves."""

from __future__ import annotations

import fcntl
import json
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from catalog_store import publisher
from catalog_store.errors import MissingTableError, PublishBusyError, SnapshotExistsError, SnapshotInvalidError
from catalog_store.published_snapshots import find_current_folder
from catalog_store.publisher import prune, publish, rollback
from catalog_store.reader import open_catalog
from catalog_store.search.base_documents import SEARCH_BASE
from catalog_store.search.carried_words import CARRIED_WORDS
from catalog_store.serving.serving_build import BODY_DIGESTS
from catalog_store.snapshot import MANIFEST, hash_file, read_manifest, verify
from catalog_store.tables.files import list_parts
from tests.catalog_store.catalog_tables import make_tables
from tests.catalog_store.earlier_snapshots import PublishEarlier, files_of, ids, live
from tests.unreadable_folders import refuse_listing


def test_publish_makes_a_whole_snapshot_and_switches_to_it(small: dict[str, Path], tmp_path: Path) -> None:
    reported: list[str] = []
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={"recording": 21}, report=reported.append)
    assert snapshot.is_current
    assert live(tmp_path) == "a"
    assert find_current_folder(tmp_path) == snapshot.folder
    assert verify(snapshot.folder) == snapshot.manifest
    assert set(snapshot.manifest.tables) == set(small)
    assert snapshot.manifest.tables["recording"].rows == 20
    assert snapshot.manifest.next_ids == {"recording": 21}
    assert "building the search index" in reported
    assert sorted(path.name for path in tmp_path.iterdir()) == [".publish.lock", "current", "snapshots"]
    assert (tmp_path / "current").readlink() == Path("snapshots/a")


def test_attachments_lie_beside_the_catalog_and_are_verified(small: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "made.html").write_text("<p>ours</p>")
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={}, attachments={"report.html": tmp_path / "made.html"})
    (tmp_path / "made.html").write_text("changed afterwards")
    assert (snapshot.folder / "report.html").read_text() == "<p>ours</p>"
    assert "report.html" in [file.path for file in verify(snapshot.folder).attachments]
    (snapshot.folder / "report.html").unlink()
    with pytest.raises(SnapshotInvalidError, match=r"report\.html is missing"):
        verify(snapshot.folder)


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


def test_a_manifest_without_attachments_is_still_read(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a")
    folder = tmp_path / "snapshots" / "a"
    manifest = folder / MANIFEST
    older = json.loads(manifest.read_text())
    # A manifest from before the sequence has no seal either.
    for member in ("attachments", "sequence", "seal"):
        del older[member]
    manifest.write_text(json.dumps(older))
    assert verify(folder).attachments == ()


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
    assert list_parts(small["recording"])[0].samefile(list_parts(snapshot.folder / "tables" / "recording")[0])


def test_parts_are_copied_where_links_are_impossible(small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(_self: Path, _target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={})
    assert list_parts(small["recording"])[0].read_bytes() == list_parts(snapshot.folder / "tables" / "recording")[0].read_bytes()


def test_a_snapshot_is_never_overwritten(small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a")
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


@pytest.mark.parametrize(
    ("removed", "added", "message"),
    [
        ("work", None, r"missing tables \['work'\], tables that are not published \[\]"),
        (None, "source_recording", r"missing tables \[\], tables that are not published \['source_recording'\]"),
        (None, "nonsense", r"missing tables \[\], tables that are not published \['nonsense'\]"),
    ],
)
def test_one_missing_or_unpublishable_table_is_enough_to_refuse(
    small: dict[str, Path], tmp_path: Path, removed: str | None, added: str | None, message: str
) -> None:
    tables = {name: folder for name, folder in small.items() if name != removed} | ({added: tmp_path} if added else {})
    with pytest.raises(MissingTableError, match=message):
        publish(tables, tmp_path / "root", snapshot_id="a", next_ids={})
    assert not (tmp_path / "root").exists()


def test_a_failed_publish_keeps_the_old_catalog_and_the_next_one_is_clean(
    small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path
) -> None:
    publish_earlier(tmp_path, "a")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "part-00000.parquet").write_bytes(b"no parquet")
    with pytest.raises(Exception, match=r"(?i)parquet|magic"):
        publish({**small, "track": broken}, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "a"
    publish(small, tmp_path, snapshot_id="b", next_ids={})
    assert live(tmp_path) == "b"
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == ["a", "b"]


def test_only_one_process_publishes_at_a_time(small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path, "a")
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


def test_the_root_can_be_moved(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    publish_earlier(tmp_path / "here", "a")
    (tmp_path / "here").rename(tmp_path / "there")
    assert live(tmp_path / "there") == "a"


def test_a_snapshot_killed_between_its_two_renames_leaves_its_id_free(
    small: dict[str, Path], publish_earlier: PublishEarlier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_earlier(tmp_path, "a")

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


def test_tables_without_rows_can_be_published(tmp_path: Path) -> None:
    tables = make_tables(tmp_path / "tables", 0)
    for name in ("work_recording", "work_conflict", "recording_member", "isrc_conflict", "external_redirect", "redirect"):
        frame = pl.read_parquet(list_parts(tables[name])[0]).clear()
        frame.write_parquet(list_parts(tables[name])[0])
    publish(tables, tmp_path, snapshot_id="a", next_ids={})
    assert read_manifest(tmp_path / "snapshots" / "a").tables["recording"].rows == 0
    with open_catalog(tmp_path) as catalog:
        assert catalog.read_track_body(1) is None
        assert catalog.search(artist="a", title="b").hits == []


def test_publish_reports_each_step_in_order(small: dict[str, Path], tmp_path: Path) -> None:
    reported: list[str] = []
    publish(small, tmp_path, snapshot_id="a", next_ids={}, report=reported.append)
    assert reported == [
        "taking over the tables",
        "building the analysts' file",
        "building the serving file",
        "building the search index",
        "writing the manifest",
        "checking invariants",
        "flushing to disk",
        "switching to the new snapshot",
    ]


def test_manifest_of_a_published_snapshot_lists_parts_and_attachments_in_order(small: dict[str, Path], tmp_path: Path) -> None:
    frame = pl.read_parquet(list_parts(small["recording"])[0])
    divided = tmp_path / "recording"
    divided.mkdir()
    for number, rows in enumerate((frame[:7], frame[7:])):
        rows.write_parquet(divided / f"part-{number:05d}.parquet")
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(name)
    attachments = {name: tmp_path / name for name in ("b.txt", "a.txt")}
    manifest = publish(
        {**small, "recording": divided}, tmp_path / "root", snapshot_id="x" * 64, next_ids={"work": 2}, attachments=attachments
    ).manifest
    assert (manifest.format, manifest.format_version, manifest.id, manifest.sequence) == ("music-catalog-snapshot", 1, "x" * 64, 1)
    assert datetime.strptime(manifest.created_at, "%Y-%m-%dT%H:%M:%S.%f%z").utcoffset() is not None
    recording = manifest.tables["recording"]
    digests = [hash_file(part)[:16] for part in list_parts(divided)]
    assert [(part.path, part.rows) for part in recording.files] == [
        (f"tables/recording/part-00000-{digests[0]}.parquet", 7),
        (f"tables/recording/part-00001-{digests[1]}.parquet", 13),
    ]
    sizes = [(divided / f"part-0000{number}.parquet").stat().st_size for number in (0, 1)]
    assert (recording.rows, recording.bytes, [part.bytes for part in recording.files]) == (20, sum(sizes), sizes)
    assert [file.path for file in manifest.attachments] == sorted(["a.txt", "b.txt", *BODY_DIGESTS, *SEARCH_BASE, *CARRIED_WORDS])
    served = [file.path for file in manifest.serving]
    assert served == sorted(served)
    assert manifest.analyst_file.path == "catalog.duckdb"


def test_publish_with_an_unreadable_recognition_index_fails(
    tmp_path: Path, small: dict[str, Path], publish_earlier: PublishEarlier, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_earlier(tmp_path / "catalog", "first")
    (tmp_path / "index" / "base").mkdir(parents=True)
    (tmp_path / "index" / "base" / "postings.npy").write_bytes(b"x")
    refuse_listing(monkeypatch, tmp_path / "index" / "base")
    with pytest.raises(PermissionError, match=r"base'$"):
        publish(small, tmp_path / "catalog", snapshot_id="second", next_ids={"recording": 21}, recognition=tmp_path / "index")
    monkeypatch.undo()
    assert (ids(tmp_path / "catalog"), live(tmp_path / "catalog")) == (["first"], "first")
