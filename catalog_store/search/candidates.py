"""Which documents are worth comparing with a query: those that hold its word pairs, most evidence first.

Two looks. `by_words` takes the words as typed. `by_other_readings` is for queries of which that found nothing good: words that no pair
held are read in other ways (typos.py), each against all words of the other side. What must not live here: how well a document fits
(rerank.py).
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalog_store.search.layout import artist_word_hash, title_word_hash
from catalog_store.search.typos import joined, neighbours, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from catalog_store.search.index import SearchIndex
    from catalog_store.search.wanted import Wanted

WORDS_PER_SIDE = 10
"""Words of one field that are looked up: the rarest, which are the ones that were indexed."""
FEW, MANY = 50, 1_000
"""Documents compared at once, and handed over at most."""
_PER_WORD, _MOST_WORDS = 0.009, 10
"""Evidence that a word more or less in the title takes: all together less than the least pair gives."""
_WIDENED_WORDS = 4
"""Words of one side that are read in other ways."""
_COMMON, _COMMON_SHARE = 64, 1 / 16_000
"""So many documents, and such a share of all, have a word that is common: a slip seldom makes one of another word."""
_READINGS = 48
"""Other readings of all words of one side."""
_MANY_PAIRS = 96
"""Pairs from which on arrays are quicker than one pair after the other."""


class Look(NamedTuple):
    """Words of each side that were looked up, the documents that hold each pair of them, row by row, and those worth comparing."""

    artist_words: Sequence[str]
    title_words: Sequence[str]
    posted: Sequence[Sequence[int]]
    documents: Sequence[int]


def by_words(index: SearchIndex, asked: Wanted) -> Look:
    """Documents that hold pairs of the words as typed."""
    artist_words, title_words = _looked_up(index, asked.artist_words), _looked_up(index, asked.title_words)
    posted = index.holders(_pairs(artist_words, title_words))
    return Look(artist_words, title_words, posted, _by_evidence(index, posted, asked))


def by_other_readings(index: SearchIndex, asked: Wanted, look: Look) -> Sequence[int]:
    """Documents that hold pairs of the words as they may have been meant; none when every word is in a pair as typed.

    Where one side has unmet words and the other has none, a word of the other one may be met by chance, so all of those are read, too.
    """
    width = len(look.title_words)
    unmet_artist = [word for row, word in enumerate(look.artist_words) if not any(look.posted[row * width : (row + 1) * width])]
    unmet_title = [word for column, word in enumerate(look.title_words) if not any(look.posted[column::width])]
    if not (unmet_artist or unmet_title):
        return ()
    left = _readings(index, look.artist_words, unmet_artist or look.artist_words)
    right = _readings(index, look.title_words, unmet_title or look.title_words)
    grids = ((left, look.title_words), ([*look.artist_words, *left], right))
    if sum(len(one) * len(other) for one, other in grids) < _MANY_PAIRS:
        pairs = [pair for grid in grids for pair in _pairs(*grid)]
    else:
        pairs = index.held(np.concatenate([_pairs_at_once(*grid) for grid in grids])).tolist()
    return _by_evidence(index, index.holders(pairs), asked)


def _pairs(artist_words: Sequence[str], title_words: Sequence[str]) -> list[int]:
    right = list(map(title_word_hash, title_words))
    return [left ^ other for left in map(artist_word_hash, artist_words) for other in right]


def _pairs_at_once(artist_words: Sequence[str], title_words: Sequence[str]) -> NDArray[np.uint64]:
    left = np.array(list(map(artist_word_hash, artist_words)), dtype=np.uint64)
    right = np.array(list(map(title_word_hash, title_words)), dtype=np.uint64)
    return np.bitwise_xor.outer(left, right).ravel()


def _looked_up(index: SearchIndex, words: Sequence[str]) -> Sequence[str]:
    return words if len(words) <= WORDS_PER_SIDE else index.vocabulary.rarest(words, WORDS_PER_SIDE)


def _readings(index: SearchIndex, words: Sequence[str], unsure: Sequence[str]) -> list[str]:
    """Other readings of the unsure ones of some words: words near them, and what is left when spaces went missing or came between.

    A common word beside others is taken to be right: looking for words near those of queries that find nothing is most of their cost.
    """
    if len(words) > 1:
        common = max(_COMMON, int(_COMMON_SHARE * index.documents))
        unsure = [word for word in unsure if index.vocabulary.count(word) < common]
    unsure = unsure[:_WIDENED_WORDS]
    near = [other for word in unsure for other in neighbours(index.vocabulary, word)[: _READINGS // len(unsure)]]
    pieces = [*joined(words), *(part for word in unsure for part in parts(word))]
    return list(dict.fromkeys((*near, *filter(index.vocabulary.has, pieces))))


def _by_evidence(index: SearchIndex, posted: Iterable[Sequence[int]], asked: Wanted) -> Sequence[int]:
    """Distinct documents: few in any order, else the best by evidence."""
    weights: dict[int, float] = {}
    for documents in posted:
        weight = 1.0 / (1.0 + log2(len(documents) or 1))
        for document in documents:
            weights[document] = weights.get(document, 0.0) + weight
    return list(weights) if len(weights) <= FEW else _best(index, weights, asked)


def _best(index: SearchIndex, weights: dict[int, float], asked: Wanted) -> list[int]:
    """Those in more and rarer pairs first, then those with titles of about as many words, ties by popularity."""
    documents = np.array(sorted(weights))
    # An artist with a hundred sonatas: the one that is called `Sonata` and no more must be among those that are compared.
    size = asked.title.count(" ") + 1 + bool(asked.variant)
    unlike = np.minimum(np.abs(index.titles.sizes(documents) - size), _MOST_WORDS)
    weight = np.array([weights[document] for document in documents.tolist()]) - _PER_WORD * unlike
    if len(documents) > MANY:
        kept = weight >= np.partition(weight, -MANY)[-MANY]
        documents, weight = documents[kept], weight[kept]
    best: list[int] = documents[np.argsort(-weight, kind="stable")][:MANY].tolist()
    return best
