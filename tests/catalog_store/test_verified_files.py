"""Tests that one process of a machine verifies a snapshot's files, and that the others trust its mark until a file changes."""

from __future__ import annotations

import os
import shutil
import stat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from catalog_store import snapshot
from catalog_store.errors import SnapshotInvalidError
from catalog_store.publisher import prune, rollback
from catalog_store.snapshot import hash_file, read_manifest
from catalog_store.verified_files import MARKS_FOLDER, remove_stale_marks, verify_once

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """Return a snapshot in a copy of its catalog."""
    shutil.copytree(published, tmp_path / "catalog", symlinks=True)
    return tmp_path / "catalog" / "snapshots" / "first"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each verified file's name is added."""
    found: list[str] = []

    def note(path: Path) -> str:
        found.append(path.name)
        return hash_file(path)

    monkeypatch.setattr(snapshot, "hash_file", note)
    return found


def check(folder: Path, **options: object) -> str:
    return verify_once(folder, **{"contents": "serving", **options}).id  # type: ignore[arg-type]


def find_mark(folder: Path) -> Path:
    return folder.parent.parent / MARKS_FOLDER / f"{folder.name}.json"


def change_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_second_process_reads_nothing(folder: Path, reads: list[str]) -> None:
    assert check(folder) == "first"
    assert sorted(reads) == sorted(Path(file.path).name for file in read_manifest(folder).serving)
    reads.clear()
    assert check(folder) == "first"
    assert reads == []


def test_mark_is_private_and_no_part_of_the_snapshot(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    check(folder)
    assert sorted(folder.rglob("*")) == before
    assert stat.S_IMODE(find_mark(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(find_mark(folder).parent.stat().st_mode) == 0o700


def test_changed_file_is_read_again_and_refused(folder: Path, reads: list[str]) -> None:
    check(folder)
    change_byte(folder / "serving" / "search" / "popularity.npy")
    reads.clear()
    with pytest.raises(SnapshotInvalidError, match=r"search/popularity\.npy has other contents"):
        check(folder)
    assert reads == ["popularity.npy"]


def test_refusal_is_read_once_and_ends_with_the_repair(folder: Path, reads: list[str]) -> None:
    file = folder / "serving" / "search" / "popularity.npy"
    good, times = file.read_bytes(), file.stat()
    change_byte(file)
    with pytest.raises(SnapshotInvalidError) as first:
        check(folder)
    reads.clear()
    with pytest.raises(SnapshotInvalidError) as second:
        check(folder)
    assert (str(second.value), reads) == (str(first.value), [])
    # Size and time as they were published, as `rsync -ac` sets them.
    file.write_bytes(good)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert check(folder) == "first"


def test_file_linked_elsewhere_stays_verified(folder: Path, reads: list[str], tmp_path: Path) -> None:
    check(folder)
    reads.clear()
    (tmp_path / "link").hardlink_to(folder / "serving" / "serving.sqlite")
    assert check(folder) == "first"
    assert reads == []


def test_replaced_file_of_equal_size_and_time_is_read(folder: Path, reads: list[str]) -> None:
    check(folder)
    reads.clear()
    file = folder / "serving" / "serving.sqlite"
    shutil.copy2(file, folder.parent / ".copy")
    (folder.parent / ".copy").rename(file)
    assert check(folder) == "first"
    assert reads == ["serving.sqlite"]


def test_parts_that_two_processes_read_add_up(folder: Path, reads: list[str]) -> None:
    check(folder, contents="serving/search")
    check(folder, unread_folder="serving/lists")
    served = [file.path for file in read_manifest(folder).serving]
    expected = [Path(path).name for path in served if not path.startswith("serving/lists/")]
    assert sorted(reads) == sorted(expected)


@pytest.mark.parametrize(
    "harm",
    [
        lambda mark: mark.write_bytes(b"{"),
        lambda mark: mark.write_bytes(b'{"manifest_sha256": "\xad"}'),
        lambda mark: mark.chmod(0o666),
        lambda mark: mark.unlink(),
    ],
)
def test_mark_that_cannot_be_trusted_counts_as_none(folder: Path, reads: list[str], harm: Callable[[Path], None]) -> None:
    check(folder)
    harm(find_mark(folder))
    reads.clear()
    assert check(folder) == "first"
    assert "serving.sqlite" in reads


def test_mark_of_another_manifest_counts_as_none(folder: Path, reads: list[str]) -> None:
    check(folder)
    reads.clear()
    manifest = msgspec.structs.replace(read_manifest(folder), created_at="2020-01-01T00:00:00.000000Z").add_seal()
    (folder / "manifest.json").write_bytes(manifest.encode())
    assert check(folder) == "first"
    assert "serving.sqlite" in reads


def test_shared_folder_takes_the_mark_of_a_snapshot_served_alone(folder: Path, reads: list[str], tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "first"
    shutil.copytree(folder, alone)
    shared = tmp_path / "shared"
    shared.mkdir()
    for expected in (True, False):
        reads.clear()
        assert check(alone, shared_folder=shared) == "first"
        assert bool(reads) == expected
    assert sorted(path.name for path in alone.parent.iterdir()) == ["first"]


def _check_in_process(folder: Path, counts: Path) -> None:
    reads: list[Path] = []

    def note(path: Path) -> str:
        reads.append(path)
        return hash_file(path)

    snapshot.hash_file = note
    check(folder)
    (counts / str(os.getpid())).write_text(str(len(reads)))


def test_several_processes_at_once_read_each_file_once(folder: Path, tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    counts.mkdir()
    processes = [get_context("fork").Process(target=_check_in_process, args=(folder, counts)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted(int(path.read_text()) for path in counts.iterdir()) == [0, 0, 0, len(read_manifest(folder).serving)]


def test_rollback_leaves_a_mark_and_prune_removes_those_of_missing_snapshots(folder: Path, reads: list[str]) -> None:
    root = folder.parent.parent
    rollback(root, "first")
    reads.clear()
    check(folder)
    assert reads == []
    stale = find_mark(folder).with_name("gone.json")
    stale.write_bytes(find_mark(folder).read_bytes())
    prune(root, 1)
    assert not stale.exists()
    assert find_mark(folder).exists()


def test_rollback_by_sizes_leaves_no_mark(folder: Path) -> None:
    rollback(folder.parent.parent, "first", contents=False)
    assert not find_mark(folder).exists()


@pytest.mark.parametrize("tidy", [remove_stale_marks, lambda root: prune(root, 5)])
def test_remains_of_a_killed_process_are_removed(folder: Path, reads: list[str], tidy: Callable[[Path], object]) -> None:
    check(folder)
    read, remains = len(reads), find_mark(folder).with_name(f".{folder.name}-4711")
    remains.write_bytes(b'{"manifest_sha2')
    tidy(folder.parent.parent)
    assert not remains.exists()
    check(folder)
    assert len(reads) == read


def test_nothing_is_made_where_no_snapshot_was_verified(tmp_path: Path) -> None:
    remove_stale_marks(tmp_path)
    assert not list(tmp_path.iterdir())
