from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.name_keys.spellings import drop_article_expr, unify_spellings, unify_spellings_series

WORDS = st.lists(
    st.sampled_from(
        [
            "one",
            "two",
            "four",
            "twenty",
            "hundred",
            "and",
            "part",
            "vol",
            "2",
            "4",
            "7",
            "you",
            "u",
            "the",
            "st",
            "love",
            "1999",
            "song",
            "夏",
        ]
    ),
    min_size=1,
    max_size=7,
).map(" ".join)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("maroon five", "maroon 5"),
        ("twenty one pilots", "21 pilots"),
        ("haircut one hundred", "haircut 100"),
        ("five hundred and one", "501"),
        ("two hundred thirty", "230"),
        ("nineteen ninety nine", "19 99"),
        ("zero 7", "0 7"),
        ("nothing compares 2 u", "nothing compares to you"),
        ("four ever young", "for ever young"),
        ("i would die 4 u", "i would die for you"),
        ("st elmos fire", "saint elmos fire"),
        ("dr feelgood", "doctor feelgood"),
        ("sgt pepper", "sergeant pepper"),
        ("whole lotta luv", "whole lotta love"),
        ("another brick in the wall part 2", "another brick in the wall 2"),
    ],
)
def test_words_of_one_meaning_get_one_spelling(one: str, other: str) -> None:
    assert unify_spellings(one) == unify_spellings(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("one love", "1 love"),
        ("two hearts", "to hearts"),
        ("song vol 2 the return", "song vol to the return"),
        ("song part 2 the return", "song to the return"),
        ("part 2", "2"),
        ("twenty one", "twenty"),
        ("hundred ways", "100 ways"),
        ("anyone", "any 1"),
        ("two", "three"),
    ],
)
def test_words_of_another_meaning_stay_apart(one: str, other: str) -> None:
    assert unify_spellings(one) != unify_spellings(other)


@given(words=WORDS)
def test_spelling_of_a_spelling_is_the_same(words: str) -> None:
    once = unify_spellings(words)
    assert once
    assert unify_spellings_series(pl.Series("words", [words, "song", once])).to_list() == [once, "song", unify_spellings(once)]


@pytest.mark.parametrize(
    ("title", "bare"),
    [("the house", "house"), ("a day", "day"), ("an end", "end"), ("the", "the"), ("a", "a"), ("theme", "theme"), ("", "")],
)
def test_article_is_dropped_from_the_front_of_a_title(title: str, bare: str) -> None:
    assert pl.select(drop_article_expr(pl.lit(title))).item() == bare
