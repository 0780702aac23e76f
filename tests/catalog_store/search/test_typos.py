from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from catalog_store.search.arrays import TextWriter
from catalog_store.search.build import _write_vocabulary
from catalog_store.search.index import TextPool
from catalog_store.search.typos import SHORTEST, neighbours

if TYPE_CHECKING:
    from pathlib import Path

WORD = st.text("abcd\u00e9\u6771\u3099", min_size=1, max_size=7)


class Vocabulary:
    """What `neighbours` asks of an index."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        _write_vocabulary(folder, pl.Series(sorted({*words}), dtype=pl.String))
        self.vocabulary = TextPool(folder, "vocabulary")
        self.reversed = np.load(folder / "vocabulary_reversed.npy")


@given(st.lists(WORD, min_size=1, max_size=60), WORD)
@settings(max_examples=60)
def test_neighbours_are_all_words_one_edit_away_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, vocabulary: list[str], word: str
) -> None:
    index = Vocabulary(tmp_path_factory.mktemp("words"), vocabulary)
    expected = {other for other in vocabulary if OSA.distance(word, other) == 1} if len(word) >= SHORTEST else set()
    assert set(neighbours(index, word)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", ["runnin", "runing", "runnning", "rumning", "urnning", "rnuning", "runnign", "xrunning", "runningx"])
def test_each_kind_of_edit(tmp_path: Path, asked: str) -> None:
    index = Vocabulary(tmp_path, ["cunning", "midnight", "running", "stunning"])
    assert neighbours(index, asked) == ["running"]  # type: ignore[arg-type]


def test_texts_read_back(tmp_path: Path) -> None:
    with TextWriter(tmp_path, "title", np.uint32) as writer:
        writer.extend(["a", "", "東京"])
        writer.extend([])
        writer.extend(["é"])
    pool = TextPool(tmp_path, "title")
    assert len(pool) == 4
    assert pool.texts(np.array([3, 2, 1, 0])) == ["é", "東京", "", "a"]
