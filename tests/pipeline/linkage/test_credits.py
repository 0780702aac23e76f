from __future__ import annotations

import polars as pl
import pytest

from pipeline.linkage.credits import build_name_table, derive_name_forms, find_cuts, list_credits

KNOWN = [
    "Earth, Wind & Fire", "Mira", "Kask", "Tyler, The Creator", "Glenn Moor", "Simon & Garfunkel", "Crosby, Stills, Nash & Young",
    "The Beatles", "Wisin & Yandel", "Fire", "Simon",
]  # fmt: skip


def table(*joined: str) -> pl.DataFrame:
    names = [*KNOWN, *joined]
    return build_name_table(pl.DataFrame({"name": names, "has_id": [name in KNOWN for name in names]}))


@pytest.mark.parametrize(
    ("joined", "keys"),
    [
        ("Mira & Kask", ["mira", "kask"]),
        ("Mira feat. Nobody", ["mira", "nobody"]),
        ("Mira (feat. Kask)", ["mira", "kask"]),
        ("Mira con Kask", ["mira", "kask"]),
        ("Mira pres. Kask", ["mira", "kask"]),
        ("Mira,Kask,Nobody", ["mira", "kask", "nobody"]),
        ("Earth, Wind & Fire feat. Mira", ["earthwindandfire", "mira"]),
        ("Mira, Earth, Wind & Fire", ["mira", "earthwindandfire"]),
        ("Tyler, The Creator & Kask", ["tylerthecreator", "kask"]),
        ("Crosby, Stills, Nash & Young with Simon & Garfunkel", ["crosbystillsnashandyoung", "simonandgarfunkel"]),
        ("Wisin y Yandel", ["wisinandyandel"]),
        ("Glenn Moor & His Orchestra", ["glennmoor"]),
        ("Mira & Friends", ["mira"]),
        ("Beatles, The & Mira", ["beatles", "mira"]),
        ("Nobody & Mira", None),
        ("Earth, Wind & Fire", None),
        ("Earth, Wind and Fire", None),
        ("Beatles, The", None),
        ("Nobody's Nobody", None),
    ],
)
def test_joined_names_are_cut_into_the_artists_that_are_known(joined: str, keys: list[str] | None) -> None:
    found = table(joined).filter(pl.col("name") == joined)["part_keys"].to_list()
    assert found == [keys]


def test_places_and_spans_of_the_parts_do_not_overlap() -> None:
    places = find_cuts(table("Earth, Wind & Fire feat. Mira")).filter(pl.col("name").str.contains("Mira"))
    assert places.select("place", "span", "part_key").rows() == [(0, 3, "earthwindandfire"), (3, 1, "mira")]


def test_other_names_of_the_build_decide_in_any_order() -> None:
    joined = pl.DataFrame({"name": ["Mira & Kask", "Mira"], "has_id": [False, True]})
    assert build_name_table(joined).filter(name="Mira & Kask")["part_keys"].to_list() == [["mira", "kask"]]
    assert build_name_table(joined.reverse()).equals(build_name_table(joined))
    alone = joined.with_columns(has_id=pl.lit(value=False))
    assert build_name_table(alone).filter(name="Mira & Kask")["part_keys"].to_list() == [None]


def test_no_names_give_an_empty_table() -> None:
    assert build_name_table(pl.DataFrame(schema={"name": pl.String, "has_id": pl.Boolean})).is_empty()


def test_record_without_artists_is_credited_to_its_display_string() -> None:
    artist = pl.Struct({"artist_id": pl.String, "name": pl.String, "role": pl.String})
    mira = {"artist_id": "7", "name": "Mira", "role": "featured"}
    rows = [(0, "p", [mira], "Mira and more"), (1, "p", [], "Kask"), (2, "p", [], None), (3, "q", [mira, mira], None)]
    schema = {"row": pl.UInt32, "platform": pl.String, "artists": pl.List(artist), "artist_credit": pl.String}
    records = pl.DataFrame(rows, schema=schema, orient="row")
    credited = [(0, "p", "7", "Mira", "featured"), (3, "q", "7", "Mira", "featured"), (3, "q", "7", "Mira", "featured")]
    assert list_credits(records).rows() == [*credited, (1, "p", None, "Kask", "primary")]
    assert list_credits(records.filter(pl.col("row") != 1)).rows() == credited


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("N/A", ""),
        ("n/a", ""),
        ("<unknown>", ""),
        ("Artist", "artist"),
        ("NA", "na"),
        ("ARTIST", "artist"),
        ("The Artist", "artist"),
        ("Artists", "artists"),
    ],
)
def test_placeholders_have_no_key(name: str, key: str) -> None:
    assert derive_name_forms(pl.Series([name]))["name_key"].item() == key
