"""Tests of the hash that shows changed records: it covers every column that linkage reads, and no other."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.record_keys.content_hash import LINKED_COLUMNS, add_content_hash, compute_content_hash
from catalog_store.tables import TABLES

ROW = {
    "platform": "streamsvc_a",
    "external_id": "1",
    "link_id": "1",
    "title": "Halo",
    "version": None,
    "artists": [{"artist_id": "7", "name": "Cher", "role": "primary"}, {"artist_id": None, "name": "Dido", "role": "featured"}],
    "artist_credit": "Cher feat. Dido",
    "isrcs": ["GBABC2000001"],
    "duration_ms": 200_000,
    "release_id": "9",
    "is_video": False,
    "traits": [],
    "popularity": 0.5,
}
OTHERWISE = {
    "platform": "streamsvc_b",
    "external_id": "2",
    "title": "halo",
    "version": "Live",
    "artists": [{"artist_id": "7", "name": "Cher", "role": "primary"}, {"artist_id": None, "name": "Dido", "role": "remixer"}],
    "artist_credit": None,
    "isrcs": [],
    "duration_ms": None,
    "release_id": None,
    "disc_number": 2,
    "track_number": 1,
    "heading": "Side B",
    "repeats": "3",
    "traits": ["karaoke"],
}


def rows(*changes: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame([ROW | change for change in changes], schema=TABLES["source_recording"].polars_schema)


@pytest.mark.parametrize("column", LINKED_COLUMNS)
def test_a_column_that_linkage_reads_changes_the_hash(column: str) -> None:
    before, after = rows({}, {column: OTHERWISE[column]}).select(compute_content_hash()).to_series()
    assert before != after


def test_column_that_linkage_does_not_read_keeps_the_hash() -> None:
    before, after = rows({}, {"popularity": 0.9, "release_date": "2020-01-01", "link_id": "x"}).select(compute_content_hash()).to_series()
    assert before == after


def test_a_value_in_the_next_column_is_another_record() -> None:
    hashes = (
        rows({"version": "Live", "artist_credit": None}, {"version": None, "artist_credit": "Live"})
        .select(compute_content_hash())
        .to_series()
    )
    assert hashes[0] != hashes[1]


def test_rows_without_a_hash_get_the_one_that_staging_would_have_given() -> None:
    bare = rows({"title": "Fever"})
    staged = add_content_hash(rows({}).drop("content_hash")).select(bare.columns)
    expected = rows({}, {"title": "Fever"}).select(compute_content_hash()).to_series()
    assert add_content_hash(pl.concat([staged, bare]))["content_hash"].equals(expected)
