"""Keys of whole names: spellings of one sound meet, and the column form of the build agrees with the plain form of a query."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.whole_names import build_whole_key, build_whole_keys

TEXTS = st.text(st.sampled_from("abcdeghiklmnopqrstuvwxyz 125жиア"), max_size=30)


@given(st.lists(TEXTS, max_size=20))
def test_keys_of_a_column_and_of_one_name_agree(names: list[str]) -> None:
    assert build_whole_keys(pl.Series(names, dtype=pl.String)).to_list() == list(map(build_whole_key, names))


@pytest.mark.parametrize(
    ("typed", "name"),
    [("muze", "muse"), ("aviki", "avicii"), ("daviid bovie", "david bowie"), ("granzenloz", "grenzenlos"), ("morchiba", "morcheeba")],
)
def test_spellings_of_one_sound_have_one_key(typed: str, name: str) -> None:
    assert build_whole_key(typed) == build_whole_key(name)


@pytest.mark.parametrize(("one", "other"), [("queen", "keane"), ("wings", "winks"), ("кино", "кина"), ("abba", "aha")])
def test_other_names_have_other_keys(one: str, other: str) -> None:
    assert build_whole_key(one) != build_whole_key(other)


def test_end_of_a_long_title_does_not_count() -> None:
    assert build_whole_key("gimme gimme gimme a man after midnight") == build_whole_key("gimme gimme gimme a man after dark")
