from __future__ import annotations

import numpy as np
import polars as pl

from catalog_store.search.layout import SHORT_RANKS
from catalog_store.search.titles import encode_ranks, select_titles, split_titles


def test_frequent_words_take_one_unit_and_rare_ones_two() -> None:
    units, sizes = encode_ranks(np.array([0, SHORT_RANKS - 1, SHORT_RANKS, SHORT_RANKS + 65_536], dtype=np.uint32))
    assert sizes.tolist() == [1, 1, 2, 2]
    assert units.tolist() == [0, SHORT_RANKS - 1, SHORT_RANKS, 0, SHORT_RANKS + 1, 0]


def test_a_variant_is_one_word() -> None:
    names = pl.DataFrame({"document": [0, 1], "title": ["same same song\tsped up", "!!!\t"]})
    assert split_titles(names).rows() == [(0, "same"), (0, "same"), (0, "song"), (0, "\tsped up"), (1, "!!!")]


def test_each_other_title_is_one_word_behind_the_variant() -> None:
    names = pl.DataFrame({"document": [0, 1, 2], "title": ["song\tlive\tcancion|uta no uta", "song\t\tlied", "plain\t"]})
    words = [(0, "song"), (0, "\tlive"), (0, "\t\tcancion"), (0, "\t\tuta no uta"), (1, "song"), (1, "\t\tlied"), (2, "plain")]
    assert split_titles(names).rows() == words
    assert sorted(select_titles(names).rows()) == [
        (0, 0, "song"),
        (0, 1, "cancion"),
        (0, 2, "uta no uta"),
        (1, 0, "song"),
        (1, 1, "lied"),
        (2, 0, "plain"),
    ]
