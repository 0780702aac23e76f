from __future__ import annotations

import polars as pl
import pytest

from pipeline.build.artist_names import UNKNOWN_ARTIST
from pipeline.build.listed_credits import list_credits

ARTIST = pl.Struct({"artist_id": pl.String, "name": pl.String, "role": pl.String})
RECORD = {"recording_id": pl.Int64, "platform": pl.String, "external_id": pl.String, "artists": pl.List(ARTIST), "artist_credit": pl.String}
Artist = tuple[str | None, str | None, str]


def read_credits(artists: list[Artist] | None, text: str | None) -> list[tuple[int, str | None, str, str]]:
    """Return position, artist_id, name and role of the credits of one record."""
    rows = None if artists is None else [dict(zip(("artist_id", "name", "role"), artist, strict=True)) for artist in artists]
    found = list_credits(pl.DataFrame([(7, "store_a", "x", rows, text)], schema=RECORD, orient="row"))
    assert set(found.select("recording_id", "platform", "external_id", "is_named_by_title").iter_rows()) <= {(7, "store_a", "x", False)}
    return found.select("position", "artist_id", "name", "role").rows()


def test_each_artist_with_a_name_is_a_credit_in_the_order_of_the_record() -> None:
    listed: list[Artist] = [("1", "Ann", "primary"), (None, " Bea ", "featured"), ("3", "Cy", "remixer")]
    assert read_credits(listed, "Ann feat. Bea") == [(0, "1", "Ann", "primary"), (1, None, " Bea ", "featured"), (2, "3", "Cy", "remixer")]


@pytest.mark.parametrize("name", [None, "", "  "])
def test_artist_without_a_name_takes_no_place(name: str | None) -> None:
    assert read_credits([("1", name, "primary"), ("2", "Bea", "primary")], "Bea") == [(0, "2", "Bea", "primary")]


@pytest.mark.parametrize("artists", [None, [], [("1", " ", "primary")]])
@pytest.mark.parametrize(("text", "name"), [(" Ann ", "Ann"), ("\tAnn", "\tAnn"), (" ", UNKNOWN_ARTIST), (None, UNKNOWN_ARTIST)])
def test_record_without_a_named_artist_is_credited_to_its_text(artists: list[Artist] | None, text: str | None, name: str) -> None:
    assert read_credits(artists, text) == [(0, None, name, "primary")]


def test_without_records_there_is_no_credit() -> None:
    assert list_credits(pl.DataFrame(schema=RECORD)).is_empty()
