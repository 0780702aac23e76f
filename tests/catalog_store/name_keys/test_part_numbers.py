from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.name_keys import build_title_keys, build_title_keys_frame
from catalog_store.name_keys.part_numbers import MAY_HAVE_PARTS, number_parts


@pytest.mark.parametrize(
    "title",
    [
        "Song, Pt. 2",
        "Song (Part II)",
        "Song - Part Two",
        "Song Pt.2",
        "Song pt2",
        "Song (Parte 2)",
        "Song, Teil 2",
        "Song Part 02",
        "Song Pt- 2",
    ],
)
def test_a_part_is_the_same_however_it_is_counted(title: str) -> None:
    assert build_title_keys(title).core == "song part 2"


@pytest.mark.parametrize(
    ("key", "numbered"),
    [
        ("mambo number five", "mambo no 5"),
        ("nr 11 a moll", "no 11 a moll"),
        ("hits volume iii", "hits vol 3"),
        ("song parts i ii and iii", "song part 1 2 and 3"),
        ("messiah part i no 4", "messiah part 1 no 4"),
        ("act one", "act 1"),
        ("messiah part iv chorus", "messiah part 4 chorus"),
        ("song no ii", "song no 2"),
        ("песня часть 2", "песня part 2"),
    ],
)
def test_counting_words_take_digits(key: str, numbered: str) -> None:
    assert number_parts(key) == numbered


@pytest.mark.parametrize(
    "key",
    [
        "no one",
        "no i dont",
        "the part i love",
        "part of me",
        "vol au vent",
        "one part love",
        "rocky ii",
        "book of love",
        "parte de mi",
        "act x ray",
        "i v x",
    ],
)
def test_words_that_look_like_numerals_stay(key: str) -> None:
    assert number_parts(key) == key


def test_a_number_that_meets_its_word_only_in_the_stem_is_numbered_in_columns_too() -> None:
    title = "Song Part (Extra) - II"
    assert build_title_keys(title)[:2] == ("song part extra ii", "song part 2")
    assert build_title_keys_frame(pl.Series([title])).row(0) == build_title_keys(title)


@given(
    st.lists(st.sampled_from(["part", "pt", "no", "vol", "ii", "i", "x", "two", "and", "02", "0", "pt2", "love", "act", "one"]), max_size=7)
)
def test_numbered_keys_stay_and_every_changed_key_matches_the_prefilter(words: list[str]) -> None:
    key = " ".join(words)
    numbered = number_parts(key)
    assert number_parts(numbered) == numbered
    assert bool(numbered) == bool(key)
    assert numbered == key or re.search(MAY_HAVE_PARTS, key)
