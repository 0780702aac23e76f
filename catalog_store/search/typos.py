"""Words of the vocabulary within one edit of a word: a letter missing, added, changed, or two neighbours swapped.

One edit leaves the first or the second half of a word as it is, so all candidates share a prefix or a suffix with the word and stand
together in the sorted or in the reversed vocabulary. No index beyond those two orders is needed.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from rapidfuzz import process
from rapidfuzz.distance import OSA

if TYPE_CHECKING:
    from catalog_store.search.index import SearchIndex

SHORTEST = 3
"""Shorter words are never widened: half the vocabulary would be within one edit."""
NEIGHBOURS = 48
"""Words kept per word: bounds the pairs looked up."""
_SCANNED = 20_000
"""Words compared per half: a prefix of one or two letters is shared by thousands."""
_LAST_CHARACTER = "\U0010ffff"


def neighbours(index: SearchIndex, word: str) -> list[str]:
    """Words of the vocabulary at distance one from `word`, itself not among them."""
    if len(word) < SHORTEST:
        return []
    half = len(word) // 2
    forward = _Forward(index)
    found = {*_with_prefix(forward, word[:half]), *_with_prefix(_Backward(index), word[half:][::-1])}
    # Two neighbours swapped across the middle change both halves.
    across = word[: half - 1] + word[half] + word[half - 1] + word[half + 1 :]
    if across in _with_prefix(forward, across, at_most=1):
        found.add(across)
    candidates = sorted(other for other in found if abs(len(other) - len(word)) <= 1 and other != word)
    return [other for other, _, _ in process.extract(word, candidates, scorer=OSA.distance, score_cutoff=1, limit=NEIGHBOURS)]


class _Forward:
    """The vocabulary by its texts."""

    def __init__(self, index: SearchIndex) -> None:
        self._words = index.vocabulary

    def __len__(self) -> int:
        return len(self._words)

    def word(self, position: int) -> str:
        return self._words[position].decode()

    def __getitem__(self, position: int) -> str:
        return self.word(position)


class _Backward:
    """The vocabulary by its reversed texts."""

    def __init__(self, index: SearchIndex) -> None:
        self._words = index.vocabulary
        self._order = index.reversed

    def __len__(self) -> int:
        return len(self._order)

    def word(self, position: int) -> str:
        return self._words[self._order[position]].decode()

    def __getitem__(self, position: int) -> str:
        return self.word(position)[::-1]


def _with_prefix(order: _Forward | _Backward, prefix: str, at_most: int = _SCANNED) -> list[str]:
    first = bisect_left(order, prefix)
    last = bisect_left(order, prefix + _LAST_CHARACTER, lo=first)
    return [order.word(position) for position in range(first, min(last, first + at_most))]
