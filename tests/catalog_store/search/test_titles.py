from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.search.layout import SHORT_RANKS
from catalog_store.search.titles import Title, TitlePool, encode, title_words

RANKED = np.arange(100_000, dtype=np.uint32)[::-1].copy()


class Numbers:
    """A vocabulary in which the text of a word is its number."""

    def __getitem__(self, number: int) -> str:
        return str(number)


@given(st.lists(st.lists(st.integers(0, len(RANKED) - 1), min_size=1, max_size=6), min_size=1, max_size=8))
def test_ranks_read_back_at_any_size(titles: list[list[int]]) -> None:
    units, sizes = encode(np.array([rank for title in titles for rank in title], dtype=np.uint32))
    lengths = iter(sizes.tolist())
    starts = np.cumsum([0, *(sum(next(lengths) for _ in title) for title in titles)])
    pool = TitlePool(units, starts, RANKED, Numbers())  # type: ignore[arg-type]
    for _ in range(2):
        assert [pool[n] for n in range(len(titles))] == [Title(" ".join(str(RANKED[rank]) for rank in title), "") for title in titles]


def test_frequent_words_take_one_unit_and_rare_ones_two() -> None:
    units, sizes = encode(np.array([0, SHORT_RANKS - 1, SHORT_RANKS, SHORT_RANKS + 65_536], dtype=np.uint32))
    assert sizes.tolist() == [1, 1, 2, 2]
    assert units.tolist() == [0, SHORT_RANKS - 1, SHORT_RANKS, 0, SHORT_RANKS + 1, 0]


def test_a_variant_is_one_word() -> None:
    names = pl.DataFrame({"document": [0, 1], "title": ["same same song\tsped up", "!!!\t"]})
    assert title_words(names).rows() == [(0, "same"), (0, "same"), (0, "song"), (0, "\tsped up"), (1, "!!!")]
