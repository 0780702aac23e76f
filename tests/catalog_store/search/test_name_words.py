from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.layered_order import ABSENT
from catalog_store.search.name_words import NameWords, WordRanks, add_counts, select_rarest

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def split(*names: tuple[str, str]) -> NameWords:
    """Split (artists, title) of documents 0, 1 ..."""
    rows = [(number, artists, title, []) for number, (artists, title) in enumerate(names)]
    schema = {"document": pl.UInt32, "artists": pl.String, "title": pl.String, "sounds": pl.List(pl.String)}
    return NameWords.split(pl.DataFrame(rows, schema=schema, orient="row"))


def count(words: NameWords) -> dict[str, tuple[int, int]]:
    return {word: (paired, spelled) for word, paired, spelled in words.count_words().iter_rows()}


def test_a_list_counts_as_often_as_it_occurs_and_a_title_spells_each_repetition() -> None:
    counted = count(split(("abc def\t\t", "song song\tlive"), ("abc def\t\t", "song"), ("other\t\t", "def")))
    assert counted == {"abc": (2, 0), "def": (3, 1), "other": (1, 0), "song": (2, 3), "\tlive": (0, 1)}


def test_each_half_of_an_artist_has_a_budget_of_its_own_up_to_the_tenth() -> None:
    artist = " and ".join(f"one{number} two{number} three{number}" for number in range(12))
    words = split((f"{artist}\t\t", "song"))
    rarities = WordRanks(words.count_words()).find_rarities(words.texts)
    chosen, _, _ = select_rarest(words.artist_words, rarities, 2)
    # Ten halves, of which the last holds three, and the sounds of words with digits.
    assert np.unique(chosen, return_counts=True)[1].tolist() == [2] * 10 + [1]


def test_the_rarest_words_of_a_name_come_first(tmp_path: Path) -> None:
    words = split(("a\t\t", "common rare"), ("b\t\t", "common other"))
    words.write(tmp_path, 0)
    words = NameWords.read(tmp_path, 0)
    ranks = WordRanks(add_counts([words.count_words(), words.count_words()]))
    by_rarity = ranks.words.sort("rarity")["word"]
    names, rarest, rank = select_rarest(words.title_words, ranks.find_rarities(words.texts), 1)
    documents = words.titles["document"].gather(pl.Series(names))
    assert list(zip(documents, by_rarity.gather(pl.Series(rarest)), strict=True)) == [(0, "rare"), (1, "other")]
    assert rank.tolist() == [0, 0]


def test_rarities_of_any_words_are_their_places_by_count_and_text() -> None:
    counts = pl.DataFrame({"word": [f"w{number}" for number in range(5_000)], "count": 1, "title_count": 0}).sample(
        fraction=1, shuffle=True
    )
    asked = counts.select("word").sample(700, with_replacement=True)
    rarity = {word: place for place, word in enumerate(counts["word"].sort())}
    assert WordRanks(counts).find_rarities(asked).tolist() == [rarity[word] for word in asked["word"]]


def test_words_that_share_a_hash_keep_their_own_rarities(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_texts = pl.Series.hash
    monkeypatch.setattr(pl.Series, "hash", lambda texts, seed: hash_texts(texts, seed) // (1 if seed else 2**62))
    counts = pl.DataFrame({"word": list("abcdefgh"), "count": 1, "title_count": 0})
    assert WordRanks(counts).find_rarities(counts.select("word").reverse()).tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_occurrences_are_ordered_and_leave_documents_of_the_delta_out() -> None:
    words = split(("a\t\t", "common rare"), ("b\t\t", "common"))
    ranks = WordRanks(words.count_words())
    documents, is_spelling, rarities = words.list_occurrences(ranks, np.array([7, ABSENT], dtype=np.uint32))
    texts = ranks.words.sort("rarity")["word"].gather(pl.Series(rarities)).to_list()
    assert documents.tolist() == [7] * 5
    assert list(zip(texts, is_spelling.tolist(), strict=True)) == [
        ("a", False), ("rare", False), ("common", False), ("rare", True), ("common", True),
    ]  # fmt: skip
