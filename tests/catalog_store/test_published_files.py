from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.job_runner import run_in_turn
from catalog_store.published_files import describe_serving, import_tables, link_or_copy
from catalog_store.snapshot import MANIFEST, Manifest, StoredFile, StoredTable, TablePart, describe_file, hash_file
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def lay_manifest(folder: Path, tables: dict[str, StoredTable], serving: tuple[StoredFile, ...] = ()) -> None:
    analyst_file = StoredFile("catalog.duckdb", 0, "")
    manifest = Manifest(
        "music-catalog-snapshot", 1, folder.name, "2026-01-01T00:00:00Z", "0", tables, {}, analyst_file, serving, sequence=1
    )
    (folder / MANIFEST).write_bytes(manifest.add_seal().encode())


def lay_table(folder: Path, *rows: int) -> Path:
    folder.mkdir(parents=True)
    for number, count in enumerate(rows):
        pl.DataFrame({"a": range(number, number + count)}).write_parquet(folder / f"part-{number:05d}.parquet")
    return folder


def test_imported_parts_are_linked_and_named_after_their_number_and_bytes(tmp_path: Path) -> None:
    source = lay_table(tmp_path / "work" / "label", 7, 13)
    stored = import_tables({"label": source}, tmp_path / "snapshot", None, run_in_turn)["label"]
    assert stored.rows == 20
    assert stored.bytes == sum(part.stat().st_size for part in list_parts(source))
    for number, (part, file) in enumerate(zip(list_parts(source), stored.files, strict=True)):
        digest = hash_file(part)
        path = f"tables/label/part-{number:05d}-{digest[:16]}.parquet"
        assert file == TablePart(path, (7, 13)[number], part.stat().st_size, digest)
        assert part.samefile(tmp_path / "snapshot" / path)
    assert [part.relative_to(tmp_path / "snapshot").as_posix() for part in list_parts(tmp_path / "snapshot" / "tables" / "label")] == [
        file.path for file in stored.files
    ]


def test_tables_of_a_snapshot_can_be_imported_again_under_the_same_names(tmp_path: Path) -> None:
    first = import_tables({"label": lay_table(tmp_path / "label", 3, 4)}, tmp_path / "a", None, run_in_turn)
    again = import_tables({"label": tmp_path / "a" / "tables" / "label"}, tmp_path / "b", None, run_in_turn)
    assert again == first


def test_parts_that_the_live_snapshot_shares_keep_their_entry_unread(tmp_path: Path) -> None:
    source, live = lay_table(tmp_path / "label", 3, 4, 5), tmp_path / "live"
    stored = import_tables({"label": source}, live, None, run_in_turn)["label"]
    said = [TablePart(file.path, file.rows, file.bytes, f"{number}" * 64) for number, file in enumerate(stored.files)]
    lay_manifest(live, {"label": StoredTable(12, 0, tuple(said))})
    changed = list_parts(source)[1]
    changed.unlink()
    pl.DataFrame({"a": [0] * 9}).write_parquet(changed)
    (live / said[2].path).unlink()
    read: list[Path] = []

    def run(function: Callable[[Path], object], items: Iterable[Path]) -> Iterator[object]:
        read.extend(items)
        return map(function, items)

    found = import_tables({"label": source}, tmp_path / "next", live, run)["label"]
    assert read == list_parts(source)[1:]
    assert [file.rows for file in found.files] == [3, 9, 5]
    assert [file.sha256 for file in found.files] == ["0" * 64, *map(hash_file, list_parts(source)[1:])]


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP])
def test_file_that_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise OSError(code, "no links here")

    (tmp_path / "source").write_bytes(b"x")
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    link_or_copy(tmp_path / "source", tmp_path / "deep" / "er" / "target")
    assert (tmp_path / "deep" / "er" / "target").read_bytes() == b"x"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EEXIST, errno.EROFS])
def test_file_that_fails_to_link_for_another_reason_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise OSError(code, "broken")

    (tmp_path / "source").write_bytes(b"x")
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(OSError, match="broken"):
        link_or_copy(tmp_path / "source", tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_only_files_that_the_live_snapshot_shares_keep_their_entry_unread(tmp_path: Path) -> None:
    live, building = tmp_path / "live", tmp_path / "building"
    live.mkdir()
    building.mkdir()
    for name in ("shared", "copied", "unlisted", "gone"):
        (live / name).write_text(name)
        (building / name).hardlink_to(live / name)
    (building / "copied").unlink()
    (building / "copied").write_text("copied")
    (live / "gone").unlink()
    (building / "new").write_text("new")
    listed = [StoredFile(name, 1, f"as said of {name}") for name in ("shared", "copied", "gone")]
    lay_manifest(live, {}, tuple(listed))
    files = [building / name for name in ("shared", "copied", "unlisted", "gone", "new")]
    read = [describe_file(building, file) for file in files]
    assert list(describe_serving(building, files, live, run_in_turn)) == [listed[0], *read[1:]]
    assert list(describe_serving(building, files, None, run_in_turn)) == read
    assert read[0].sha256 == hash_file(building / "shared")
