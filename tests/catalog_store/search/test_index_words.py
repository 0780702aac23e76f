from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.index_words import split_word_column, split_words

KEYS = st.text(st.sampled_from("ab é東京事変のがпк가שλ!1 "), max_size=12)


@given(st.lists(KEYS, max_size=10))
def test_column_and_single_key_agree(keys: list[str]) -> None:
    found = split_word_column(pl.DataFrame({"row": range(len(keys)), "key": keys}, schema={"row": pl.Int64, "key": pl.String}), "key")
    for row, key in enumerate(keys):
        assert sorted(found.filter(pl.col("row") == row)["word"]) == sorted(split_words(key))


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("no ordinary love no", ["no", "ordinary", "love"]),
        ("東京事変", ["東京", "京事", "事変"]),
        ("時代", ["時代"]),
        ("東京 tower", ["東京", "tower"]),
        ("группа крови", ["группа", "крови"]),
        ("!!!", ["!!!"]),
        ("", []),
    ],
)
def test_key_is_split_into_words(key: str, found: list[str]) -> None:
    assert split_words(key) == found
