# ruff: noqa: RUF001 - letters of other scripts look like Latin ones, on purpose
"""Writing systems of names: `Кино` and `kino` share no letter, so a difference between them proves nothing.

Add a script to SCRIPTS when platforms of a market write it, and letters to `transliterate` when most of them have one sound. What must not
live here: limits (guards.py).
"""

from __future__ import annotations

import polars as pl

SCRIPTS = (
    "a-z",
    r"\p{Cyrillic}",
    r"\p{Greek}",
    r"\p{Armenian}",
    r"\p{Georgian}",
    r"\p{Hebrew}",
    r"\p{Arabic}",
    r"\p{Thai}",
    r"\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}",
    r"\p{Hangul}",
    r"\p{Han}\p{Hiragana}\p{Katakana}",
)
"""Letters of folded text, as contents of character classes. Scripts that one text mixes count as one."""


_CYRILLIC = dict(zip("абвгдезиклмнопрстуфыэіє", "abvgdeziklmnoprstufyeie", strict=True)) | {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch"}
_CYRILLIC |= {"ш": "sh", "щ": "shch", "ю": "yu", "я": "ya", "ъ": "", "ь": ""}
_GREEK = dict(zip("αβγδεζηικλμνξοπρστυφωθχψ", "avgdeziiklmnxoprstyfo" + "tcp", strict=True))
_SOUNDS = _CYRILLIC | _GREEK


def transliterate(text: pl.Expr) -> pl.Expr:
    """Return the text with folded Cyrillic and Greek letters as they roughly sound: platforms follow no standard. Other letters stay."""
    return text.str.replace_many(_SOUNDS)


def mark_unlike_scripts(one: pl.Series, other: pl.Series) -> pl.Series:
    """Mark the pairs in which both texts have letters, but none of a common script. A text of digits and signs has no script. No nulls."""
    pairs = pl.DataFrame({"one": one, "other": other})
    # Folded Latin text has one byte for each character: two lengths rule out nearly all pairs.
    has_other_letters = pl.col("one").str.len_bytes() + pl.col("other").str.len_bytes() > (
        pl.col("one").str.len_chars() + pl.col("other").str.len_chars()
    )
    is_candidate = pairs.select(has_other_letters).to_series()
    few = pairs.filter(is_candidate)
    ones, others = ([few[name].str.contains(f"[{letters}]") for letters in SCRIPTS] for name in ("one", "other"))
    shared = pl.select(pl.any_horizontal(a & b for a, b in zip(ones, others, strict=True))).to_series()
    lettered = pl.select(pl.any_horizontal(ones) & pl.any_horizontal(others)).to_series()
    places = is_candidate.arg_true()
    return pl.repeat(value=False, n=pairs.height, dtype=pl.Boolean, eager=True).scatter(places, lettered & ~shared)
