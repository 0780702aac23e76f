"""Correction of version words misspelled by one letter: `Extendde Mix`, `Radio Edti`, `Tiësto Remx`.

One letter is little evidence. Short words are corrected only beside a correct version word, and words with a meaning of their own never
are: `(Alive)`, `(I'm in Love)`, `Alive Remix` stay.
"""

from __future__ import annotations

from rapidfuzz.distance import OSA

from catalog_store.name_keys import version_words
from catalog_store.name_keys.version_words import FUNCTION_WORDS, PHRASES

SHORTEST, SHORTEST_ALONE, SHORTEST_SINGLE = 3, 4, 6
"""The least letters of a misspelled word. Three-letter words need swapped letters, words without a correct version word beside them need
five letters, and a single word needs six."""

KNOWN_WORDS = frozenset(word for phrase in PHRASES for word in phrase.split()) | version_words.REMASTER_WORDS
"""Words of version notes; they are never corrected."""
_EVIDENCE_WORDS = KNOWN_WORDS - FUNCTION_WORDS - version_words.NOT_A_NAME
# The word that a misspelled one before these words stands for.
_FOLLOWED = {"at": "live", "from": "live", "in": "live", "up": "sped"}
_PLACES = {
    (length, end, letter): tuple(w for w in version_words.CORRECTABLE_WORDS if abs(len(w) - length) <= 1 and w[end] == letter)
    for length in range(SHORTEST, 1 + 1 + max(map(len, version_words.CORRECTABLE_WORDS)))
    for end in (0, -1)
    for letter in {w[end] for w in version_words.CORRECTABLE_WORDS}
}
"""The correct words that a misspelled one of this length, with this letter at that end, can stand for."""


def correct_words(tokens: list[str]) -> list[str]:
    """Correct misspelled version words; return the same words when there is none."""
    if len(tokens) > 1 and _is_followed_word(tokens[0], tokens[1]):
        return [_FOLLOWED[tokens[1]], *tokens[1:]]
    # Without a correct version word beside it, a short word is more likely a word of its own.
    is_alone = _EVIDENCE_WORDS.isdisjoint(tokens)
    return [_correct_word(token, is_alone=is_alone, is_single=len(tokens) == 1) for token in tokens]


def _is_followed_word(token: str, behind: str) -> bool:
    """Return whether the next word identifies a misspelled short word: `Lvie at X`, `Spde Up`.

    `in` is weak evidence, so its letters must only be swapped (`Like in ...`).
    """
    word = _FOLLOWED.get(behind)
    if word is None or token in KNOWN_WORDS or token in version_words.NOT_MISSPELLED:
        return False
    return sorted(token) == sorted(word) if behind == "in" else OSA.distance(word, token, score_cutoff=1) <= 1


def correct_unambiguous(tokens: list[str]) -> list[str]:
    """Correct words that already have a reading, only if all are known afterwards and none of the changed ones is short."""
    if any(len(token) < SHORTEST_SINGLE and token not in KNOWN_WORDS for token in tokens):
        return tokens
    corrected = correct_words(tokens)
    return corrected if KNOWN_WORDS.issuperset(corrected) else tokens


def _correct_word(token: str, *, is_alone: bool, is_single: bool) -> str:
    if token in KNOWN_WORDS or token in version_words.NOT_MISSPELLED or len(token) < (SHORTEST_SINGLE if is_single else SHORTEST):
        return token
    first, last = _PLACES.get((len(token), 0, token[0]), ()), _PLACES.get((len(token), -1, token[-1]), ())
    # One edit leaves the first or the last letter intact. Words of three letters are compared by their letters alone, in any order.
    for word in dict.fromkeys((*first, *last)) if len(token) > SHORTEST else version_words.CORRECTABLE_WORDS:
        if is_alone and len(word) <= SHORTEST_ALONE:
            continue
        if len(token) == SHORTEST or len(word) == SHORTEST:
            if sorted(token) == sorted(word):
                return word
        elif OSA.distance(word, token, score_cutoff=1) <= 1:
            return word
    return token
