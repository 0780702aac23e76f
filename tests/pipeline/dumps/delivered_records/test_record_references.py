"""Tests of references between delivered records: found among all rows, for records in the order of the dump, with little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.dumps.delivered_records.record_references import read_linked_blocks
from pipeline.dumps.delivered_records.record_store import ROWS_PER_PART, DeliveredStore
from pipeline.engine.duckdb_session import open_duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

ALBUMS = 5_000
WIDE = "a title of five hundred letters " * 16


def choose_release(number: pl.Expr) -> pl.Expr:
    """Return the number of a recording's release, in another order than that of the recordings."""
    return number * 7 % (ALBUMS * 10 // 9)


def make_recordings(first: int, count: int, title: str, *, is_part: bool = False) -> pl.DataFrame:
    """Return recordings that name an artist by id alone, and a release; every seventh artist and tenth release is unknown."""
    number = pl.int_range(first, first + count, eager=True)
    artist = pl.format("artist {}", number % 7 + 1)
    return pl.DataFrame({"number": number}).select(
        id=pl.format("recording {}", "number"),
        title=pl.format("{} {}", pl.lit(title), "number"),
        release_id=pl.format("release {}", choose_release(pl.col("number"))),
        is_part=pl.lit(is_part),
        artists=pl.concat_list(
            pl.struct(artist_id=artist, name=pl.lit(None, pl.String), role=pl.lit("primary")),
            pl.struct(artist_id=pl.lit("unseen"), name=pl.lit("By Name"), role=pl.lit("primary")),
        ),
    )


@pytest.fixture
def store(tmp_path: Path) -> DeliveredStore:
    folder = tmp_path / "store"
    folder.mkdir()
    store = DeliveredStore(folder)
    store.add("release", pl.DataFrame({"id": [f"release {number}" for number in range(ALBUMS)], "title": "An Album"}))
    store.add(
        "artist", pl.DataFrame({"id": [f"artist {number}" for number in range(7)], "title": [f"Name {number}" for number in range(7)]})
    )
    return store


def link(store: DeliveredStore, connection: duckdb.DuckDBPyConnection, *, parts: bool = False) -> Iterator[pl.DataFrame]:
    for kind in ("recording", "release", "artist", "placement"):
        connection.execute(f"CREATE OR REPLACE VIEW {kind} AS SELECT * FROM {store.build_source(kind)}")
    return read_linked_blocks(connection, {}, "recording", parts=parts)


def test_rows_of_a_large_dump_are_linked_with_less_memory_than_they_fill(store: DeliveredStore, tmp_path: Path) -> None:
    rows = 3 * ROWS_PER_PART
    for first in range(0, rows, ROWS_PER_PART):
        store.add("recording", make_recordings(first, ROWS_PER_PART, WIDE))
    with open_duckdb(tmp_path / "spill", "90MB") as connection:
        # The texts alone fill 150 MB.
        narrow = [block.drop("title") for block in link(store, connection)]
    found = pl.concat(narrow)
    assert found["id"].to_list() == [f"recording {number}" for number in range(rows)]
    named = pl.select(pl.format("release {}", choose_release(pl.int_range(rows)))).to_series()
    assert found["release_id"].fill_null(found["_lost_release"]).to_list() == named.to_list()
    assert set(found["_lost_release"].drop_nulls()) == {f"release {number}" for number in range(ALBUMS, ALBUMS * 10 // 9)}
    assert set(found["_lost_artists"].drop_nulls()) == {"artist 7"}
    assert found["artists"].list.len().to_list() == [1 if number % 7 == 6 else 2 for number in range(rows)]


def test_only_the_chosen_parts_are_linked_in_their_order(store: DeliveredStore, tmp_path: Path) -> None:
    store.add("recording", make_recordings(0, 10, "a record"))
    store.add("recording", make_recordings(10, 10, "a part", is_part=True))
    store.add("recording", make_recordings(20, 10, "a record"))
    store.add("recording", make_recordings(30, 10, "a part", is_part=True))
    with open_duckdb(tmp_path / "spill") as connection:
        connection.execute("CREATE TABLE recording_part AS SELECT unnest([37, 12, 33, 19, 25]) AS position")
        found = pl.concat(link(store, connection, parts=True))
    assert found["id"].to_list() == ["recording 12", "recording 19", "recording 33", "recording 37"]
    names = found["artists"].list.eval(pl.element().struct.field("name")).to_list()
    assert names == [["Name 6", "By Name"], ["Name 6", "By Name"], ["Name 6", "By Name"], ["Name 3", "By Name"]]


def test_dump_without_chosen_parts_has_no_part_blocks(store: DeliveredStore, tmp_path: Path) -> None:
    store.add("recording", make_recordings(0, 10, "a record"))
    with open_duckdb(tmp_path / "spill") as connection:
        connection.execute("CREATE TABLE recording_part (position BIGINT)")
        assert list(link(store, connection, parts=True)) == []
