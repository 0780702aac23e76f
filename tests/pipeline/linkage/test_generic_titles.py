"""Tests of generic titles: titles of movements, and placeholders for a missing title."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.name_keys import build_title_keys_frame, compact_expr
from pipeline.linkage.generic_titles import is_generic_title, is_movement_title
from tests.pipeline.linkage.worlds import Records


def keys(*titles: str) -> pl.DataFrame:
    return build_title_keys_frame(pl.Series(titles)).select(title_key=compact_expr(pl.col("core")))


@pytest.mark.parametrize(
    "title",
    ["Allegro", "I. Allegro ma non troppo", "Menuett I/II", "Bourrée", "Rondo - Tempo Di Menuetto", "Andante con moto", "Rezitativ", "Arie",
     "Ouvertüre", "2. Satz: Largo", "Аллегро", "Presto (Live)", "Thema und Variationen", "Scherzo. Vivace"],
)  # fmt: skip
def test_movements_are_generic(title: str) -> None:
    assert keys(title).select(is_movement_title(pl.col("title_key"))).item()
    assert keys(title).select(is_generic_title(pl.col("title_key"))).item()


@pytest.mark.parametrize(
    "title", ["Untitled", "Untitled 3", "Intro", "Track 07", "Ohne Titel", "Interlude II", "Hidden Track", "無題", "Skit"]
)
def test_stand_ins_are_generic_but_no_movements(title: str) -> None:
    assert keys(title).select(is_generic_title(pl.col("title_key"))).item()
    assert not keys(title).select(is_movement_title(pl.col("title_key"))).item()


@pytest.mark.parametrize(
    "title",
    ["1999", "7", "In Da Club", "Presto Magic", "Symphony No. 5: I. Allegro", "Untitled (How Does It Feel)", "Final Countdown",
     "Mambo No. 5", "Track and Field", "Air Force Ones", "Part II", "Gloria", "Air", "The Finale Countdown", "V", "Mama",
     "Sidetrack", "Unknown"],
)  # fmt: skip
def test_titles_with_a_word_of_their_own_are_not_generic(title: str) -> None:
    assert not keys(title).select(is_generic_title(pl.col("title_key"))).item()


def test_generic_titles_without_durations_do_not_join_by_name() -> None:
    records = Records().add("a", "Untitled", platform="catalog_a", release="r", seconds=None)
    records.add("b", "Untitled", platform="catalog_a", release="s", seconds=None).add("c", "Untitled", seconds=200)
    assert records.linked() == {frozenset("a"), frozenset("b"), frozenset("c")}


def test_generic_titles_without_durations_join_by_a_code() -> None:
    records = Records().add("a", "Intro", platform="catalog_a", seconds=None, isrcs="USAAA2000001")
    records.add("b", "Intro", platform="catalog_b", seconds=None, isrcs="USAAA2000001").add("c", "Intro", isrcs="USAAA2000001", seconds=62)
    assert records.linked() == {frozenset("abc")}


@pytest.mark.parametrize(("seconds", "recordings"), [(202.0, 1), (202.1, 2)])
def test_stand_ins_join_only_at_one_length(seconds: float, recordings: int) -> None:
    records = Records().add("a", "Intro", platform="store_a", seconds=200).add("b", "Intro", seconds=seconds)
    assert len(records.linked()) == recordings


@pytest.mark.parametrize("title", ["Allegro", "II. Sanctus", "Menuett I/II"])
def test_movements_without_their_work_do_not_join_even_at_one_length(title: str) -> None:
    records = Records().add("a", title, platform="store_a", seconds=200).add("b", title, seconds=200)
    assert len(records.linked()) == 2


def test_movements_without_their_work_join_by_a_code() -> None:
    records = Records().add("a", "Allegro", platform="store_a", seconds=200, isrcs="USAAA2000001")
    assert records.add("b", "Allegro", seconds=200, isrcs="USAAA2000001").linked() == {frozenset("ab")}
