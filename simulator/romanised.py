# ruff: noqa: RUF001 - letters of other scripts look like Latin ones, on purpose
"""Cyrillic and Greek words in Latin letters, as distributors write them; other scripts are left as they are.

Letters are replaced one at a time and by no official standard, because platforms follow none. Out of scope: the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_CYRILLIC = dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye", strict=True)) | {"ъ": "", "ь": ""}
_CYRILLIC |= {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya", "ё": "yo"}
_GREEK = dict(zip("αβγδεζηικλμνξοπρστυφω", "avgdeziiklmnxoprstyfo", strict=True))
_GREEK |= {"ς": "s", "θ": "th", "χ": "ch", "ψ": "ps", "ά": "a", "έ": "e", "ή": "i", "ί": "i", "ό": "o", "ύ": "y", "ώ": "o"}
_LETTERS = _CYRILLIC | _GREEK
_LATIN = _LETTERS | {letter.upper(): latin.capitalize() for letter, latin in _LETTERS.items()}
"""Letter -> Latin letters; a capital gives a capitalised syllable (`Ж` -> `Zh`)."""


def romanise(text: pl.Expr) -> pl.Expr:
    """Return the text with Cyrillic and Greek letters replaced; text without any is unchanged."""
    return text.str.replace_many(_LATIN)
