from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_store import snapshot
from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.snapshot import (
    ID_SHAPE,
    MANIFEST,
    Manifest,
    Snapshot,
    StoredFile,
    StoredTable,
    TablePart,
    compute_schema_version,
    compute_seal,
    describe_file,
    hash_file,
    read_manifest,
    verify,
)
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "snapshot_format.md"


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """Return a copy of a snapshot, to be damaged."""
    return Path(shutil.copytree(published / "snapshots" / "first", tmp_path / "first"))


def test_manifest_lists_every_file_with_size_and_digest(folder: Path) -> None:
    manifest = read_manifest(folder)
    listed = {file.path for file in manifest.list_files()}
    assert listed == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    for file in manifest.list_files():
        assert (folder / file.path).stat().st_size == file.bytes
        assert hash_file(folder / file.path) == file.sha256
    recording = manifest.tables["recording"]
    assert recording.rows == sum(part.rows for part in recording.files) == 120
    assert recording.bytes == sum(part.bytes for part in recording.files)


def test_manifest_is_plain_json_and_reads_back(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    assert content["format"] == "music-catalog-snapshot"
    assert content["created_at"].endswith("Z")
    assert read_manifest(folder).encode() == (folder / MANIFEST).read_bytes()


def test_members_added_later_are_ignored(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text()) | {"colour": "red"}
    (folder / MANIFEST).write_text(json.dumps(content))
    assert verify(folder).id == "first"


def test_a_changed_byte_is_found_only_when_contents_are_read(folder: Path) -> None:
    path = list_parts(folder / "tables" / "recording")[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert verify(folder, contents=False).id == "first"
    with pytest.raises(SnapshotInvalidError, match=r"tables/recording/part-00000-\w+\.parquet has other contents: roll back"):
        verify(folder)


def test_contents_are_read_below_one_folder_or_besides_one(folder: Path) -> None:
    served = next(file.path for file in read_manifest(folder).serving)
    content = bytearray((folder / served).read_bytes())
    content[-1] ^= 1
    (folder / served).write_bytes(content)
    for options in ({"contents": "tables"}, {"contents": "serv"}, {"unread_folder": "serving"}, {"contents": False}):
        assert verify(folder, **options).id == "first"
    for options in ({"contents": "serving"}, {"unread_folder": "tables"}, {"unread_folder": "serv"}, {}):
        with pytest.raises(SnapshotInvalidError, match="has other contents"):
            verify(folder, **options)  # type: ignore[arg-type]


def test_all_faults_are_named_at_once(folder: Path) -> None:
    (folder / "catalog.duckdb").unlink()
    with (folder / "serving" / "serving.sqlite").open("ab") as file:
        file.write(b"x")
    with pytest.raises(SnapshotInvalidError, match=r"catalog\.duckdb is missing; serving/serving\.sqlite has \d+ bytes instead of"):
        verify(folder, contents=False)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}'])
def test_file_other_than_a_manifest_is_refused(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(SnapshotInvalidError, match="not a manifest"):
        read_manifest(folder)


@pytest.mark.parametrize(
    "member", ["id", "created_at", "schema_version", "tables", "next_ids", "analyst_file", "serving", "sequence", "seal"]
)
def test_a_manifest_with_another_value_breaks_its_seal(folder: Path, member: str) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    value = content[member]
    changed = {
        "tables": {name: table for name, table in content["tables"].items() if name != "genre"},
        "next_ids": {"recording": 1},
        "analyst_file": content["serving"][0],
        "serving": content["serving"][1:],
        "sequence": 7,
        "seal": {"members": content["seal"]["members"][1:], "sha256": content["seal"]["sha256"]},
    }.get(member, f"{value}0")
    (folder / MANIFEST).write_text(json.dumps(content | {member: changed}))
    with pytest.raises(SnapshotInvalidError, match="is damaged: its seal does not match: restore it from a backup, or roll back"):
        read_manifest(folder)


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_a_flipped_bit_of_a_manifest_is_found_or_changes_nothing(folder: Path, place: float, bit: int) -> None:
    content = (folder / MANIFEST).read_bytes()
    before = read_manifest(folder)
    damaged = bytearray(content)
    damaged[int(place * len(content))] ^= 1 << bit
    (folder / MANIFEST).write_bytes(damaged)
    try:
        assert read_manifest(folder) == before
    except SnapshotInvalidError:
        pass
    finally:
        (folder / MANIFEST).write_bytes(content)


def test_a_manifest_that_lost_its_seal_is_refused_and_one_from_before_seals_is_read(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text())
    del content["seal"]
    (folder / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(SnapshotInvalidError, match="seal"):
        read_manifest(folder)
    del content["sequence"]
    (folder / MANIFEST).write_text(json.dumps(content))
    assert verify(folder).sequence == 0


def test_progress_is_reported_at_the_fixed_number_of_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "REPORTED_BYTES", 10_000)
    reported: list[str] = []
    verify(folder, report=reported.append)
    assert len(reported) > 3
    assert reported[0].startswith("verifying snapshot first: 0.0 of ")
    reported.clear()
    verify(folder, contents=False, report=reported.append)
    assert reported == []


def test_another_format_version_is_refused(folder: Path) -> None:
    content = json.loads((folder / MANIFEST).read_text()) | {"format_version": 99}
    (folder / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(SnapshotInvalidError, match="version 99, this program reads"):
        read_manifest(folder)


def test_folder_without_manifest_is_not_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(NoSnapshotError):
        read_manifest(tmp_path)


def test_schema_version_follows_shape_not_words() -> None:
    assert compute_schema_version(["work", "genre"]) == compute_schema_version(["genre", "work"])
    assert compute_schema_version(["work"]) != compute_schema_version(["genre"])
    assert len(compute_schema_version(["work"])) == 16


def test_the_page_describes_every_field() -> None:
    page = PAGE.read_text()
    for struct in (Manifest, StoredTable, TablePart, StoredFile):
        for field in struct.__struct_fields__:
            assert f"`{field}`" in page, field


def lay_files(folder: Path, **sizes: int) -> Manifest:
    """Write a snapshot of files of these sizes: the first is the analysts' file, the others are attachments below folders of their own."""
    for name, size in sizes.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    first, *others = (describe_file(folder, folder / name.replace("__", "/")) for name in sizes)
    tables = {"recording": StoredTable(7, 0, ())}
    manifest = Manifest("music-catalog-snapshot", 1, "plain", "2026-01-01T00:00:00Z", "0" * 16, tables, {}, first, (), tuple(others), 1)
    (folder / MANIFEST).write_bytes(manifest.add_seal().encode())
    return manifest


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({}, ["0.0 of 30.0", "11.0 of 30.0", "21.0 of 30.0"]),
        ({"unread_folder": "b"}, ["0.0 of 20.0", "11.0 of 20.0"]),
        ({"contents": "b"}, ["0.0 of 10.0"]),
        ({"contents": False}, []),
    ],
)
def test_progress_counts_only_bytes_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], reported: list[str]
) -> None:
    monkeypatch.setattr(snapshot, "REPORTED_BYTES", 10)
    monkeypatch.setattr(snapshot, "_GB", 1)
    lay_files(tmp_path, one=2, b__two=0, three=9, b__four=10, five=9)
    lines: list[str] = []
    verify(tmp_path, report=lines.append, **options)  # type: ignore[arg-type]
    assert lines == [f"verifying snapshot plain: {line} GB read" for line in reported]


@pytest.mark.parametrize("size", [4, 6])
def test_file_of_another_size_is_named_with_both_sizes(tmp_path: Path, size: int) -> None:
    lay_files(tmp_path, one=5)
    (tmp_path / "one").write_bytes(b"x" * size)
    for contents in (True, False):
        with pytest.raises(SnapshotInvalidError, match=rf"^snapshot plain at .* is damaged: one has {size} bytes instead of 5: roll back"):
            verify(tmp_path, contents=contents)


def test_folder_in_the_place_of_a_file_counts_as_missing(tmp_path: Path) -> None:
    lay_files(tmp_path, one=5)
    (tmp_path / "one").unlink()
    (tmp_path / "one").mkdir()
    with pytest.raises(SnapshotInvalidError, match="one is missing"):
        verify(tmp_path, contents=False)


def test_summary_names_id_time_and_recordings(tmp_path: Path) -> None:
    manifest = lay_files(tmp_path, one=1)
    expected = {"id": "plain", "created_at": "2026-01-01T00:00:00Z", "is_current": False, "recordings": 7}
    assert Snapshot(tmp_path, manifest).describe() == expected
    assert Snapshot(tmp_path, manifest, is_current=True).describe() == expected | {"is_current": True}


def test_seal_covers_every_member_that_has_a_value_and_is_reproducible(tmp_path: Path) -> None:
    lay_files(tmp_path, one=1)
    content = json.loads((tmp_path / MANIFEST).read_text())
    covered = ["format", "format_version", "id", "created_at", "schema_version", "tables", "analyst_file", "sequence"]
    plain = json.dumps([[name, content[name]] for name in covered], separators=(",", ":"), sort_keys=True)
    assert content["seal"] == {"members": covered, "sha256": hashlib.sha256(plain.encode()).hexdigest()}
    assert compute_seal({"b": 1}, ["a", "b"]) == hashlib.sha256(b'[["a",null],["b",1]]').hexdigest()


@pytest.mark.parametrize(("member", "value"), [("format", "other"), ("format_version", 0), ("format_version", 2)])
def test_manifest_of_another_format_is_refused_with_both_formats(tmp_path: Path, member: str, value: object) -> None:
    lay_files(tmp_path, one=1)
    content = json.loads((tmp_path / MANIFEST).read_text()) | {member: value}
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    reported = rf"format '{content['format']}' version {content['format_version']}, this program reads 'music-catalog-snapshot' 1"
    with pytest.raises(SnapshotInvalidError, match=reported):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", [b'"colo\xf4r"', b'"\xff"'])
def test_manifest_with_a_member_name_other_than_text_is_refused(tmp_path: Path, name: bytes) -> None:
    lay_files(tmp_path, one=1)
    content = (tmp_path / MANIFEST).read_bytes()
    (tmp_path / MANIFEST).write_bytes(content.replace(b"{", b"{" + name + b": 1,", 1))
    with pytest.raises(SnapshotInvalidError, match="not a manifest"):
        read_manifest(tmp_path)


def test_file_in_the_place_of_a_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(NoSnapshotError, match="it has no manifest"):
        read_manifest(tmp_path / "plain")


def test_schema_version_is_a_digest_of_names_and_types() -> None:
    shape = [["genre", [[column.name, str(column.type)] for column in TABLES["genre"].columns]]]
    plain = json.dumps(shape, separators=(",", ":"), ensure_ascii=False)
    assert compute_schema_version(["genre"]) == hashlib.sha256(plain.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("snapshot_id", "is_one"),
    [("a", True), ("9", True), ("Z" * 64, True), ("a._-Z0", True), ("Z" * 65, False), ("-a", False), ("_a", False), ("a/", False)],
)
def test_snapshot_id_has_up_to_64_characters_and_begins_with_a_letter_or_digit(snapshot_id: str, is_one: bool) -> None:  # noqa: FBT001
    assert bool(ID_SHAPE.fullmatch(snapshot_id)) is is_one
