"""Titles as numbers of words: a third of their text's size, because few words make most titles.

A title's text is cut at spaces; a variant is one word of its own, led by TAB. A word is stored by its rank (0 = most frequent in
titles), in one unit of 16 bits, or in two from rank SHORT_RANKS on. layout.py names the files. What must not live here: keys, hashes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, SHORT_RANKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog_store.search.vocabulary import Vocabulary

_UNIT = 1 << 16
_CACHED_WORDS = 131_072


def title_words(names: pl.DataFrame) -> pl.DataFrame:
    """`names` [document, title] with title = core, TAB, variant -> [document, word]: all words in order, repetitions included."""
    fields = pl.col("title").str.split_exact(FIELD_SEPARATOR, 1)
    variant = fields.struct.field("field_1")
    spelled = fields.struct.field("field_0").str.split(" ")
    variant_word = (
        pl.when(variant != "").then(pl.concat_list(pl.lit(FIELD_SEPARATOR) + variant)).otherwise(pl.lit([], dtype=pl.List(pl.String)))
    )
    return names.select("document", word=spelled.list.concat(variant_word)).explode("word", empty_as_null=False)


def encode(ranks: NDArray[np.uint32]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """(units of all words, number of units of each word)."""
    is_long = ranks >= SHORT_RANKS
    sizes = 1 + is_long.astype(np.int64)
    first = np.cumsum(sizes) - sizes
    units = np.empty(int(sizes.sum()), dtype=np.uint16)
    beyond = ranks.astype(np.int64) - SHORT_RANKS
    units[first] = np.where(is_long, SHORT_RANKS + beyond // _UNIT, ranks)
    units[first[is_long] + 1] = beyond[is_long] % _UNIT
    return units, sizes


class TitlePool:
    """The titles of all documents."""

    def __init__(self, units: NDArray[Any], starts: NDArray[Any], ranked: NDArray[Any], vocabulary: Vocabulary) -> None:
        """`ranked` maps ranks to numbers of `vocabulary`."""
        self._units = units
        self._starts = starts
        self._word = lru_cache(_CACHED_WORDS)(lambda rank: vocabulary[int(ranked[rank])])

    def sizes(self, documents: NDArray[Any]) -> NDArray[np.int64]:
        """Units of several documents' titles: about a word each, a variant among them."""
        sizes: NDArray[np.int64] = self._starts[documents + 1].astype(np.int64) - self._starts[documents].astype(np.int64)
        return sizes

    def texts(self, documents: NDArray[Any]) -> list[tuple[str, str]]:
        """(core, variant) of several documents."""
        return [
            self._text(self._units[start:end].tolist())
            for start, end in zip(self._starts[documents].tolist(), self._starts[documents + 1].tolist(), strict=True)
        ]

    def _text(self, units: list[int]) -> tuple[str, str]:
        words = []
        following = iter(units)
        for unit in following:
            rank = unit if unit < SHORT_RANKS else SHORT_RANKS + (unit - SHORT_RANKS) * _UNIT + next(following)
            words.append(self._word(rank))
        if words[-1][:1] == FIELD_SEPARATOR:
            return " ".join(words[:-1]), words[-1][1:]
        return " ".join(words), ""
