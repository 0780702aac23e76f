"""Tests that a world of copies is as many worlds: copies do not merge, and each is linked like the world that was copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from benchmarks.copied_steps import MOST_COPIES, Copy
from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: list[dict[str, object]] = [
    {
        "platform": "store_a",
        "external_id": "17",
        "link_id": "17",
        "slug": "the-blue-remix",
        "title": "The Blue (Live Remix)",
        "artists": [{"artist_id": "5", "name": "Gülía Темный", "role": "primary"}],
        "artist_credit": "Gülía Темный",
        "isrcs": ["USABC2412345"],
        "release_id": "9",
        "is_video": False,
        "traits": [],
        "content_hash": 1,
    },
    {
        "platform": "store_a",
        "external_id": "9",
        "link_id": "9",
        "title": "青春 か",
        "artists": [{"artist_id": None, "name": "김민석", "role": "primary"}],
        "isrcs": [],
        "release_id": None,
        "is_video": False,
        "traits": [],
        "content_hash": 2,
    },
]


@pytest.fixture
def shift() -> Callable[[int], pl.DataFrame]:
    table = TABLES["source_recording"]
    records = table.conform(pl.DataFrame(ROWS, schema={name: table.polars_schema[name] for name in {name for row in ROWS for name in row}}))
    return lambda number: Copy(number, ["live", "remix", "the"]).shift(records)


def test_copies_share_no_id_code_name_or_hash(shift: Callable[[int], pl.DataFrame]) -> None:
    rows = pl.concat(shift(number) for number in range(MOST_COPIES))
    for column in ("external_id", "link_id", "title", "content_hash"):
        assert rows[column].n_unique() == rows.height, column
    assert rows["isrcs"].explode().drop_nulls().n_unique() == MOST_COPIES
    names = rows.filter(pl.col("artist_credit").is_not_null())["artist_credit"]
    assert names.n_unique() == len(names)


def test_words_that_say_what_a_recording_is_stay(shift: Callable[[int], pl.DataFrame]) -> None:
    copied = shift(3)
    title, slug = copied["title"][0], copied["slug"][0]
    assert title.startswith("The ")
    assert title.endswith("(Live Remix)")
    assert slug.startswith("the-")
    assert slug.endswith("-remix")
    assert copied["release_id"].to_list() == ["139", None]
    assert copied["artists"][1].to_list()[0]["artist_id"] is None


def test_first_copy_has_the_names_of_the_world(shift: Callable[[int], pl.DataFrame]) -> None:
    assert shift(0)["title"].to_list() == [row["title"] for row in ROWS]
    assert shift(0)["isrcs"].to_list() == [row["isrcs"] for row in ROWS]


def test_codes_keep_their_form() -> None:
    table = TABLES["source_release"]
    release = {"platform": "store_a", "release_id": "4", "title": "Blue", "gtin": "00012345678905", "is_compilation": False}
    codes = pl.concat(
        Copy(number, []).shift(pl.DataFrame([release], schema={name: table.polars_schema[name] for name in release}))["gtin"]
        for number in range(MOST_COPIES)
    )
    assert codes.n_unique() == len(codes)
    assert codes.str.contains("^[0-9]{14}$").all()
