"""Properties of keys for every text: columns and single strings agree, keys are their own keys, no text becomes empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.name_keys import (
    build_name_key,
    build_name_key_expr,
    build_name_key_series,
    build_title_keys,
    build_title_keys_frame,
    fold,
    fold_expr,
    fold_series,
    split_title_segments,
    split_title_segments_expr,
)
from catalog_store.name_keys.folding import extract_words, extract_words_expr

if TYPE_CHECKING:
    from collections.abc import Callable

PIECES = [
    *(
        "love",
        "Intro",
        "Remix",
        "(",
        "((",
        ")",
        "[",
        "]",
        " - ",
        "feat. ",
        "ft ",
        "with ",
        "Tiësto",
        "Live",
        "at",
        "Radio Edit",
        "Original Mix",
    ),
    *(
        "Extended",
        "2011",
        "Remaster",
        "/",
        "&",
        "Clean",
        "130 11a",
        "!!!",
        "\u2019",
        '"',
        "from ",
        "Version",
        "あ",
        "が",
        "vs",
        "  ",
        "\t",
        "the ",
        "Part",
        "II",
        "pt2",
        "F**k",
        "&amp;",
        "(Medley)",
        "DJ Remix",
        '12" ',
        " - Live at Kask Hall",
        " - April 1978",
    ),
]


characters = st.characters(exclude_categories=["Cn", "Co", "Cs"])
"""Assigned characters only: the two Unicode tables are of different years."""


texts = st.one_of(
    st.text(characters, max_size=16),
    st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=9).map("".join),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=20, max_size=60))
def test_columns_and_single_strings_give_the_same_keys(batch: list[str]) -> None:
    frame = pl.DataFrame({"t": batch}, schema={"t": pl.String})
    text = pl.col("t")
    columns = frame.select(folded=fold_expr(text), words=extract_words_expr(fold_expr(text)), name=build_name_key_expr(text))
    assert columns.rows() == [(fold(value), extract_words(fold(value)), build_name_key(value)) for value in batch]
    assert build_name_key_series(frame["t"], fold_series(frame["t"])).to_list() == [build_name_key(value) for value in batch]
    assert build_title_keys_frame(frame["t"]).rows() == [tuple(build_title_keys(value)) for value in batch]
    assert frame.select(split_title_segments_expr(text)).to_series().to_list() == [split_title_segments(value) for value in batch]


@settings(max_examples=400, deadline=None)
@given(texts)
def test_keys_are_never_empty_and_are_their_own_keys(text: str) -> None:
    keys, name = build_title_keys(text), build_name_key(text)
    assert bool(keys.core) == bool(keys.stem) == bool(name) == bool(text.strip(" "))
    assert fold(fold(text)) == fold(text)
    assert build_name_key(name) == name
    if extract_words(keys.core) == keys.core and not {"feat", "ft", "featuring"} & set(keys.core.split()):
        assert build_title_keys(keys.core) == (keys.core, keys.core, "", "", "")


@pytest.mark.parametrize("key", [fold_expr, build_name_key_expr])
def test_expressions_keep_nulls_and_the_name_of_the_column(key: Callable[[pl.Expr], pl.Expr]) -> None:
    names = pl.LazyFrame({"t": [None, "Sigur Rós", "!!!", ""], "kept": [1, 2, 3, 4]}).with_columns(key(pl.col("t")))
    assert names.collect().to_dict(as_series=False) == {"t": [None, "sigur ros", "!!!", ""], "kept": [1, 2, 3, 4]}
    assert names.filter(pl.col("kept") > 4).collect().height == 0


def test_nulls_and_no_titles_are_let_through() -> None:
    assert build_title_keys_frame(pl.Series([None, "a"], dtype=pl.String)).rows() == [("", "", "", "", ""), ("a", "a", "", "", "")]
    assert build_title_keys_frame(pl.Series([], dtype=pl.String)).is_empty()
