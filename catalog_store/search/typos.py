"""Other readings of a word: words of the vocabulary one or two edits away, and what is left when a space went missing.

One edit (a letter missing, added, changed, or two neighbours swapped) leaves the first or the second half of a word as it is; two edits
mostly leave the first or the last third. So all candidates share a beginning or an end with the word and stand together in one of the two
orders of the vocabulary: no index beyond those is needed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from catalog_store.search.layout import FIELD_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_store.search.vocabulary import Vocabulary

SHORTEST, SHORTEST_TWO_EDITS = 3, 7
"""Shorter words are never widened: half the vocabulary would be within so many edits."""
NEIGHBOURS = 24
"""Words kept per word, the closest: bounds the pairs looked up."""
SHORTEST_PART, LONGEST_PARTED = 3, 60
"""Letters of a part, and of a word that may lack a space."""
_LEAST_KEPT = 3
"""Characters at the beginning or end that two edits must leave."""
_SCANNED = 2_048
"""Words compared per length and end: a beginning of one or two letters is shared by thousands."""


def neighbours(vocabulary: Vocabulary, word: str) -> list[str]:
    """Words one edit from `word`, then words two edits away if it is long and no word itself, which two slips seldom make of another.

    Itself not among them; a few with two edits may be missed.
    """
    length = len(word)
    if length < SHORTEST:
        return []
    edits = 2 if length >= SHORTEST_TWO_EDITS and not vocabulary.has(word) else 1
    close: list[tuple[int, str]] = []
    for size in range(length - edits, length + edits + 1):
        # Of the halves that one edit leaves the longer one counts, and a letter more makes it longer.
        kept = max(length, size) // 2 if edits == 1 else max(_LEAST_KEPT, length // 3)
        # Two edits may leave only the middle: some words that begin or end nearly so are looked at, too.
        close += vocabulary.close(word, kept, size, edits, _SCANNED, beside=edits > 1)
    # Two neighbours swapped across the middle change both halves.
    half = length // 2
    across = word[: half - 1] + word[half] + word[half - 1] + word[half + 1 :]
    if vocabulary.has(across):
        close.append((1, across))
    ranked = sorted({(distance, other) for distance, other in close if other != word and not other.startswith(FIELD_SEPARATOR)})
    return [other for _, other in ranked[:NEIGHBOURS]]


def parts(word: str) -> list[str]:
    """Beginnings and ends of a word: what its words can be when a space between them went missing or became a letter."""
    length = len(word)
    if length > LONGEST_PARTED:
        return []
    return [word[:place] for place in range(SHORTEST_PART, length)] + [word[place:] for place in range(1, length - SHORTEST_PART + 1)]


def joined(words: Sequence[str]) -> list[str]:
    """Neighbouring words as one: what they can be when a space got between."""
    return [one + other for one, other in pairwise(words)]
