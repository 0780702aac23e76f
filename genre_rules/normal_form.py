"""The normal form of strings and rules: case, marks, `&`, apostrophes and separators do not matter, spellings are unified.

Both sides pass it, so a rule may be written as the platform writes. Letters of all scripts stay. Meaning does not belong here; the cutting
of strings belongs in separators.py.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_APOSTROPHES = re.compile("['\u2018\u2019\u02bc`\u00b4]")
_AND = re.compile("[&+]")
_CUT_DECADE = re.compile(r"(\d0) s\b")
"""`80's` in data that lost its apostrophes."""
MOST_REMEMBERED = 200_000
"""The most cached normal forms: some 40 MB."""
_STROKES = str.maketrans(
    {
        "\u0131": "i",
        "\u0142": "l",
        "\u00f8": "o",
        "\u0111": "d",
        "\u00e6": "ae",
        "\u0153": "oe",
        "\u00f0": "d",
        "\u00fe": "th",
        "\u0127": "h",
    }
)
"""Letters that Unicode does not take apart."""
_NO_WORD = re.compile(r"[\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts that join words without spaces: Thai, Hangul (as its single letters), kana, Chinese characters."""


def decode_entities(text: str) -> str:
    """Decode the HTML entities that some platforms deliver: `Drum &amp; Bass`."""
    return html.unescape(text) if "&" in text else text


def simplify(text: str) -> str:
    """Return lower-case words with single spaces: letters without marks, `&` as `and`, no punctuation. May be empty."""
    bare = text.casefold()
    if not bare.isascii():
        bare = "".join(letter for letter in unicodedata.normalize("NFKD", bare.translate(_STROKES)) if not unicodedata.combining(letter))
    words = _NO_WORD.sub(" ", _AND.sub(" and ", _APOSTROPHES.sub("", bare))).strip()
    return _CUT_DECADE.sub(r"\1s", words) if "0 s" in words else words


class Spellings:
    """Unifies spellings of one word (`dnb`, `drum n bass` -> `drum and bass`), longest first, on word boundaries.

    `variants`: the forms that become another.
    """

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        """Compile `groups`: the form kept -> the forms that become it."""
        self.variants = {simplify(variant): simplify(kept) for kept, variants in groups.items() for variant in variants}
        # The first that fits is taken, so longer spellings come before those they contain.
        longest = sorted(self.variants, key=lambda form: (-len(form), form))
        self._by_first_word: dict[str, list[list[str]]] = {}
        for words in (form.split() for form in longest if not _UNSPACED.search(form)):
            self._by_first_word.setdefault(words[0] if words else "", []).append(words)
        unspaced = [form for form in longest if _UNSPACED.search(form)]
        self._unspaced = re.compile("|".join(map(re.escape, unspaced))) if unspaced else None
        self._known: dict[str, str] = {}

    def normalise(self, text: str) -> str:
        """Return the normal form of `text`. It is cached, because the engine asks for the same text several times."""
        form = self._known.get(text)
        if form is None:
            words = simplify(text)
            # Such words stand inside others (`アニメソング`), so each becomes a word of its own.
            if self._unspaced and not words.isascii():
                words = " ".join(self._unspaced.sub(lambda match: f" {self.variants[match.group()]} ", words).split())
            form = words if self._by_first_word.keys().isdisjoint(words.split()) else self._unify(words.split())
            if len(self._known) < MOST_REMEMBERED:
                self._known[text] = form
        return form

    def _unify(self, words: list[str]) -> str:
        # One expression of thousands of alternatives took twice the time of all other steps.
        unified: list[str] = []
        index = 0
        while index < len(words):
            found = next((form for form in self._by_first_word.get(words[index], ()) if words[index : index + len(form)] == form), None)
            unified.append(self.variants[" ".join(found)] if found else words[index])
            index += len(found) if found else 1
        return " ".join(unified)
