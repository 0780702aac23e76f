"""Other readings of a word: words of the vocabulary one or two edits away, and what is left when a space went missing.

One edit (a letter missing, added, changed, or two neighbours swapped) leaves the first or the second half of a word as it is; two edits
mostly leave the first or the last third. So all candidates share a beginning or an end with the word and stand together in one of the two
orders of the vocabulary: no index beyond those is needed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rapidfuzz import process
from rapidfuzz.distance import OSA

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
    kept = length // 2 if edits == 1 else max(_LEAST_KEPT, length // 3)
    backwards = word[::-1]
    lengths = range(max(kept, length - edits), length + edits + 1)
    begun = [other for size in lengths for other in vocabulary.beginning(word[:kept], size, _SCANNED)]
    ended = [other for size in lengths for other in vocabulary.ending(backwards[:kept], size, _SCANNED)]
    found = dict(_close(word, begun, edits))
    found |= {other[::-1]: distance for other, distance in _close(backwards, ended, edits)}
    # Two neighbours swapped across the middle change both halves.
    across = word[: kept - 1] + word[kept] + word[kept - 1] + word[kept + 1 :]
    if edits == 1 and vocabulary.has(across):
        found[across] = 1
    found.pop(word, None)
    ranked = sorted(found.items(), key=lambda one: (one[1], one[0]))
    return [other for other, _ in ranked[:NEIGHBOURS] if not other.startswith(FIELD_SEPARATOR)]


def _close(word: str, others: Sequence[str], edits: int) -> list[tuple[str, int]]:
    return [(other, distance) for other, distance, _ in process.extract(word, others, scorer=OSA.distance, score_cutoff=edits, limit=None)]


def parts(word: str) -> list[str]:
    """Beginnings and ends of a word: what its words can be when a space between them went missing or became a letter."""
    length = len(word)
    if length > LONGEST_PARTED:
        return []
    return [word[:place] for place in range(SHORTEST_PART, length)] + [word[place:] for place in range(1, length - SHORTEST_PART + 1)]


def joined(words: Sequence[str]) -> list[str]:
    """Neighbouring words as one: what they can be when a space got between."""
    return [one + other for one, other in pairwise(words)]
