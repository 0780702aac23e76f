from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_store.errors import InvalidCursorError, InvalidQueryError
from catalog_store.publisher import publish
from catalog_store.queries.search import MANY_CANDIDATES
from catalog_store.reader import Catalog, open_catalog
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from tests.catalog_store.catalog_tables import ARTISTS, TITLES, make_tables

if TYPE_CHECKING:
    from pathlib import Path


def found(catalog: Catalog, artist: str, title: str) -> list[int]:
    return [hit.id for hit in catalog.search(artist=artist, title=title, limit=100).hits]


@pytest.mark.parametrize(
    ("recording_id", "artist", "title"), [(n + 1, *names) for n, names in enumerate(zip(ARTISTS, TITLES, strict=True))]
)
def test_every_name_of_every_script_is_found_first(catalog: Catalog, recording_id: int, artist: str, title: str) -> None:
    best = catalog.search(artist=artist, title=title).hits[0]
    assert (best.id, best.score, best.match_class) == (recording_id, 1.0, "exact")


@pytest.mark.parametrize(
    ("artist", "title", "recording_id"),
    [
        ("velvet foxes", "MIDNIGHT RUNNING (Radio Edit)", 1),
        ("Velvit Foxes", "Midnight Runing", 1),
        ("Foxes Velvet", "Running Midnight", 1),
        ("bjork olafsdottir", "hoppipolla", 2),
        ("Los Ninos Heroes", "Nothing Counts", 15),
        ("Earth, Wind and Water", "No Ordinary Love Song", 12),
        ("Nina Kraviz-Lund (3)", "Paper Planes Over Paris [Clean]", 13),
        ("ASAP Roddy", "Symphony No 5 in C-Minor", 14),
        ("Pink Lemonade", "Around the Glob", 16),
        ("Earth Wind & Water", "봄날", 5),
        ("Kino", "Группа крови", None),
    ],
)
def test_noise_is_absorbed(catalog: Catalog, artist: str, title: str, recording_id: int | None) -> None:
    assert (found(catalog, artist, title) or [None])[0] == recording_id


@pytest.mark.parametrize(
    ("artist", "title"), [("Unknown Band", "Never Recorded"), ("Sade", "Group"), ("Zzyzx", "Intro"), ("Velvet Foxes", "Winter"), ("?", "?")]
)
def test_unrelated_names_find_nothing(catalog: Catalog, artist: str, title: str) -> None:
    page = catalog.search(artist=artist, title=title)
    assert (page.hits, page.next_cursor) == ([], None)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"artist": ""}, "artist is blank"),
        ({"title": " \t\n"}, "title is blank"),
        ({"artist": "x" * 501}, "artist has 501 characters: at most 500"),
        ({"limit": 0}, "limit is 0: from 1 to 100"),
        ({"limit": 101}, "limit is 101"),
        ({"title": "\ud83d"}, "title holds half a surrogate pair"),
    ],
)
def test_values_that_make_no_sense_are_named(catalog: Catalog, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidQueryError, match=named):
        catalog.search(**{"artist": "Sade", "title": "Intro", **wrong})


def test_cursors_belong_to_their_query(catalog: Catalog) -> None:
    for cursor in ("", "x", "AAAA", "é"):
        with pytest.raises(InvalidCursorError):
            catalog.search(artist="Sade", title="Intro", cursor=cursor)


@given(artist=st.text(min_size=1, max_size=40), title=st.text(min_size=1, max_size=40))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_breaks_a_search(catalog: Catalog, artist: str, title: str) -> None:
    try:
        page = catalog.search(artist=artist, title=title)
    except InvalidQueryError:
        return
    assert all(0 <= hit.score <= 1 for hit in page.hits)


SAME = 230


def crowded(root: Path, popularity_shift: float = 0.0) -> dict[str, Path]:
    """Tables in which SAME recordings share artist and title, a third of them live, in seven steps of popularity."""
    tables = make_tables(root, 0)
    numbers = range(1, SAME + 1)
    rows = [
        {"recording_id": n, "title": "Same Song" + (" (Live)" if n % 3 == 0 else ""), "variant": "live" if n % 3 == 0 else "",
         "artist_credit": "Crowd", "popularity": (n % 7) / 10 + popularity_shift, "source_count": 1, "platform_count": 1}
        for n in numbers
    ]  # fmt: skip
    write_table(TABLES["recording"], tables["recording"], TABLES["recording"].conform(pl.DataFrame(rows)))
    artists = [
        {"recording_id": n, "position": 0, "artist_id": 1, "name": "Crowd", "is_primary": True, "is_remixer": False} for n in numbers
    ]
    write_table(TABLES["recording_artist"], tables["recording_artist"], TABLES["recording_artist"].conform(pl.DataFrame(artists)))
    for name in ("work_recording", "recording_member", "isrc_conflict", "external_redirect", "redirect"):
        write_table(TABLES[name], tables[name], [])
    return tables


def expected_order(tables: dict[str, Path]) -> list[int]:
    recordings = read_table(TABLES["recording"], tables["recording"]).with_columns(is_live=pl.col("variant") == "live")
    return recordings.sort("is_live", "popularity", "recording_id", descending=[False, True, False])["recording_id"].to_list()


def pages(catalog: Catalog, limit: int) -> list[list[int]]:
    collected, cursor = [], None
    while True:
        page = catalog.search(artist="Crowd", title="Same Song", limit=limit, cursor=cursor)
        collected.append([hit.id for hit in page.hits])
        cursor = page.next_cursor
        if cursor is None:
            return collected


@pytest.mark.parametrize("limit", [1, 7, 23, 100])
def test_pages_follow_the_total_order_without_overlap_or_gap(tmp_path: Path, limit: int) -> None:
    tables = crowded(tmp_path / "tables")
    publish(tables, tmp_path, snapshot_id="a", next_ids={})
    with open_catalog(tmp_path) as catalog:
        collected = pages(catalog, limit)
    assert [one for page in collected for one in page] == expected_order(tables)
    assert SAME < MANY_CANDIDATES
    assert {len(page) for page in collected[:-1]} <= {limit}
    assert collected[-1]


def test_a_cursor_goes_on_where_it_stopped_after_a_new_snapshot(tmp_path: Path) -> None:
    tables = crowded(tmp_path / "tables")
    publish(tables, tmp_path, snapshot_id="a", next_ids={})
    with open_catalog(tmp_path) as catalog:
        first = catalog.search(artist="Crowd", title="Same Song", limit=50)
    gone = [hit.id for hit in first.hits][:5]
    fewer = read_table(TABLES["recording"], tables["recording"]).filter(~pl.col("recording_id").is_in(gone))
    write_table(TABLES["recording"], tables["recording"], fewer)
    publish(tables, tmp_path, snapshot_id="b", next_ids={})
    with open_catalog(tmp_path) as catalog:
        second = catalog.search(artist="Crowd", title="Same Song", limit=100, cursor=first.next_cursor)
    everything = [hit.id for hit in (*first.hits, *second.hits)]
    assert everything == (gone + expected_order(tables))[:150]
