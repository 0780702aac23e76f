from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from catalog_store.search.layout import hash_title_word
from catalog_store.search.typo_lookup import SHORTEST, SHORTEST_TWO_EDITS, find_neighbours, split_parts
from catalog_store.search.vocabulary import STRIDE, Vocabulary, sort_words, write_vocabulary

if TYPE_CHECKING:
    from pathlib import Path

WORD = st.text("abcd\u00e9\u6771\u3099", min_size=1, max_size=7)


def opened(folder: Path, words: list[str], counts: list[int] | None = None) -> Vocabulary:
    columns = {"word": words, "count": counts or [1] * len(words), "title_hash": list(map(hash_title_word, words))}
    table = pl.DataFrame(columns, schema={"word": pl.String, "count": pl.UInt32, "title_hash": pl.UInt64})
    write_vocabulary(folder, sort_words(table.unique("word")))
    return Vocabulary(folder)


@given(st.lists(WORD, min_size=1, max_size=60), WORD)
@settings(max_examples=60)
def test_neighbours_are_all_words_one_edit_away_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, vocabulary: list[str], word: str
) -> None:
    found = find_neighbours(opened(tmp_path_factory.mktemp("words"), vocabulary), word)
    expected = {other for other in vocabulary if OSA.distance(word, other) == 1} if len(word) >= SHORTEST else set()
    assert {other for other in found if OSA.distance(word, other) == 1} == expected
    further = 2 if len(word) >= SHORTEST_TWO_EDITS else 1
    assert all(1 <= OSA.distance(word, other) <= further for other in found)


@pytest.mark.parametrize("asked", ["runnin", "runing", "runnning", "rumning", "urnning", "rnuning", "runnign", "xrunning", "runningx"])
def test_each_kind_of_edit_is_counted_as_one(tmp_path: Path, asked: str) -> None:
    assert find_neighbours(opened(tmp_path, ["cunning", "midnight", "running", "stunning"]), asked)[0] == "running"


@pytest.mark.parametrize("asked", ["midnihgtt", "mdnightt", "nidnigth", "middnightt", "imdnihgt"])
def test_long_word_is_found_with_two_edits(tmp_path: Path, asked: str) -> None:
    assert find_neighbours(opened(tmp_path, ["midnight", "midway", "night"]), asked) == ["midnight"]


def test_a_word_without_its_space_has_both_words_among_its_parts() -> None:
    assert {"daft", "punk"} <= {*split_parts("daftpunk"), *split_parts("daftxpunk")[:2], *split_parts("daftxpunk")[-4:]}
    assert split_parts("ab") == []


@given(st.lists(WORD, min_size=1, max_size=3 * STRIDE), st.lists(WORD, min_size=1, max_size=12, unique=True))
@settings(max_examples=40)
def test_the_vocabulary_knows_its_words_and_which_are_rare(
    tmp_path_factory: pytest.TempPathFactory, known: list[str], asked: list[str]
) -> None:
    distinct = sorted({*known})
    vocabulary = opened(
        tmp_path_factory.mktemp("words"), distinct, [2**place for place in range(len(distinct))][:31] + [1] * max(0, len(distinct) - 31)
    )
    assert [vocabulary.has(word) for word in asked] == [word in known for word in asked]
    rarest = vocabulary.select_rarest(asked, 3)
    assert len(rarest) == min(3, len(asked))
    assert sum(word in known for word in rarest) == min(3, sum(word in known for word in asked))
    assert rarest == [word for word in asked if word in rarest]
