"""The chance of a `possible` answer: how many documents have by chance the words of a query that this document has.

A frequent first name and one word of a title meet somewhere in any large catalog. If `a` of N documents have the artist's rarest word that
was asked for, and the shares `t` have the words of the title, about a * t * t ... of them have both by chance. The number grows with the
catalog, so an answer needs rarer words there. Frequencies are those of the vocabulary (vocabulary.py); comparison of names belongs in
line_comparison.py.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING

from catalog_store.search.extra_words import build_sound, list_initials
from catalog_store.search.index_words import split_words
from catalog_store.search.plain_words import read_plain_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from catalog_store.search.credits import Artists
    from catalog_store.search.search_index import SearchIndex
    from catalog_store.search.titles import Title

SMALL = 16
"""Size of a small catalog as a power of two. In a smaller one no word is rare enough to prove anything, so words count as in this one."""
_MISSPELT = log2(20)
"""Bits by which a word that is only similar is more frequent than the document's own."""


class Chance:
    """The words of a query and their frequencies."""

    def __init__(self, index: SearchIndex, keys: Iterable[str]) -> None:
        """Read the words of the fields of a query, `keys`."""
        self._vocabulary, self._bits_of_all = index.vocabulary, log2(max(1, index.documents))
        self._bits_of_one = max(self._bits_of_all, SMALL)
        self._asked = _list_all_words(keys)
        self._shares: dict[str, float | None] = {}

    def measure(self, names: Artists, title: Title) -> float:
        """Return the logarithm to base 2 of the number of documents with the words of these names by chance."""
        artist = self._list_shares(_list_all_words((*names.primary, *names.aliases, *names.featured)))
        shares = self._list_shares(_list_all_words((title.core, *title.others)))
        return self._bits_of_all + min(artist) + sum(shares)

    def measure_document(self, index: SearchIndex, document: int) -> float:
        """Return the same for the names of a document."""
        (title,) = index.titles.of([document])
        return self.measure(index.credits[index.credit_of[document]], title)

    def _list_shares(self, words: frozenset[str]) -> list[float]:
        """Return the logarithm of the share of documents that have each asked word; if none is asked for, of those with a similar word."""
        asked = [share for word in words & self._asked if (share := self._look(word)) is not None]
        if asked:
            return asked
        rarest = min((share for word in words if (share := self._look(word)) is not None), default=-self._bits_of_one)
        return [min(0.0, rarest + _MISSPELT)]

    def _look(self, word: str) -> float | None:
        """Return the logarithm of the share of documents that pair a word; None for a word that is in no pair."""
        if word not in self._shares:
            count = self._vocabulary.count(word)
            self._shares[word] = min(0.0, log2(count) - self._bits_of_one) if count else None
        return self._shares[word]


def _list_all_words(keys: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(_list_words, keys))


@lru_cache(maxsize=16_384)
def _list_words(key: str) -> frozenset[str]:
    # Initials and sounds are words of the index, too: they find names that share no letters with what was typed.
    return frozenset({*split_words(key), *read_plain_words(key), *list_initials(tuple(key.split(" "))), build_sound(key)})
