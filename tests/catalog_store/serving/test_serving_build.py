from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.errors import InvalidCursorError, SnapshotInvalidError
from catalog_store.job_runner import run_in_turn
from catalog_store.lists import list_build, posting_lists
from catalog_store.lists.list_format import FORMAT_VERSION
from catalog_store.platforms import LINK_SOURCES
from catalog_store.queries import tracks
from catalog_store.queries.iswc import find_work
from catalog_store.serving import key_index, serving_build
from catalog_store.serving.serving_build import build_serving
from catalog_store.serving.store import ServingStore
from catalog_store.serving.stored_body import read_companion, read_release_rest
from tests.catalog_store.catalog_tables import make_frames, write_frames
from tests.catalog_store.pickled_jobs import run_pickled
from tests.catalog_store.plain_lists import mixed_frames

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.job_runner import JobRunner

NASTY = (
    '","releases":[{"id":', "\x01\x02\x1f\x7f", "a\nb\tc\\", '"', '],"isrc":"',  "\u2028 \U0001f600",
    ',{"id":', "{}[]", "/slug", "0123", "\\u0001",

)  # fmt: skip


def built(rows: dict[str, list[dict[str, object]]], root: Path, run: JobRunner = run_in_turn) -> ServingStore:
    (root / "serving").mkdir(parents=True)
    build_serving(write_frames(root / "tables", rows), root / "serving", run=run)
    return ServingStore(root / "serving", 5.0)


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_texts_of_any_kind_are_read_back(tmp_path: Path) -> None:
    rows = make_frames(len(NASTY), 1)
    for text, track, recording, release in zip(NASTY, rows["track"], rows["recording"], rows["release"] * 9, strict=False):
        track["title"] = recording["artist_credit"] = text
        track["artists"][0]["name"] = track["releases"][0]["title"] = text
        release["title"] = release["catalog_number"] = text
    for link, text in zip(rows["platform_link"], NASTY * 9, strict=False):
        link["slug"] = text
    store = built(rows, tmp_path)
    for text, row in zip(NASTY, rows["track"], strict=True):
        body = tracks.read_track_body(store, row["recording_id"])
        assert body is not None
        found = json.loads(body)
        assert (found["title"], found["artists"][0]["name"], found["releases"][0]["title"]) == (text, text, text)
        stored = store.read_track(row["recording_id"])
        assert stored is not None
        assert read_companion(stored).credit == text
    for row in rows["release"]:
        stored = store.read_releases([row["release_id"]])[row["release_id"]]
        assert read_release_rest(stored).catalog_number == row["catalog_number"]
    links = {(row["recording_id"], row["source"], row["external_id"]): row["slug"] for row in rows["platform_link"]}
    listed = [(one, *link) for one, stored in store.read_tracks(range(1, 20)).items() for link in read_companion(stored).links]
    assert {key[:3]: key[3] for key in listed} == links
    assert all(link[1] in LINK_SOURCES for link in listed)


def test_block_spill_and_batch_sizes_and_the_runner_do_not_change_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = mixed_frames(150, 9)
    artists = [row["artist_id"] for row in rows["artist"][:30]]
    aliases = [(one, name) for one in artists for name in (f"Alias {one}", "Shared Alias", rows["artist"][0]["name"])]
    rows["artist_alias"] += [{"artist_id": one, "alias": name, "kind": "alias", "platform": "catalog_b"} for one, name in aliases]
    built(rows, tmp_path / "whole")
    for module, name, size in (
        (serving_build, "ROWS_PER_BLOCK", 17),
        (serving_build, "NAMES_PER_BUCKET", 5),
        (key_index, "ROWS_PER_SPILL", 40),
        (key_index, "_ROWS_PER_BATCH", 23),
        (list_build, "ROWS_PER_BATCH", 19),
        (posting_lists, "ROWS_PER_BUCKET", 30),
    ):
        monkeypatch.setattr(module, name, size)
    for table in ("recording_isrc", "platform_link"):
        rows[table] = rows[table][::-1]
    built(rows, tmp_path / "pieces", run_pickled)
    whole, pieces = content(tmp_path / "whole" / "serving"), content(tmp_path / "pieces" / "serving")
    assert [name for name in whole if whole[name] != pieces.get(name)] == []
    assert whole.keys() == pieces.keys()


def test_a_catalog_without_rows_is_served(tmp_path: Path) -> None:
    rows = {name: [] for name in make_frames(1, 1)}
    store = built(rows, tmp_path)
    assert tracks.find_track_by_isrc(store, "GBAYE0000100") is None
    assert tracks.find_ids_by_external(store, "store_a", "1") == []
    assert len(store.lists.tracks.everything) == len(store.lists.releases.everything) == 0


def test_the_recordings_of_a_work_come_in_pages_most_popular_first_ties_by_id(tmp_path: Path) -> None:
    rows = make_frames(60, 2)
    for row in rows["recording"]:
        row["popularity"] = row["recording_id"] % 3 / 10
    rows["work"] = [{"iswc": "T0345246801", "title": "Many"}, {"iswc": "T0000000010", "title": "Few"}]
    rows["work_recording"] = [{"iswc": "T0345246801", "recording_id": one} for one in range(1, 61)]
    rows["work_recording"].append({"iswc": "T0000000010", "recording_id": 5})
    store = built(rows, tmp_path)
    cursors, found, cursor = CursorCodec(), [], None
    while True:
        page = find_work(store, cursors, "T0345246801", 13, cursor)
        assert page is not None
        assert page.total == 60
        found += [one.id for one in page.recordings]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == sorted(range(1, 61), key=lambda one: (-(one % 3), one))
    assert len(page.recordings) == 60 % 13
    with pytest.raises(InvalidCursorError):
        find_work(store, cursors, "T0000000010", 13, find_work(store, cursors, "T0345246801", 13, None).next_cursor)  # type: ignore[union-attr]


@pytest.mark.parametrize("file", ["format.json"])
def test_lists_of_another_format_are_refused(tmp_path: Path, file: str) -> None:
    built(make_frames(3, 1), tmp_path).close()
    path = tmp_path / "serving" / "lists" / file
    path.write_text(path.read_text().replace(str(FORMAT_VERSION), "9"))
    with pytest.raises(SnapshotInvalidError, match="list format 9"):
        ServingStore(tmp_path / "serving", 5.0)
