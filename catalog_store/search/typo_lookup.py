"""Other readings of a word: vocabulary words one or two edits away, and its parts when a space is missing.

An edit is a letter missing, added or changed, or two neighbours swapped. One edit leaves the first or the second half of a word intact. Two
edits mostly leave the first or the last third. So all candidates share a beginning or an end with the word, and are adjacent in one of
the two orders of the vocabulary. No further index is needed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from catalog_store.search.layout import FIELD_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_store.search.vocabulary import Vocabulary

SHORTEST, SHORTEST_TWO_EDITS = 3, 7
"""Least letters of a word that is corrected by one edit, and by two. Half the vocabulary is within so many edits of a shorter word."""
NEIGHBOURS = 24
"""Most other words that one word is read as, closest first. The limit bounds the pairs to look up."""
SHORTEST_PART, LONGEST_SPLIT = 3, 60
"""Least letters of a part, and most letters of a word that may lack a space."""
_LEAST_KEPT = 3
"""Characters at the beginning or end that two edits must leave intact."""
_REMEMBERED = 256
"""Words of which the neighbours are remembered: a query asks for them in two readings."""
_SCANNED = 2_048
"""Words compared per length and end: thousands share a beginning of one or two letters."""


def find_neighbours(vocabulary: Vocabulary, word: str) -> list[str]:
    """Return words one edit from `word`, then, for a long unknown word, words two edits away.

    `word` itself is not included, and a few words two edits away may be missed. A known word is seldom two errors away from another.
    """
    if len(word) < SHORTEST:
        return []
    found = vocabulary.neighbours.get(word)
    if found is None:
        found = _look_neighbours(vocabulary, word)
        if len(vocabulary.neighbours) >= _REMEMBERED:
            vocabulary.neighbours.clear()
        vocabulary.neighbours[word] = found
    return found


def _look_neighbours(vocabulary: Vocabulary, word: str) -> list[str]:
    length = len(word)
    # Two edits are tried for unknown words only. Reading known words one edit apart made absent names a third cheaper.
    edits = 2 if length >= SHORTEST_TWO_EDITS and not vocabulary.has(word) else 1
    close: list[tuple[int, str]] = []
    for size in range(length - edits, length + edits + 1):
        # One edit leaves one half intact. The longer half counts, and an added letter makes the word longer.
        kept = max(length, size) // 2 if edits == 1 else max(_LEAST_KEPT, length // 3)
        # Two edits may leave only the middle intact, so some words with nearly the same beginning or end are compared too.
        close += vocabulary.find_close(word, kept, size, edits, _SCANNED, beside=edits > 1)
    # A swap across the middle changes both halves.
    half = length // 2
    across = word[: half - 1] + word[half] + word[half - 1] + word[half + 1 :]
    if vocabulary.has(across):
        close.append((1, across))
    # A set, because a word may share beginning and end. Words led by TAB are variants, not words of a title.
    ranked = sorted({(distance, other) for distance, other in close if other != word and not other.startswith(FIELD_SEPARATOR)})
    return [other for _, other in ranked[:NEIGHBOURS]]


def split_parts(word: str) -> list[str]:
    """Return beginnings and ends of a word: its possible words when a space between them is missing or became a letter."""
    length = len(word)
    if length > LONGEST_SPLIT:
        return []
    return [word[:place] for place in range(SHORTEST_PART, length)] + [word[place:] for place in range(1, length - SHORTEST_PART + 1)]


def join_neighbours(words: Sequence[str]) -> list[str]:
    """Join neighbouring words: their possible reading when a space was inserted into a word."""
    return [one + other for one, other in pairwise(words)]
