from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_store.cursors import CursorCodec
from catalog_store.errors import InvalidCursorError, InvalidQueryError
from catalog_store.queries.track_search import MAX_LIMIT, Hit, Request, SearchPage, search
from catalog_store.search import candidates
from catalog_store.search.candidates import COMPARED_AT_MOST
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from tests.catalog_store.catalog_tables import ARTISTS, TITLES

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.reader import Catalog


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
        ("VelvetFoxes", "MidnightRunning", 1),
        ("velvet foxes", "velvet foxes - midnight running official video", 1),
        ("Velvte Foxse", "Midnihgt Runinng", 1),
        ("Vel vet Foxes", "Mid night Running", 1),
        ("Paper Planes", "Nina Kraviz", 13),
        ("Unknwon Bnad", "Never Recroded", None),
        ("Kino", "Группа крови", 6),
    ],
)
def test_noise_in_a_query_is_ignored(catalog: Catalog, artist: str, title: str, recording_id: int | None) -> None:
    assert (found(catalog, artist, title) or [None])[0] == recording_id


@pytest.mark.parametrize(
    ("artist", "title", "doubted"),
    [
        ("Velvet Foxes", "Nothing Counts", []),
        ("Velvit Foxes", "Nothing Counts", ["velvit"]),
        ("Kino", "Nothing Counts", ["kino"]),
        ("Velvit Foxse", "Midnihgt", ["velvit", "foxse", "midnihgt"]),
    ],
)
def test_common_word_is_doubted_only_when_it_is_alone(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, artist: str, title: str, doubted: list[str]
) -> None:
    monkeypatch.setattr(candidates, "_COMMON_COUNT", 1)
    monkeypatch.setattr(candidates, "_COMMON_SHARE", 0)
    asked: list[str] = []
    monkeypatch.setattr(candidates, "find_neighbours", lambda _vocabulary, word: asked.append(word) or [])
    found(catalog, artist, title)
    assert asked == doubted


@pytest.mark.parametrize(
    ("artist", "title"), [("Unknown Band", "Never Recorded"), ("Sade", "Group"), ("Zzyzx", "Intro"), ("Velvet Foxes", "Spring"), ("?", "?")]
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


def test_long_queries_are_answered(catalog: Catalog) -> None:
    filler = " ".join(f"word{n}" for n in range(70))
    names = (f"Nina Kraviz-Lund {filler}"[:500], f"Paper Planes Over Paris {filler}"[:500])
    assert catalog.search(artist=names[0], title=names[1]).hits == []
    assert found(catalog, "Nina Kraviz-Lund", "Paper Planes Over Paris (" + "la " * 150 + ")") == [13]
    assert found(catalog, "x " * 250, "東" * 500) == []


def test_cursors_belong_to_their_query(catalog: Catalog) -> None:
    for cursor in ("", "x", "AAAA", "é"):
        with pytest.raises(InvalidCursorError):
            catalog.search(artist="Sade", title="Intro", cursor=cursor)


@given(artist=st.text(min_size=1, max_size=40), title=st.text(min_size=1, max_size=40))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_text_breaks_a_search(catalog: Catalog, artist: str, title: str) -> None:
    try:
        page = catalog.search(artist=artist, title=title)
    except InvalidQueryError:
        return
    assert all(0 <= hit.score <= 1 for hit in page.hits)


SAME = 230


def crowded(root: Path) -> dict[str, Path]:
    """Return tables in which SAME recordings share artist and title, a third of them live, in seven steps of popularity."""
    tables = {name: root / name for name in ("recording", "recording_artist")}
    numbers = range(1, SAME + 1)
    rows = [
        {"recording_id": n, "title": "Same Song" + (" (Live)" if n % 3 == 0 else ""), "variant": "live" if n % 3 == 0 else "",
         "variants": [],
         "artist_credit": "Crowd", "popularity": (n % 7) / 10, "source_count": 1, "platform_count": 1}
        for n in numbers
    ]  # fmt: skip
    artists = [
        {"recording_id": n, "position": 0, "artist_id": 1, "name": "Crowd", "is_primary": True, "is_remixer": False} for n in numbers
    ]
    for name, made in (("recording", rows), ("recording_artist", artists)):
        write_table(TABLES[name], tables[name], TABLES[name].conform(pl.DataFrame(made)))
    return tables


def indexed(tables: dict[str, Path], folder: Path) -> SearchIndex:
    build_search(tables, folder)
    return SearchIndex(folder)


def page(index: SearchIndex, limit: int, cursor: str | None = None, title: str = "Same Song") -> SearchPage:
    return search(index, CursorCodec(), Request("Crowd", title, limit, cursor), deadline=5)


def expected_order(tables: dict[str, Path]) -> list[int]:
    recordings = read_table(TABLES["recording"], tables["recording"]).with_columns(is_live=pl.col("variant") == "live")
    return recordings.sort("is_live", "popularity", "recording_id", descending=[False, True, False])["recording_id"].to_list()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], SearchIndex]:
    root = tmp_path_factory.mktemp("crowd")
    tables = crowded(root)
    return tables, indexed(tables, root / "search")


@pytest.mark.parametrize("limit", [1, 7, 23, 100])
def test_pages_follow_the_total_order_without_overlap_or_gap(crowd: tuple[dict[str, Path], SearchIndex], limit: int) -> None:
    tables, index = crowd
    collected: list[list[int]] = []
    cursor = None
    while cursor or not collected:
        found = page(index, limit, cursor)
        collected.append([hit.id for hit in found.hits])
        cursor = found.next_cursor
    assert [one for part in collected for one in part] == expected_order(tables)
    assert SAME < COMPARED_AT_MOST
    assert {len(part) for part in collected[:-1]} <= {limit}
    assert collected[-1]


@given(
    limits=st.lists(st.integers(1, MAX_LIMIT), min_size=1, max_size=6), title=st.sampled_from(["Same Song", "same song live", "Same Sonk"])
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_pages_of_any_sizes_are_one_big_page_cut(crowd: tuple[dict[str, Path], SearchIndex], limits: list[int], title: str) -> None:
    _, index = crowd
    hits: list[Hit] = []
    cursor = None
    for limit in limits:
        found = page(index, limit, cursor, title)
        hits += found.hits
        cursor = found.next_cursor
        if cursor is None:
            break
    whole = page(index, MAX_LIMIT, title=title)
    rest = page(index, MAX_LIMIT, whole.next_cursor, title)
    assert hits[:MAX_LIMIT] == whole.hits[: len(hits)]
    assert hits[MAX_LIMIT : 2 * MAX_LIMIT] == rest.hits[: max(0, len(hits) - MAX_LIMIT)]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_cursor_goes_on_where_it_stopped_after_a_new_snapshot(crowd: tuple[dict[str, Path], SearchIndex], tmp_path: Path) -> None:
    tables, index = crowd
    first = page(index, 50)
    gone = [hit.id for hit in first.hits][:5]
    fewer = {**tables, "recording": tmp_path / "recording"}
    kept = read_table(TABLES["recording"], tables["recording"]).filter(~pl.col("recording_id").is_in(gone))
    write_table(TABLES["recording"], fewer["recording"], kept)
    second = page(indexed(fewer, tmp_path / "search"), 100, first.next_cursor)
    everything = [hit.id for hit in (*first.hits, *second.hits)]
    assert everything == (gone + expected_order(fewer))[:150]


def test_a_cursor_of_another_query_is_refused(crowd: tuple[dict[str, Path], SearchIndex]) -> None:
    _, index = crowd
    cursor = page(index, 5).next_cursor
    with pytest.raises(InvalidCursorError):
        page(index, 5, cursor, title="Same Songs")


def test_the_short_title_is_found_among_many_long_ones_of_the_artist(tmp_path: Path) -> None:
    tables = crowded(tmp_path)
    long = pl.format("Sonata {} Movement{}", "recording_id", "recording_id")
    titles = pl.when(pl.col("recording_id") == 1).then(pl.lit("Sonata")).otherwise(long)
    recordings = read_table(TABLES["recording"], tables["recording"]).with_columns(title=titles, variant=pl.lit(""))
    write_table(TABLES["recording"], tables["recording"], recordings.with_columns(popularity=pl.col("recording_id") / 1_000))
    assert page(indexed(tables, tmp_path / "search"), 5, title="Sonata").hits[0].id == 1
