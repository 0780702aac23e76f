from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from catalog_store.errors import InvalidCursorError, InvalidQueryError, UnknownBuildError
from catalog_store.publisher import publish, rollback
from catalog_store.reader import open_catalog
from tests.catalog_store.catalog_tables import add_recording_like, make_frames, write_frames

if TYPE_CHECKING:
    from pathlib import Path

NEXT = {"recording": 100, "artist": 50, "release": 50, "label": 10}


def changed(rows: dict[str, list[dict[str, Any]]], *, redirects: list[tuple[str, int, int | None]], moved: dict[str, int]) -> None:
    rows["redirect"] = [{"kind": kind, "old_id": old, "new_id": new} for kind, old, new in redirects]
    for member in rows["recording_member"]:
        member["recording_id"] = moved.get(member["external_id"], member["recording_id"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalog of four builds; the last does not descend from the third."""
    root = tmp_path_factory.mktemp("history")
    key = "aB00000000000000000003"
    history: list[tuple[str, list[tuple[str, int, int | None]], dict[str, int], dict[str, int]]] = [
        ("one", [("recording", 90, 4), ("recording", 91, None)], {}, NEXT),
        ("two", [("recording", 90, 4), ("recording", 92, 5), ("artist", 40, 7)], {key: 100}, NEXT | {"recording": 101}),
        ("wrong", [("recording", 90, None)], {}, NEXT | {"recording": 105}),
        ("three", [("recording", 90, 4), ("recording", 92, 6), ("artist", 40, 7), ("label", 9, None)], {key: 100}, NEXT),
    ]
    for name, redirects, moved, next_ids in history:
        rows = make_frames(12, 1)
        changed(rows, redirects=redirects, moved=moved)
        for recording_id in moved.values():
            add_recording_like(rows, recording_id, 3)
        publish(write_frames(root / "tables" / name, rows), root, snapshot_id=name, next_ids=next_ids)
        if name == "wrong":
            rollback(root, "two")
    return root


def test_each_build_records_merges_splits_removals_and_returns(root: Path) -> None:
    with open_catalog(root) as catalog:
        page = catalog.list_changes("one")
        assert (page.until, page.next_cursor) == ("three", None)
        assert [tuple(change) for change in page.changes] == [
            ("two", "recording", "merged", 92, 5),
            ("two", "recording", "split", 3, 100),
            ("two", "recording", "restored", 91, None),
            ("two", "artist", "merged", 40, 7),
            ("three", "recording", "merged", 92, 6),
            ("three", "label", "removed", 9, None),
        ]
        assert [change.change for change in catalog.list_changes("two").changes] == ["merged", "removed"]
        between = catalog.list_changes("one", until="two")
        assert (between.until, between.changes) == ("two", [change for change in page.changes if change.snapshot_id == "two"])
        assert catalog.list_changes("two", until="two").changes == []
        with pytest.raises(UnknownBuildError, match="does not know the build 'four': it knows one, two, three"):
            catalog.list_changes("one", until="four")
        with pytest.raises(InvalidQueryError, match="older than 'three': swap them"):
            catalog.list_changes("three", until="one")
        assert catalog.list_changes("three").changes == []


def test_changes_come_in_pages(root: Path) -> None:
    with open_catalog(root) as catalog:
        everything, cursor, found = catalog.list_changes("one").changes, None, []
        while True:
            page = catalog.list_changes("one", limit=2, cursor=cursor)
            found += page.changes
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == everything
        first = catalog.list_changes("one", limit=2).next_cursor
        with pytest.raises(InvalidCursorError):
            catalog.list_changes("two", cursor=first)
        for limit in (0, 1001):
            with pytest.raises(InvalidQueryError):
                catalog.list_changes("one", limit=limit)


def test_a_cursor_goes_on_in_a_later_build(root: Path) -> None:
    with open_catalog(root / "snapshots" / "two") as earlier, open_catalog(root) as later:
        first = earlier.list_changes("one", limit=3)
        rest = later.list_changes("one", cursor=first.next_cursor)
        assert [*first.changes, *rest.changes] == later.list_changes("one").changes


@pytest.mark.parametrize("since", ["never", "wrong", ""])
def test_a_build_that_the_catalog_does_not_descend_from_is_unknown(root: Path, since: str) -> None:
    with open_catalog(root) as catalog, pytest.raises(UnknownBuildError, match="read everything again"):
        catalog.list_changes(since)
