from __future__ import annotations

import gc
import json
import multiprocessing
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from catalog_store.array_files import map_numbers
from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import CatalogClosedError, DeadlineExceededError, InvalidCursorError, NoSnapshotError, SnapshotInvalidError
from catalog_store.platforms import LINK_SOURCES
from catalog_store.queries.platform_links import PlatformLink
from catalog_store.reader import Catalog, open_catalog
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from tests.catalog_store.catalog_tables import MERGED_ID, OLD_CATALOG_B_ID, RETIRED_ID, catalog_b_id, isrc, streamsvc_a_id


def table(tables: dict[str, Path], name: str) -> pl.DataFrame:
    return read_table(TABLES[name], tables[name])


def by_popularity(tables: dict[str, Path], ids: list[int]) -> list[int]:
    popularity = dict(table(tables, "recording").select("recording_id", "popularity").iter_rows())
    return sorted(ids, key=lambda one: (-popularity[one], one))


def wire(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `track` in the form of contract B1."""
    return {
        "id": row["recording_id"],
        "title": row["title"],
        "releases": [
            {
                "id": on["release_id"],
                "title": on["title"],
                "artist": {"id": on["artist_id"], "name": on["artist_name"]},
                "label": None if on["label_id"] is None else {"id": on["label_id"], "name": on["label_name"]},
                "release_date": None if on["release_date"] is None else on["release_date"].isoformat(),
                "release_date_precision": on["release_date_precision"],
            }
            for on in row["releases"]
        ],
        "artists": [{"id": who["artist_id"], **{key: who[key] for key in ("name", "is_primary", "is_remixer")}} for who in row["artists"]],
        "isrc": row["isrc"],
        "duration": row["duration_seconds"],
        "genre": row["genres"],
        "subgenre": row["subgenres"],
    }


def test_every_track_is_answered_as_the_contract_wants_it(catalog: Catalog, tables: dict[str, Path]) -> None:
    rows = table(tables, "track").to_dicts()
    for row in rows:
        body = catalog.read_track_body(row["recording_id"])
        assert body is not None
        assert list(json.loads(body)) == ["id", "title", "releases", "artists", "isrc", "duration", "genre", "subgenre"]
        assert json.loads(body) == wire(row)
        assert b"\n" not in body
    assert any(row["isrc"] is None for row in rows)
    assert any(row["releases"][0]["label_id"] is None for row in rows)


def test_many_tracks_come_at_once(catalog: Catalog) -> None:
    found = catalog.read_track_bodies([3, 1, 999_999, 3])
    assert found == {1: catalog.read_track_body(1), 3: catalog.read_track_body(3)}
    assert catalog.read_track_bodies([]) == {}


@pytest.mark.parametrize("recording_id", [0, -1, 121, MERGED_ID, RETIRED_ID, 2**63, 10**30])
def test_only_living_ids_have_a_body(catalog: Catalog, recording_id: int) -> None:
    assert catalog.read_track_body(recording_id) is None
    assert catalog.read_track_bodies([recording_id]) == {}


@pytest.mark.parametrize(("asked", "found"), [(5, 5), (MERGED_ID, 2), (RETIRED_ID, None), (121, None), (0, None), (10**30, None)])
def test_ids_resolve_to_themselves_to_the_survivor_or_to_nothing(catalog: Catalog, asked: int, found: int | None) -> None:
    assert catalog.resolve_id(asked) == found


def test_every_isrc_resolves_in_any_spelling(catalog: Catalog, tables: dict[str, Path]) -> None:
    carried = dict(table(tables, "recording_isrc").select("isrc", "recording_id").iter_rows())
    assert {code: catalog.find_id_by_isrc(code) for code in carried} == carried
    assert catalog.find_ids_by_isrcs([*carried, "GBAYE9999999", "junk"]) == carried
    assert catalog.find_id_by_isrc(" gb-aye-00001-00 ") == 1
    assert catalog.find_ids_by_isrcs(["gb-aye-00001-00"]) == {"gb-aye-00001-00": 1}
    assert catalog.find_id_by_isrc(isrc(1, 1)) == 1


@pytest.mark.parametrize("code", ["GBAYE9999999", "", "GBAYE00010", "not a code"])
def test_unknown_and_malformed_isrcs_find_nothing(catalog: Catalog, code: str) -> None:
    assert catalog.find_id_by_isrc(code) is None


def test_every_platform_id_finds_its_recordings_most_popular_first(catalog: Catalog, tables: dict[str, Path]) -> None:
    links = table(tables, "platform_link").group_by("source", "external_id").agg("recording_id")
    assert links["recording_id"].list.len().max() > 1
    for source, external_id, ids in links.iter_rows():
        assert catalog.find_ids_by_external(source, external_id) == by_popularity(tables, ids)
    asked = links.filter(pl.col("source") == "catalog_a")["external_id"].to_list()
    assert set(catalog.find_ids_by_externals("catalog_a", [*asked, "7", "x"])) == set(asked)


def test_ids_merged_upstream_still_find_the_recording(catalog: Catalog) -> None:
    assert catalog.find_ids_by_external("catalog_b", OLD_CATALOG_B_ID) == [1]


def test_case_matters_where_the_platform_says_so(catalog: Catalog) -> None:
    assert catalog.find_ids_by_external("streamsvc_a", streamsvc_a_id(1)) == [1]
    assert catalog.find_ids_by_external("streamsvc_a", streamsvc_a_id(1).lower()) == []
    assert catalog.find_ids_by_external("catalog_b", catalog_b_id(1).upper()) == [1]


@pytest.mark.parametrize("external_id", ["", "0", "01001", "1001 ", "x'; DROP TABLE track", "9" * 40, "\x00", "\ud83d\ude00"])
def test_strange_platform_ids_find_nothing(catalog: Catalog, external_id: str) -> None:
    for source in LINK_SOURCES:
        assert catalog.find_ids_by_external(source, external_id) == []


def test_an_unknown_platform_is_a_mistake_of_the_caller(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="unknown platform 'streamsvc_x'"):
        catalog.find_ids_by_external("streamsvc_x", "1")


def test_links_have_the_contracts_order(catalog: Catalog) -> None:
    assert catalog.list_links(1) == [
        PlatformLink("streamsvc_a", streamsvc_a_id(1), None),
        PlatformLink("store_a", "5000001", "slug-1"),
        PlatformLink("catalog_a", "1001", None),
        PlatformLink("catalog_b", catalog_b_id(1), None),
        PlatformLink("video_a", "vid-0000001", None),
    ]


def test_every_recording_has_the_links_of_its_table_and_may_have_none(catalog: Catalog, tables: dict[str, Path]) -> None:
    assert catalog.list_links(13) == []
    assert catalog.list_links(999_999) == []
    counts = dict(table(tables, "platform_link").group_by("recording_id").len().iter_rows())
    assert {one: len(links) for one in range(1, 122) if (links := catalog.list_links(one))} == counts


def test_recording_lists_its_works(catalog: Catalog) -> None:
    assert catalog.list_iswcs(3) == [("T0000000010", "Work 010"), ("T0345246801", "Work 801")]
    assert catalog.list_iswcs(50) == []
    assert catalog.list_iswcs(999_999) == []


def test_recordings_of_a_work_most_popular_first_with_the_full_count(catalog: Catalog, tables: dict[str, Path]) -> None:
    order = by_popularity(tables, [1, 2, 3])
    work = catalog.find_work("t-034.524.680-1", 2)
    assert work is not None
    assert (work.iswc, work.title, work.total) == ("T0345246801", "Work 801", 3)
    assert [one.id for one in work.recordings] == order[:2]
    credits_ = dict(table(tables, "recording").select("recording_id", "artist_credit").iter_rows())
    assert [one.artist for one in work.recordings] == [credits_[one] for one in order[:2]]
    assert work.recordings[0].isrc == isrc(order[0])
    everything = catalog.find_work("T0345246801", 200)
    assert everything is not None
    assert [one.id for one in everything.recordings] == order


def test_a_sealed_place_that_no_recording_of_a_work_can_have_is_refused(catalog: Catalog) -> None:
    for place in (Place(0, 2**24, 1), Place(0, 1, 2**40)):
        with pytest.raises(InvalidCursorError):
            catalog.find_work("T0345246801", 2, CursorCodec().encode(("work", "T0345246801"), place))
    behind = catalog.find_work("T0345246801", 2, CursorCodec().encode(("work", "T0345246801"), Place(0, 2**24 - 1, 2**40 - 1)))
    assert behind is not None
    assert (behind.recordings, behind.next_cursor) == ([], None)


def test_guest_is_in_the_artist_of_a_work_entry(catalog: Catalog) -> None:
    work = catalog.find_work("T0000000010", 50)
    assert work is not None
    assert {one.artist for one in work.recordings} == {"東京事変", "방탄소년단 feat. Earth, Wind & Water"}


def test_unknown_and_malformed_codes_find_no_work_and_works_may_lack_recordings(catalog: Catalog) -> None:
    alone = catalog.find_work("T9000000008", 50)
    assert alone is not None
    assert (alone.total, alone.recordings) == (0, [])
    assert catalog.find_work("T0345246802", 50) is None
    assert catalog.find_work("T034", 50) is None


def test_genres_name_their_main_also_on_the_third_level(catalog: Catalog) -> None:
    assert [tuple(genre) for genre in catalog.read_genres()] == [
        (1, "House", "main", None),
        (2, "Techno", "main", None),
        (3, "Rock", "main", None),
        (4, "Deep House", "subgenre", "House"),
        (5, "Minimal Deep House", "subgenre", "House"),
    ]


def test_a_snapshots_own_folder_can_be_opened(published: Path) -> None:
    with open_catalog(published / "snapshots" / "first") as catalog:
        assert catalog.snapshot_id == "first"
        assert catalog.manifest.next_ids["recording"] == 1000


def test_missing_catalog_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoSnapshotError, match="build a catalog there first"):
        open_catalog(tmp_path / "nowhere")


def test_a_damaged_snapshot_is_refused(published: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(published / "snapshots" / "first", tmp_path / "first"))
    (folder / "serving" / "search" / "ids.npy").unlink()
    with pytest.raises(SnapshotInvalidError, match=r"ids\.npy is missing"):
        open_catalog(folder)


def test_files_are_opened_read_only(catalog: Catalog) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        catalog._store.fetch_rows("DELETE FROM main.work")
    assert map_numbers(catalog.folder / "serving" / "search" / "ids.npy").readonly


def test_a_runaway_statement_meets_the_deadline_and_the_catalog_stays_usable(published: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with open_catalog(published, deadline=0.05) as catalog:
        with pytest.raises(DeadlineExceededError, match=r"longer than 0\.05 s"):
            catalog._store.fetch_rows(endless)
        assert catalog.read_track_body(1)


def test_a_search_meets_the_deadline(published: Path) -> None:
    with open_catalog(published, deadline=0.0) as catalog, pytest.raises(DeadlineExceededError):
        catalog.search(artist="Velvit Foxses", title="Midnite Runing")


def test_closed_catalog_raises_catalog_closed(published: Path) -> None:
    catalog = open_catalog(published)
    catalog.close()
    catalog.close()
    for ask in (lambda: catalog.read_track_body(1), lambda: catalog.search(artist="a", title="b")):
        with pytest.raises(CatalogClosedError):
            ask()


def open_descriptors(name: str) -> int:
    return sum(descriptor.resolve().name == name for descriptor in Path("/proc/self/fd").iterdir())


def test_catalog_without_holders_frees_its_files(published: Path) -> None:
    gc.collect()
    before = open_descriptors("serving.sqlite")
    catalog = open_catalog(published)
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(catalog.read_track_body, range(1, 20)))
    assert open_descriptors("serving.sqlite") > before
    gc.disable()
    try:
        del catalog
        assert open_descriptors("serving.sqlite") == before
    finally:
        gc.enable()


def test_threads_share_a_catalog(catalog: Catalog) -> None:
    def ask(number: int) -> tuple[bytes | None, list[int]]:
        recording_id = 1 + number % 120
        return catalog.read_track_body(recording_id), [
            hit.id for hit in catalog.search(artist="Velvet Foxes", title="Midnight Running").hits
        ]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(480)))
    assert all(body == catalog.read_track_body(1 + number % 120) and hits == [1] for number, (body, hits) in enumerate(answers))


def ask_elsewhere(path: str) -> tuple[bytes | None, int]:
    with open_catalog(path) as catalog:
        return catalog.read_track_body(1), catalog.search(artist="Velvet Foxes", title="Midnight Running").hits[0].id


def test_processes_share_a_catalog(catalog: Catalog, published: Path) -> None:
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        answers = pool.map(ask_elsewhere, [str(published)] * 4)
        pool.close()
        pool.join()
    assert answers == [(catalog.read_track_body(1), 1)] * 4
