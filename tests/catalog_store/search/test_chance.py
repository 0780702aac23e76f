"""Tests of the chance of a `possible` answer: frequent words prove little, the less the larger the catalog is."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from catalog_store.cursors import CursorCodec
from catalog_store.queries.track_search import Request, search
from catalog_store.search import chance
from catalog_store.search.chance import Chance
from catalog_store.search.credits import Artists
from catalog_store.search.search_build import build_search
from catalog_store.search.search_index import SearchIndex
from catalog_store.search.titles import Title
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table

if TYPE_CHECKING:
    from pathlib import Path

WANTED = ("Johnny Quartermain", "Love Telegraph Harbour")


def build_index(folder: Path, crowd: int) -> SearchIndex:
    """Return an index of one song among `crowd` songs, of which each artist is a Johnny and each title has the word `love`."""
    songs = [WANTED, *((f"Johnny Number{one}", f"Love Thing{one}") for one in range(crowd))]
    rows: dict[str, list[dict[str, Any]]] = {"recording": [], "recording_artist": []}
    for number, (artist, title) in enumerate(songs, 1):
        rows["recording"].append({"recording_id": number, "title": title, "variant": "", "popularity": 0.1})
        credited = {"recording_id": number, "position": 0, "artist_id": number, "name": artist, "is_primary": True, "is_remixer": False}
        rows["recording_artist"].append(credited)
    for name, made in rows.items():
        table = TABLES[name]
        write_table(table, folder / name, table.conform(pl.DataFrame(made, schema=table.polars_schema, orient="row")))
    build_search({name: folder / name for name in rows}, folder / "search")
    return SearchIndex(folder / "search")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    return build_index(tmp_path_factory.mktemp("crowded"), 2_000)


def measure(index: SearchIndex, artist: str, title: str) -> float:
    return Chance(index, (artist, title)).measure(Artists(("johnny quartermain",), ()), Title("love telegraph harbour", ""))


@pytest.mark.parametrize("small", [0, chance.SMALL])
def test_chance_is_the_number_of_documents_that_have_the_shared_words(
    crowded: SearchIndex, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(chance, "SMALL", small)
    less = 2 * max(0.0, small - log2(2_001))
    # Counts of the vocabulary are rounded up by at most a tenth.
    assert measure(crowded, "johnny other", "love other") == pytest.approx(log2(2_001) - less, abs=0.3)
    assert measure(crowded, "johnny other", "telegraph other") == pytest.approx(-less, abs=0.3)
    assert measure(crowded, "quartermain", "love other") == pytest.approx(-less, abs=0.3)
    assert measure(crowded, "quartermain", "love telegraph") == pytest.approx(-log2(2_001) - 1.5 * less, abs=0.3)


def test_misspelt_words_are_twenty_times_as_frequent(crowded: SearchIndex) -> None:
    assert measure(crowded, "quatermain", "telegraph") == pytest.approx(measure(crowded, "quartermain", "telegraph") + log2(20), abs=0.1)


def test_initials_and_sounds_count_as_words(tmp_path: Path) -> None:
    index = build_index(tmp_path, 50)
    names, title = Artists(("red hot chili peppers",), ()), Title("love telegraph harbour", "")
    unknown = Chance(index, ("rhcp", "telegraph"))
    assert unknown.measure(names, title) >= Chance(index, ("quartermain", "telegraph")).measure(Artists(("quartermain",), ()), title)


def test_a_chance_of_an_empty_index_is_a_number(tmp_path: Path) -> None:
    index = build_index(tmp_path, 0)
    assert Chance(index, ("", "")).measure(Artists((), ()), Title("", "")) <= 0.0


@pytest.mark.parametrize("title", ["Love Zanzibar", "Zanzibar Love"])
def test_two_frequent_words_are_no_answer_in_a_crowd(crowded: SearchIndex, title: str) -> None:
    assert search(crowded, CursorCodec(), Request("Johnny Xylophonist", title), deadline=5).hits == []


@pytest.mark.parametrize(
    ("artist", "title"),
    [("Quartermain", "Telegraph Harbour"), ("Johnny Quartermain", "Love Telegraph"), ("quatermain", "telegraf harbour")],
)
def test_rare_words_are_an_answer_in_a_crowd(crowded: SearchIndex, artist: str, title: str) -> None:
    assert [hit.id for hit in search(crowded, CursorCodec(), Request(artist, title), deadline=5).hits][:1] == [1]


def test_an_answer_of_low_score_by_frequent_words_is_possible_at_most(crowded: SearchIndex) -> None:
    asked = ("Johnny Number7", "Love Nothing At")
    hits = search(crowded, CursorCodec(), Request(*asked), deadline=5).hits
    assert {hit.match_class for hit in hits} <= {"possible"}
    assert search(crowded, CursorCodec(), Request(*asked, min_class="fuzzy"), deadline=5).hits == []


def test_names_that_answer_in_a_small_catalog_do_not_in_a_crowd(crowded: SearchIndex, tmp_path: Path) -> None:
    asked = Request("Johnny", "Love")
    assert search(build_index(tmp_path, 3), CursorCodec(), asked, deadline=5).hits
    assert search(crowded, CursorCodec(), asked, deadline=5).hits == []
