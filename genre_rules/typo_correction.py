"""Correction of typing errors: an unknown word or string one letter away from exactly one word or name of the rules becomes that one.

It is the last test. The bounds keep it from names and from everyday speech: the first letter is right, a word of the language
(`real_words`) is never an error, short words become only words of genres' names, and a word that stands alone only a whole name. Frequent
errors of more than one letter belong in words.yaml (spellings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LAST_LATIN_LETTER = "\u024f"
SHORTEST_WORD = 8
"""The least letters of any word that an error becomes. At seven, `coroner` became a crooner and `cannock` a rock: one in ten of the
corrected words was a name."""
SHORTEST_NAME_WORD = 5
"""The least letters of such an error and of the word of a genre's name that it becomes beside another known word: `finnish houze`."""
SHORTEST_ALONE = 10
"""The least letters of a corrected word that stands alone. At eight, `cristina` became `cristiana`, `khaleesi` `khaleeji`: half of the
corrected single words were names."""
SHORTEST_BY_SOUND = 4
"""The least letters of a word that another spelling of its sound becomes beside another known word: `punck rock`, `hapy hardcore`."""
SHORTEST_SLIP = 4
"""The least letters of a word of a genre's name that two swapped letters, or one doubled, become: `funkk`, `soul jzaz`."""
SHORTEST_NAME_ALONE, SHORTEST_MAIN_ALONE = 7, 6
"""The least letters of a node's and of a main's whole name that a single word with any error becomes: `dubsteb`, `regaae`. At six, singers
became dances (`Makiza`, `Maloma`). Shorter ones need an error that no other word has by chance: two letters swapped, or one written twice
(`tehcno`, `housse`)."""
SHORTEST_JOINED = 7
"""The least letters of a single word that becomes a name of several: `syntpop`."""
SHORTEST_WHOLE = 8
"""The least letters of a string that becomes a name of several words: `deep huose`, `post-pnuk`. At seven, `New Page` became New Age."""


class TypoCorrector:
    """Corrects words by an index of all words with one letter left out."""

    def __init__(
        self,
        words: Iterable[str],
        names: Iterable[str] = (),
        places: Iterable[str] = (),
        real_words: Iterable[str] = (),
        wholes: Mapping[str, str] | None = None,
        mains: Iterable[str] = (),
    ) -> None:
        """Index `words`: single words in normal form; those that are too short are ignored.

        `names`: whole names, and the words of these are what a shorter word may become; `places`: words that a single word never becomes
        (`appalachia` is not an error of its adjective); `real_words`: never errors; `wholes`: names without their spaces -> names;
        `mains`: the names that people write most.
        """
        self._names = frozenset(names)
        self._places = frozenset(places)
        self._mains = frozenset(mains)
        self._real_words = frozenset(real_words)
        self._wholes = dict(wholes or {})
        self._words_of_names = {word for name in self._names for word in name.split() if len(word) >= SHORTEST_SLIP}
        self._by_key = _index_errors({*(word for word in words if len(word) >= SHORTEST_WORD), *self._words_of_names})
        self._by_sound: dict[str, set[str]] = {}
        for word in sorted({word for name in self._names for word in name.split() if len(word) >= SHORTEST_BY_SOUND}):
            self._by_sound.setdefault(_spell_by_sound(word), set()).add(word)
        self._wholes_by_key = _index_errors(whole for whole, name in self._wholes.items() if " " in name)

    def correct(self, word: str, *, is_alone: bool = False) -> str:
        """Return the one word that is one error from `word` and begins with the same letter; else `word`.

        An error is a letter added, missing or changed, or two swapped.
        """
        if word in self._real_words or max(word, default="") > _LAST_LATIN_LETTER:
            return word
        near = {other for other in _find_near(word, self._by_key) if len(word) >= SHORTEST_NAME_WORD}
        near = {other for other in near if len(other) >= SHORTEST_NAME_WORD or _is_slip(word, other)}
        if not near and len(word) >= (SHORTEST_NAME_WORD if is_alone else SHORTEST_BY_SOUND):
            near = {other for other in self._by_sound.get(_spell_by_sound(word), ()) if other[0] == word[0]}
        if is_alone:
            near = {other for other in near if self._is_sure_alone(word, other)}
        # With two possible corrections neither is sure, unless one alone is a word of a genre's name.
        near = near if len(near) == 1 else near & self._words_of_names
        near = near if len(near) == 1 else {other for other in near if _is_slip(word, other)}
        return near.pop() if len(near) == 1 else word

    def correct_whole(self, words: Sequence[str]) -> str:
        """Return the only name of several words that is one error away from the whole string without spaces; else an empty text."""
        squeezed = "".join(words)
        if len(squeezed) < SHORTEST_MAIN_ALONE or not self._real_words.isdisjoint(words):
            return ""
        is_long = len(squeezed) >= (SHORTEST_WHOLE if len(words) > 1 else SHORTEST_JOINED)
        found = {self._wholes[whole] for whole in _find_near(squeezed, self._wholes_by_key)}
        # `let in music` is no error of `latin music`.
        found = {name for name in found if len(words) <= name.count(" ") + 1}
        near = {name for name in found if is_long or name in self._mains}
        return near.pop() if len(near) == 1 else ""

    def _is_sure_alone(self, word: str, other: str) -> bool:
        if other in self._names and len(other) >= SHORTEST_MAIN_ALONE and _spell_by_sound(word) == _spell_by_sound(other):
            return True
        if other in self._names:
            shortest = SHORTEST_MAIN_ALONE if other in self._mains else SHORTEST_NAME_ALONE
            return len(other) >= shortest or _is_slip(word, other)
        return len(word) >= SHORTEST_ALONE and len(other) >= SHORTEST_WORD and other not in self._places


def _spell_by_sound(word: str) -> str:
    """Return the word as it is spoken, about: one letter for `ph`, `ck`, `z`, `y` and doubled ones, without an `h` inside."""
    spoken = word.replace("ph", "f").replace("ck", "k").replace("c", "k").replace("z", "s").replace("y", "i")
    spoken = spoken[:1] + spoken[1:].replace("h", "")
    return "".join(letter for index, letter in enumerate(spoken) if not index or letter != spoken[index - 1])


def _index_errors(words: Iterable[str]) -> dict[str, list[str]]:
    """Map each word, and each word without one of its letters, to the words that it stands for."""
    found: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        for key in {word, *_drop_each_letter(word)}:
            found.setdefault(key, []).append(word)
    return found


def _find_near(word: str, by_key: Mapping[str, list[str]]) -> set[str]:
    # Two words one error apart share a form with one letter left out, so the index finds them without comparing all.
    near = {other for key in (word, *_drop_each_letter(word)) for other in by_key.get(key, ()) if other[0] == word[0]}
    return {other for other in near if other != word and _is_one_error(word, other)}


def _drop_each_letter(word: str) -> Iterator[str]:
    return (word[:index] + word[index + 1 :] for index in range(len(word)))


def _is_one_error(word: str, other: str) -> bool:
    # A name may only begin like a genre: `electronicat`. Of added last letters, only an s or the same letter again is an error.
    if word[:-1] == other:
        return word[-1] in ("s", other[-1])
    if len(word) != len(other):
        shorter, longer = sorted((word, other), key=len)
        return shorter in _drop_each_letter(longer)
    differing = [index for index, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]]
    return len(differing) == 1 or _is_swapped(word, other)


def _is_swapped(word: str, other: str) -> bool:
    if len(word) != len(other):
        return False
    differing = [index for index, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]]
    if len(differing) != 2:  # noqa: PLR2004 - two neighbours
        return False
    first, second = differing
    return second == first + 1 and word[first] == other[second] and word[second] == other[first]


def _is_slip(word: str, other: str) -> bool:
    """Return whether two letters are swapped, or one is written twice or once instead of twice."""
    shorter, longer = sorted((word, other), key=len)
    is_doubled = len(longer) - len(shorter) == 1 and any(
        longer[index] == longer[index - 1] and longer[:index] + longer[index + 1 :] == shorter for index in range(1, len(longer))
    )
    return is_doubled or _is_swapped(word, other)
