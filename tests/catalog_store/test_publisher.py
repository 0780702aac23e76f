from __future__ import annotations

import fcntl
import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl
import pytest

from catalog_store import publisher
from catalog_store.errors import MissingTableError, NoSnapshotError, PublishBusyError, SnapshotExistsError, SnapshotInvalidError
from catalog_store.publisher import (
    find_current_folder,
    find_highest_ids,
    find_snapshot,
    find_unused_id,
    list_damaged_snapshots,
    list_snapshots,
    prune,
    publish,
    read_live_snapshot,
    rollback,
)
from catalog_store.reader import open_catalog
from catalog_store.serving.serving_build import BODY_DIGESTS
from catalog_store.snapshot import MANIFEST, Manifest, Snapshot, StoredTable, describe_file, hash_file, read_manifest, verify
from catalog_store.tables.files import parts
from tests.catalog_store.catalog_tables import make_tables
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from datetime import tzinfo


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_tables(tmp_path_factory.mktemp("small"), 20)


class PublishEarlier(Protocol):
    """Lays down a catalog into which these snapshots were published, one after the other: what comes before a test begins."""

    def __call__(self, root: Path, *names: str, recording: int = 21) -> None: ...


@pytest.fixture(scope="module")
def publish_earlier(small: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> PublishEarlier:
    """Publishes each series once, upon the series that lacks the last one, and copies it: half a second a snapshot."""
    made: dict[tuple[int | str, ...], Path] = {}

    def lay_down(root: Path, *names: str, recording: int = 21) -> None:
        series = (recording, *names)
        if series not in made:
            place = tmp_path_factory.mktemp("earlier")
            if names[1:]:
                lay_down(place, *names[:-1], recording=recording)
            publish(small, place, snapshot_id=names[-1], next_ids={"recording": recording})
            made[series] = place
        shutil.copytree(made[series], root, symlinks=True, dirs_exist_ok=True)

    return lay_down


def ids(root: Path) -> list[str]:
    return [snapshot.id for snapshot in list_snapshots(root)]


def live(root: Path) -> str:
    with open_catalog(root) as catalog:
        return catalog.snapshot_id


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lay_manifest(root: Path, snapshot_id: str, *, sequence: int = 0, second: int = 0, **next_ids: int) -> Path:
    """Write a snapshot that is hardly more than its manifest; one without a sequence number has no seal."""
    folder = root / "snapshots" / snapshot_id
    folder.mkdir(parents=True)
    (folder / "catalog.duckdb").write_text(snapshot_id)
    file = describe_file(folder, folder / "catalog.duckdb")
    tables = {"recording": StoredTable(0, 0, ())}
    made_at = f"2026-01-01T00:00:{second:02d}Z"
    manifest = Manifest("music-catalog-snapshot", 1, snapshot_id, made_at, "0" * 16, tables, next_ids, file, (), sequence=sequence)
    (folder / MANIFEST).write_bytes((manifest.add_seal() if sequence else manifest).encode())
    return folder


def make_current(root: Path, snapshot_id: str) -> None:
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to(f"snapshots/{snapshot_id}")


def test_publish_makes_a_whole_snapshot_and_switches_to_it(small: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={"recording": 21}, report=told.append)
    assert snapshot.is_current
    assert live(tmp_path) == "a"
    assert find_current_folder(tmp_path) == snapshot.folder
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
    assert "report.html" in [file.path for file in verify(snapshot.folder).attachments]
    (snapshot.folder / "report.html").unlink()
    with pytest.raises(SnapshotInvalidError, match=r"report\.html is missing"):
        verify(snapshot.folder)


def test_kind_of_which_no_id_was_given_begins_with_the_first(small: dict[str, Path], tmp_path: Path) -> None:
    publish(small, tmp_path, snapshot_id="a", next_ids={"label": 1, "recording": 21})
    assert find_highest_ids(tmp_path) == {"label": 1, "recording": 21}
    assert find_highest_ids(tmp_path, {"label": 5, "recording": 5}) == {"label": 5, "recording": 21}


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
    assert parts(small["recording"])[0].samefile(parts(snapshot.folder / "tables" / "recording")[0])


def test_parts_are_copied_where_links_are_impossible(small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(_self: Path, _target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    snapshot = publish(small, tmp_path, snapshot_id="a", next_ids={})
    assert parts(small["recording"])[0].read_bytes() == parts(snapshot.folder / "tables" / "recording")[0].read_bytes()


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


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(year, 1, 1, tzinfo=tz)

    monkeypatch.setattr(publisher, "datetime", Clock)


def test_an_id_that_was_given_before_gets_a_number(publish_earlier: PublishEarlier, tmp_path: Path) -> None:
    assert find_unused_id(tmp_path, "a") == "a"
    publish_earlier(tmp_path, "a", "a-2", "c")
    assert prune(tmp_path, 1) == ["a", "a-2"]
    assert find_unused_id(tmp_path, "c") == "c-2"
    assert find_unused_id(tmp_path, "a") == "a-3", "callers may still ask what changed since the one that was pruned"
    assert find_unused_id(tmp_path, "d") == "d"


def damage(path: Path, text: bytes, instead: bytes) -> None:
    content = path.read_bytes()
    assert content.count(text) >= 1
    path.write_bytes(content.replace(text, instead, 1))


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
def test_rollback_refuses_a_manifest_that_breaks_its_seal(publish_earlier: PublishEarlier, tmp_path: Path, *, contents: bool) -> None:
    publish_earlier(tmp_path, "a", "b")
    damage(tmp_path / "snapshots" / "a" / MANIFEST, b'"recording": 21', b'"recording": 20')
    with pytest.raises(SnapshotInvalidError, match=r"a/manifest\.json is damaged, it breaks its seal"):
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
        assert catalog.track_body(1)
        assert catalog.search(artist="Velvet Foxes", title="Midnight Running").hits


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


def test_root_without_a_publish_has_no_snapshot(tmp_path: Path) -> None:
    assert find_current_folder(tmp_path) is None
    assert list_snapshots(tmp_path) == []
    with pytest.raises(NoSnapshotError, match="nothing is published"):
        open_catalog(tmp_path)


def test_tables_without_rows_can_be_published(tmp_path: Path) -> None:
    tables = make_tables(tmp_path / "tables", 0)
    for name in ("work_recording", "work_conflict", "recording_member", "isrc_conflict", "external_redirect", "redirect"):
        frame = pl.read_parquet(parts(tables[name])[0]).clear()
        frame.write_parquet(parts(tables[name])[0])
    publish(tables, tmp_path, snapshot_id="a", next_ids={})
    assert read_manifest(tmp_path / "snapshots" / "a").tables["recording"].rows == 0
    with open_catalog(tmp_path) as catalog:
        assert catalog.track_body(1) is None
        assert catalog.search(artist="a", title="b").hits == []


def test_publish_reports_each_step_in_order(small: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    publish(small, tmp_path, snapshot_id="a", next_ids={}, report=told.append)
    assert told == [
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
    frame = pl.read_parquet(parts(small["recording"])[0])
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
    digests = [hash_file(part)[:16] for part in parts(divided)]
    assert [(part.path, part.rows) for part in recording.files] == [
        (f"tables/recording/part-00000-{digests[0]}.parquet", 7),
        (f"tables/recording/part-00001-{digests[1]}.parquet", 13),
    ]
    sizes = [(divided / f"part-0000{number}.parquet").stat().st_size for number in (0, 1)]
    assert (recording.rows, recording.bytes, [part.bytes for part in recording.files]) == (20, sum(sizes), sizes)
    assert [file.path for file in manifest.attachments] == sorted(["a.txt", "b.txt", *BODY_DIGESTS])
    served = [file.path for file in manifest.serving]
    assert served == sorted(served)
    assert manifest.analyst_file.path == "catalog.duckdb"


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
    parts(tmp_path / "snapshots" / "a" / "tables" / "label")[0].write_bytes(b"no parquet")
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
