from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store.folder_listing import list_folder, list_tree
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from pathlib import Path

PATTERNS = ("*", "part-*.parquet", "[!.]*", ".*", "[0-9]*-??", "*.JSON", "a", "none*")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in (
        "a/part-1.parquet",
        "a/part-0.parquet",
        "a/.hidden",
        ".b/x.json",
        "2026-01-02/x.JSON",
        "a b/deep/er/part-2.parquet",
        "a.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "empty").mkdir()
    (root / "to folder").symlink_to("a")
    (root / "to file").symlink_to("a.txt")
    (root / "dangling").symlink_to("gone")
    (root / "a" / "round").symlink_to("..")
    return root


@pytest.mark.parametrize("pattern", PATTERNS)
def test_readable_folders_are_listed_as_by_a_sorted_glob(tree: Path, pattern: str) -> None:
    assert list_folder(tree, pattern) == sorted(tree.glob(pattern))
    assert list_tree(tree, pattern) == sorted(tree.rglob(pattern))
    assert list_folder(tree / "to folder", pattern) == sorted((tree / "to folder").glob(pattern))
    assert list_tree(tree / "to folder", pattern) == sorted((tree / "to folder").rglob(pattern))


def test_relative_folders_give_relative_paths(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    here = tree.relative_to(tree.parent)
    assert list_tree(here) == sorted(here.rglob("*"))
    assert list_folder(here) == sorted(here.glob("*"))


@pytest.mark.parametrize("name", ["gone", "a.txt", "dangling"])
def test_path_other_than_a_folder_has_no_entries(tree: Path, name: str) -> None:
    assert list_folder(tree / name) == list_tree(tree / name) == []


def test_unreadable_folder_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_listing(monkeypatch, tree)
    assert list(tree.glob("*")) == []  # so a glob cannot tell it from an empty folder
    for listing in (list_folder, list_tree):
        with pytest.raises(PermissionError, match=r"/tree'$"):
            listing(tree)


def test_unreadable_folder_in_a_tree_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_listing(monkeypatch, tree / "a b" / "deep")
    assert list_folder(tree / "a b") == [tree / "a b" / "deep"]
    with pytest.raises(PermissionError, match=r"/a b/deep'$"):
        list_tree(tree)
