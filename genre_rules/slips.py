"""One slip of the pen: a long word that is one letter away from exactly one word of the rules is that word.

Asked last, of words that nothing knows. Short words are left alone: `garbage` is no `garage`; a word that stands alone must be longer
or a slip of a node's own name, because nothing beside it says that it speaks of music. What must not live here: slips that are
frequent enough to be written down (words.yaml, spellings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST_WORD = 8
"""Letters. At seven, `coroner` was a crooner and `cannock` a rock: one in ten of the words mended was a name."""
SHORTEST_ALONE = 10
"""Letters. At eight, `cristina` was `cristiana`, `khaleesi` was `khaleeji`: of words that stand alone half of the mended were names."""


class Slips:
    """Mends words by an index of all words with one letter left out."""

    def __init__(self, words: Iterable[str], names: Iterable[str] = (), places: Iterable[str] = ()) -> None:
        """`words`: single words in normal form; those that are too short are not used.

        `names`: those that a shorter word alone may be; `places`: those that it never is (`appalachia` is no slip of its adjective).
        """
        self._names = frozenset(names)
        self._places = frozenset(places)
        self._by_key: dict[str, list[str]] = {}
        for word in sorted(set(words)):
            if len(word) >= SHORTEST_WORD:
                for key in {word, *_shortened(word)}:
                    self._by_key.setdefault(key, []).append(word)

    def mend(self, word: str, *, is_alone: bool = False) -> str:
        """The one word that is one slip away from `word` (a letter more, less or other, two swapped) and begins alike; else `word`."""
        if len(word) < SHORTEST_WORD - 1:
            return word
        near = {other for key in (word, *_shortened(word)) for other in self._by_key.get(key, ()) if other[0] == word[0]}
        near = {other for other in near if _is_one_slip(word, other)}
        if is_alone:
            near = near - self._places if len(word) >= SHORTEST_ALONE else near & self._names
        return near.pop() if len(near) == 1 else word


def _shortened(word: str) -> Iterator[str]:
    return (word[:index] + word[index + 1 :] for index in range(len(word)))


def _is_one_slip(word: str, other: str) -> bool:
    if word[:-1] == other:  # a name that only begins like a genre: `electronicat`
        return word[-1] == "s"
    if len(word) != len(other):
        shorter, longer = sorted((word, other), key=len)
        return shorter in _shortened(longer)
    differing = [index for index, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]]
    if len(differing) == 2:  # noqa: PLR2004 - two neighbours that changed places
        first, second = differing
        return second == first + 1 and word[first] == other[second] and word[second] == other[first]
    return len(differing) == 1
