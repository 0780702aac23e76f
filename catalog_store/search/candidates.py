"""Which documents are worth comparing with a query: those that hold its word pairs, most evidence first.

Two looks. `by_words` takes the words as typed. `by_other_readings` is for queries of which that found nothing good: words that no pair
held are read in other ways (typos.py), each against all words of the other side. What must not live here: how well a document fits
(rerank.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalog_store.search.layout import artist_word_hash, title_word_hash
from catalog_store.search.typos import joined, neighbours, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Look(NamedTuple):
    """Words of each side that were looked up, how many documents hold each pair of them, row by row, and the documents worth comparing."""

    artist_words: Sequence[str]
    title_words: Sequence[str]
    counts: Sequence[int]
    documents: Sequence[int]


def by_words(index: SearchIndex, asked: Wanted) -> Look:
    """Documents that hold pairs of the words as typed."""
    artist_words, title_words = _looked_up(index, asked.artist_words), _looked_up(index, asked.title_words)
    counts, documents, weights = index.postings.look([_grid(artist_words, title_words)])
    return Look(artist_words, title_words, counts, _best(index, documents, weights, asked))


def by_other_readings(index: SearchIndex, asked: Wanted, look: Look) -> Sequence[int]:
    """Documents that hold pairs of the words as they may have been meant; none when every word is in a pair as typed.

    Where one side has unmet words and the other has none, a word of the other one may be met by chance, so all of those are read, too.
    """
    width = len(look.title_words)
    unmet_artist = [word for row, word in enumerate(look.artist_words) if not any(look.counts[row * width : (row + 1) * width])]
    unmet_title = [word for column, word in enumerate(look.title_words) if not any(look.counts[column::width])]
    if not (unmet_artist or unmet_title):
        return ()
    left = _readings(index, look.artist_words, unmet_artist or look.artist_words)
    right = _readings(index, look.title_words, unmet_title or look.title_words)
    grids = _grid(left, look.title_words), _grid([*look.artist_words, *left], right)
    _, documents, weights = index.postings.look(grids)
    return _best(index, documents, weights, asked)


def _grid(artist_words: Sequence[str], title_words: Sequence[str]) -> tuple[list[int], list[int]]:
    return list(map(artist_word_hash, artist_words)), list(map(title_word_hash, title_words))


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


def _best(index: SearchIndex, found: Sequence[int], weights: Sequence[float], asked: Wanted) -> Sequence[int]:
    """Few as they are; of many those in more and rarer pairs first, then those with titles of about as many words, ties by popularity."""
    if len(found) <= FEW:
        return found
    # An artist with a hundred sonatas: the one that is called `Sonata` and no more must be among those that are compared.
    size = asked.title.count(" ") + 1 + bool(asked.variant)
    documents = np.array(found)
    unlike = np.minimum(np.abs(index.title_sizes(documents) - size), _MOST_WORDS)
    weight = np.array(weights) - _PER_WORD * unlike
    if len(documents) > MANY:
        kept = weight >= np.partition(weight, -MANY)[-MANY]
        documents, weight = documents[kept], weight[kept]
    best: list[int] = documents[np.argsort(-weight, kind="stable")][:MANY].tolist()
    return best
