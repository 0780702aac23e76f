"""Correction of typing errors: a long unknown word that is one letter away from exactly one word of the rules becomes that word.

It is the last test, for unknown words. Short words are left alone: `garbage` is not `garage`. A word that stands alone must be longer, or
an error in a node's own name, because no other word indicates music. Frequent errors belong in words.yaml (spellings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST_WORD = 8
"""The least letters of a corrected word. At seven, `coroner` became a crooner and `cannock` a rock: one in ten of the corrected words was a
name."""
SHORTEST_ALONE = 10
"""The least letters of a corrected word that stands alone. At eight, `cristina` became `cristiana`, `khaleesi` `khaleeji`: half of the
corrected single words were names."""


class TypoCorrector:
    """Corrects words by an index of all words with one letter left out."""

    def __init__(self, words: Iterable[str], names: Iterable[str] = (), places: Iterable[str] = ()) -> None:
        """Index `words`: single words in normal form; those that are too short are ignored.

        `names`: the words that a shorter single word may become; `places`: those that it never becomes (`appalachia` is not an error of its
        adjective).
        """
        self._names = frozenset(names)
        self._places = frozenset(places)
        self._by_key: dict[str, list[str]] = {}
        for word in sorted(set(words)):
            if len(word) >= SHORTEST_WORD:
                for key in {word, *_drop_each_letter(word)}:
                    self._by_key.setdefault(key, []).append(word)

    def correct(self, word: str, *, is_alone: bool = False) -> str:
        """Return the one word that is one error from `word` and begins with the same letter; else `word`.

        An error is a letter added, missing or changed, or two swapped.
        """
        if len(word) < SHORTEST_WORD - 1:
            return word
        # Two words one error apart share a form with one letter left out, so the index finds them without comparing all.
        near = {other for key in (word, *_drop_each_letter(word)) for other in self._by_key.get(key, ()) if other[0] == word[0]}
        near = {other for other in near if _is_one_error(word, other)}
        if is_alone:
            near = near - self._places if len(word) >= SHORTEST_ALONE else near & self._names
        # With two possible corrections neither is sure.
        return near.pop() if len(near) == 1 else word


def _drop_each_letter(word: str) -> Iterator[str]:
    return (word[:index] + word[index + 1 :] for index in range(len(word)))


def _is_one_error(word: str, other: str) -> bool:
    # A name may only begin like a genre: `electronicat`. Of added last letters, only an s is an error.
    if word[:-1] == other:
        return word[-1] == "s"
    if len(word) != len(other):
        shorter, longer = sorted((word, other), key=len)
        return shorter in _drop_each_letter(longer)
    differing = [index for index, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]]
    if len(differing) == 2:  # noqa: PLR2004 - two neighbours swapped
        first, second = differing
        return second == first + 1 and word[first] == other[second] and word[second] == other[first]
    return len(differing) == 1
