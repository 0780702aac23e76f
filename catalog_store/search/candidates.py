"""Which documents are worth comparing with a query: those that hold its word pairs, most evidence first.

Two looks. `by_words` takes the words as typed. `by_other_readings` is for queries of which that found nothing good: words that no pair
held are read in other ways (typos.py), each against all words of the other side. What must not live here: how well a document fits
(rerank.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalog_store.search.layout import pair_hashes, word_hash
from catalog_store.search.typos import joined, neighbours, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from catalog_store.search.index import SearchIndex
    from catalog_store.search.wanted import Wanted

    Documents = NDArray[np.uint32]
    Grid = tuple[Sequence[str], Sequence[str]]

WORDS_PER_SIDE = 10
"""Words of one field that are looked up: the rarest, which are the ones that were indexed."""
FEW, MANY = 50, 1_000
"""Documents compared at once, and handed over at most."""
_PER_WORD, _MOST_WORDS = 0.009, 10
"""Evidence that a word more or less in the title takes: all together less than the least pair gives."""
_WIDENED_WORDS = 4
"""Words of one side that are read in other ways."""
_READINGS = 48
"""Other readings of all words of one side."""


class Look(NamedTuple):
    """Documents found, and words of each side; `unmet` ones are in no pair with any word of the other side."""

    documents: Documents
    artist_words: list[str]
    title_words: list[str]
    unmet_artist: list[str]
    unmet_title: list[str]


def by_words(index: SearchIndex, asked: Wanted) -> Look:
    """Documents that hold pairs of the words as typed."""
    left, right = (_looked_up(index, words) for words in (asked.artist_words, asked.title_words))
    documents, which = _posted(index, [(left, right)])
    held = np.zeros(len(left) * len(right), dtype=bool)
    held[which] = True
    grid = held.reshape(len(left), len(right))
    return Look(_by_evidence(index, documents, which, _size(asked)), left, right, _others(left, grid, 1), _others(right, grid, 0))


def by_other_readings(index: SearchIndex, asked: Wanted, look: Look) -> Documents:
    """Documents that hold pairs of the words as they may have been meant; empty when every word was met as typed.

    Where one side has unmet words and the other has none, a word of the other one may be met by chance, so all of those are read, too.
    """
    if not (look.unmet_artist or look.unmet_title):
        return look.documents[:0]
    artist, title = (
        (unmet or words)[:_WIDENED_WORDS] for unmet, words in ((look.unmet_artist, look.artist_words), (look.unmet_title, look.title_words))
    )
    left, right = (_readings(index, words, unsure) for words, unsure in ((look.artist_words, artist), (look.title_words, title)))
    found = _posted(index, [(left, look.title_words), (look.artist_words, right), (left, right)])
    return _by_evidence(index, *found, _size(asked))


def _size(asked: Wanted) -> int:
    """Words of the title, as `SearchIndex.title_sizes` counts them."""
    return asked.title.count(" ") + 1 + bool(asked.variant)


def _others(words: Sequence[str], held: NDArray[np.bool_], axis: int) -> list[str]:
    """Words of which no pair is held."""
    return [word for word, is_met in zip(words, np.any(held, axis=axis).tolist(), strict=True) if not is_met]


def _looked_up(index: SearchIndex, words: Sequence[str]) -> list[str]:
    return list(words) if len(words) <= WORDS_PER_SIDE else index.vocabulary.rarest(words, WORDS_PER_SIDE)


def _readings(index: SearchIndex, words: Sequence[str], unsure: Sequence[str]) -> list[str]:
    """Other readings of the unsure ones of some words: words near them, and what is left when spaces went missing or came between."""
    near = [other for word in unsure for other in neighbours(index.vocabulary, word)[: _READINGS // len(unsure)]]
    pieces = [*joined(words), *(part for word in unsure for part in parts(word))]
    return list(dict.fromkeys((*near, *filter(index.vocabulary.has, pieces))))


def _posted(index: SearchIndex, grids: Sequence[Grid]) -> tuple[Documents, NDArray[np.int64]]:
    """Postings of all pairs of each grid."""
    hashes = [pair_hashes(_hashes(left)[:, np.newaxis], _hashes(right)).ravel() for left, right in grids if left and right]
    return index.postings(np.concatenate(hashes) if len(hashes) != 1 else hashes[0]) if hashes else _NOTHING


_NOTHING = (np.empty(0, np.uint32), np.empty(0, np.int64))


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([word_hash(word) for word in words], dtype=np.uint64)


def _by_evidence(index: SearchIndex, documents: Documents, which: NDArray[np.int64], size: int) -> Documents:
    """Distinct documents, those in more and rarer pairs first, then those with titles of about `size` words, ties by popularity."""
    if not len(documents):
        return documents
    sizes = np.bincount(which)
    evidence = (1.0 / (1.0 + np.log2(np.maximum(sizes, 1))))[which]
    order = np.argsort(documents, kind="stable")
    ordered = documents[order]
    first = np.flatnonzero(np.concatenate([_TRUE, ordered[1:] != ordered[:-1]]))
    distinct = ordered[first]
    weight = np.add.reduceat(evidence[order], first)
    if len(distinct) > FEW:
        # An artist with a hundred sonatas: the one that is called `Sonata` and no more must be among those that are compared.
        weight -= _PER_WORD * np.minimum(np.abs(index.title_sizes(distinct) - size), _MOST_WORDS)
    if len(distinct) > MANY:
        kept = weight >= np.partition(weight, -MANY)[-MANY]
        distinct, weight = distinct[kept], weight[kept]
    return distinct[np.argsort(-weight, kind="stable")][:MANY]


_TRUE = np.array([True])
