from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.name_keys import build_name_key
from catalog_store.queries.entity_lookups import (
    find_ids_on_platform,
    find_present_ids,
    find_release_ids_by_barcodes,
    find_release_ids_by_name,
    list_releases_by_barcode,
    read_artists,
    read_release_entries,
)
from catalog_store.serving import lookup_keys
from tests.catalog_store.catalog_tables import MERGED_ID
from tests.catalog_store.plain_lists import mixed_frames
from tests.catalog_store.queries.conftest import Served, served

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CURSORS = CursorCodec()
BARCODES = ("05099902894225", "00602547790019", "04006381333931")
TITLES = ("Album", "ALBUM", "Álbum!", "Other Album", "÷")


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Return a catalog in which few barcodes and titles belong to many releases."""
    rows, chance = mixed_frames(240, 4), random.Random(9)  # noqa: S311 - test data
    for release in rows["release"]:
        release["gtin"] = chance.choice([None, *BARCODES])
        release["title"] = chance.choice(TITLES)
        artist = chance.choice(rows["artist"][:3])
        release["artist_id"], release["artist_name"] = artist["artist_id"], artist["name"]
    rows["release_source"] += [{"platform": "store_a", "external_id": "name:album", "release_id": 1}]
    return served(rows, tmp_path_factory.mktemp("coded"))


def ranked(rows: Sequence[dict[str, Any]]) -> list[int]:
    ordered = sorted(rows, key=lambda row: (-row["track_count"], row["release_date"] or "9999", row["release_id"]))
    return [row["release_id"] for row in ordered]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_releases_of_a_barcode_come_in_pages_with_most_tracks_first(coded: Served, limit: int) -> None:
    for barcode in BARCODES:
        wanted = ranked([row for row in coded.rows["release"] if row["gtin"] == barcode])
        assert len(wanted) > 3
        found: list[int] = []
        cursor = None
        while True:
            page = list_releases_by_barcode(coded.store, CURSORS, barcode, limit=limit, cursor=cursor)
            found += [json.loads(body)["id"] for body in page.bodies]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == wanted
        assert find_release_ids_by_barcodes(coded.store, [barcode, "00000012345670"]) == {barcode: wanted}


def test_releases_of_a_title_are_those_of_the_artist_with_an_equal_name_key(coded: Served) -> None:
    for artist in coded.rows["artist"][:4]:
        for title in (*TITLES, "nothing"):
            wanted = [
                row
                for row in coded.rows["release"]
                if row["artist_id"] == artist["artist_id"] and build_name_key(row["title"]) == build_name_key(title)
            ]
            assert find_release_ids_by_name(coded.store, artist["name"].upper(), title) == ranked(wanted)
    assert find_release_ids_by_name(coded.store, "nobody", "Album") == []
    assert find_release_ids_by_name(coded.store, " ", "\ud800") == []


def test_names_pasted_with_an_encoding_find_what_their_source_says(coded: Served) -> None:
    for row in coded.rows["release"][:20]:
        artist, title = row["artist_name"], row["title"]
        wanted = find_release_ids_by_name(coded.store, artist, title)
        assert wanted
        assert find_release_ids_by_name(coded.store, quote(artist), quote(title)) == wanted
        assert find_release_ids_by_name(coded.store, artist.encode().decode("latin-1"), title) == wanted


def test_titles_that_share_a_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog_store.queries.entity_lookups.hash_title", lambda artist_id, title_key: 7)  # noqa: ARG005 - the same for all
    monkeypatch.setattr("catalog_store.serving.entity_keys.hash_titles", lambda titles: np.full(len(titles), 7, dtype=np.int64))
    assert lookup_keys.hash_title(1, "x") != 7
    alone = served(mixed_frames(30, 3), tmp_path)
    for row in alone.rows["release"]:
        assert row["release_id"] in find_release_ids_by_name(alone.store, row["artist_name"], row["title"])
        assert find_release_ids_by_name(alone.store, row["artist_name"], f"{row['title']} II") == []


def test_ids_on_platforms_lead_to_their_release_and_artist(coded: Served) -> None:
    for kind in ("release", "artist"):
        for row in coded.rows[f"{kind}_source"]:
            known = not row["external_id"].startswith("name:")
            found = find_ids_on_platform(coded.store, kind, row["platform"], [row["external_id"], "nobody", "'; --"])
            assert found == ({row["external_id"]: row[f"{kind}_id"]} if known else {})
    assert find_ids_on_platform(coded.store, "release", "catalog_b", ["1001"]) == {}


def test_ids_are_followed_to_their_survivors_in_sets_of_any_size(coded: Served) -> None:
    releases = [row["release_id"] for row in coded.rows["release"]]
    many = [*releases, *range(10_000, 12_500), 0, -1, 2**63, 78]
    assert find_present_ids(coded.store, "release", many) == {**dict(zip(releases, releases, strict=True)), 78: 1}
    assert find_present_ids(coded.store, "artist", [MERGED_ID, 1, 1, 999]) == {MERGED_ID: 7, 1: 1}
    assert set(read_release_entries(coded.store, [1, 2, 999_999])) == {1, 2}
    assert set(read_artists(coded.store, [1, 999])) == {1}
