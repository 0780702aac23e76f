from __future__ import annotations

import numpy as np
import polars as pl

from catalog_store.search.layout import SHORT_RANKS
from catalog_store.search.titles import encode_ranks, split_titles


def test_frequent_words_take_one_unit_and_rare_ones_two() -> None:
    units, sizes = encode_ranks(np.array([0, SHORT_RANKS - 1, SHORT_RANKS, SHORT_RANKS + 65_536], dtype=np.uint32))
    assert sizes.tolist() == [1, 1, 2, 2]
    assert units.tolist() == [0, SHORT_RANKS - 1, SHORT_RANKS, 0, SHORT_RANKS + 1, 0]


def test_a_variant_is_one_word() -> None:
    names = pl.DataFrame({"document": [0, 1], "title": ["same same song\tsped up", "!!!\t"]})
    assert split_titles(names).rows() == [(0, "same"), (0, "same"), (0, "song"), (0, "\tsped up"), (1, "!!!")]
