r"""Folding of characters: removes the differences between spellings of one name.

There are two steps. `fold` keeps the structure (brackets, dashes, quotes, slashes) that the title grammar reads. `extract_words` then keeps
letters, digits and single spaces. Every step exists for a column and for one text, over the same table or pattern. Patterns use only syntax
that Rust and Python read alike: no look-around, and no `\w`, `\s`, `\b`, whose Unicode tables differ.

Combining marks are stripped by range: accents, Hebrew points, Arabic vowel signs. Marks with meaning (kana voicing, Indic and Thai vowels)
stay, because different words would become equal without them. Chinese characters take one form (`character_variants`).
"""

# ruff: noqa: RUF001 - look-alike letters are what this file is about
from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.name_keys.character_table import HARD, SPACED, STYLED, CharacterTable
from catalog_store.name_keys.character_variants import load_character_variants

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from catalog_store.name_keys.character_table import Flags

_APOSTROPHES = r"['`\u00b4\u2018\u2019\u201b\u02b9\u02bb\u02bc\u2032\uff07]"
"""Removed, not replaced by a space: `Don't`, `Don’t` and `Dont` are one name. Applied before NFKD, which turns U+00B4 into a space and a
mark."""
_MARKS = (
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_INVISIBLE = r"[\u00ad\u2120\u2122\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
_DASHES = r"[\u2010-\u2015\u2212\u2e3a\u2e3b]"
_WAVES = r"[\u301c\u3030]"
"""Japanese keyboards write one dash as `〜` or `～`; NFKD makes a tilde of the second one only."""
_ODD_SPACES = r"\x00-\x1f\x7f-\x9f\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACES = f"[{_ODD_SPACES}][ {_ODD_SPACES}]*| [ {_ODD_SPACES}]+"
"""Single plain spaces, nearly all of them, do not match: replacing each by itself costs a third of folding."""
_QUOTES = r"[\u201c-\u201f\u00ab\u00bb\u2033\u300c-\u300f]"
_LETTERS = {
    "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ـ": "",
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i", "ŧ": "t", "ς": "σ",
}  # fmt: skip
"""Letters that NFKD does not decompose; final sigma, because lower-casing depends on context; Arabic letters that keyboards exchange, and
the stroke that only stretches a word."""
_REPLACED = _LETTERS | load_character_variants()
_STYLED = ((r"\$([0-9])", r" ${1}"), (r"\$", "s"), (r"([a-z])!([a-z])", r"${1}i${2}"), (r"([a-z])!([a-z])", r"${1}i${2}"))
"""`A$AP`, `A$$`, `$ign`, `P!nk`. A sum of dollars (`$100`) is a number. The last rule is listed twice because its matches overlap."""

_SIGNS = (
    r"\x00-\x1f\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7"
    r"\u02c2-\u02df\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05c6\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4"
    r"\u0964\u0965\u1680\u180e\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f"
    r"\u30a0\u30fb\ufe10-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff"
)
_SEPARATORS = f"[{_SIGNS}][ {_SIGNS}]*| [ {_SIGNS}]+"
_AND = r"[&+\uff06\uff0b]"
_ROCK_N_ROLL = r"([a-z][a-z]) n ([a-z][a-z])"
"""`Rock 'n' Roll`, `Guns N' Roses`, `Salt-N-Pepa`, but not the letters of `T.N.T.`. Applied twice, because matches may share a word."""
NOT_WORDS = rf"[{_SIGNS}]|  |^ | $| n "
"""Folded text that does not match equals its own `extract_words`."""
_AMPERSANDS = r"&(?:amp;)+"

_INVISIBLE_RE, _DASHES_RE, _WAVES_RE, _SPACES_RE, _SEPARATORS_RE, _AND_RE = (
    re.compile(pattern) for pattern in (_INVISIBLE, _DASHES, _WAVES, _SPACES, _SEPARATORS, _AND)
)
_ROCK_N_ROLL_RE, _AMPERSANDS_RE, _SIGN_RE = re.compile(_ROCK_N_ROLL), re.compile(_AMPERSANDS), re.compile(f"[{_SIGNS}]")
_LEFT_OUT_RE = re.compile(f"{_APOSTROPHES}|{_INVISIBLE}")
_FIRST_PLANE = "".join(map(chr, range(1 << 16)))
_DECOMPOSED_TABLE = str.maketrans(
    {
        character: into
        for pattern, into in ((_APOSTROPHES, ""), (_MARKS, ""), (_DASHES, "-"), (_WAVES, "~"), (_QUOTES, '"'))
        for character in re.findall(pattern, _FIRST_PLANE)
    }
    | _REPLACED
)
"""One table lookup per character replaces five patterns, whose characters are all in the first plane."""
_STYLED_RE = tuple((re.compile(pattern), re.sub(r"\$\{(\d)\}", r"\\\1", into)) for pattern, into in _STYLED)


def fold(text: str) -> str:
    """Return the text in lower case without accents, with one kind of dash, quote and space. Punctuation is kept.

    The result may be empty: only marks, only apostrophes.
    """
    text = _fold_letters(text)
    if "&" in text:
        text = _AMPERSANDS_RE.sub("&", text)
    if "$" in text or "!" in text:
        for pattern, into in _STYLED_RE:
            text = pattern.sub(into, text)
    # Odd spaces are not printable.
    if "  " in text or not text.isprintable():
        text = _SPACES_RE.sub(" ", text)
    return text.strip(" ")


def _fold_letters(text: str) -> str:
    """Apply the part of folding that reads each character by itself. Only marks that stay depend on neighbours: NFKD orders them."""
    # ASCII needs no normalisation, and most names are ASCII.
    if not text.isascii():
        text = unicodedata.normalize("NFKD", _LEFT_OUT_RE.sub("", text))
        if not text.isascii():
            return text.lower().translate(_DECOMPOSED_TABLE)
    return text.replace("'", "").replace("`", "").lower()


def fold_expr(text: pl.Expr) -> pl.Expr:
    """Return the column form of `fold`; nulls stay."""
    return map_texts(text, fold_series)


def map_texts(text: pl.Expr, change: Callable[[pl.Series], pl.Series]) -> pl.Expr:
    """Return `change` of a column, which gets no nulls. Each text must change by itself, whatever is beside it. Nulls stay."""

    def change_filled(texts: pl.Series) -> pl.Series:
        if not texts.null_count():
            return change(texts)
        changed = change(texts.fill_null(""))
        return pl.select(pl.when(texts.is_not_null()).then(changed)).to_series()

    return text.map_batches(change_filled, return_dtype=pl.String, is_elementwise=True)


_CHARACTERS = CharacterTable(_fold_letters, f"[{_ODD_SPACES}]", f"[{_SIGNS}]|{_AND}")


def fold_series(texts: pl.Series) -> pl.Series:
    """Return the form of `fold` for a whole column without nulls."""
    return fold_with_flags(texts)[0]


def fold_with_flags(texts: pl.Series) -> tuple[pl.Series, Flags]:
    """Return the folded texts and the flags of each (see `character_table`).

    A text without flags equals its own `extract_words`, except for rock 'n' roll.
    """
    folded, flags = _CHARACTERS.fold_texts(texts)
    hard, styled = (flags & HARD) != 0, (flags & STYLED) != 0
    folded = change_where(folded, ~hard & styled, _replace_styled)
    folded = change_where(folded, ~hard & (styled | ((flags & SPACED) != 0)), _normalize_spaces)
    if hard.any():
        original = texts.filter(pl.Series(hard))
        # One by one costs the 2 us a text of ten Polars patterns, without 4 ms a chunk for the search of all variant characters.
        folded = change_where(folded, hard, lambda _: pl.Series([fold(text) for text in original], dtype=pl.String))
    return folded, flags


def _replace_styled(texts: pl.Series) -> pl.Series:
    texts = texts.str.replace_all(_AMPERSANDS, "&")
    for pattern, into in _STYLED:
        texts = texts.str.replace_all(pattern, into)
    return texts


def _normalize_spaces(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(_SPACES, " ").str.strip_chars(" ")


def change_where(texts: pl.Series, selected: npt.NDArray[np.bool_], change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Apply `change` to the values that `selected` marks, in place."""
    if not selected.any():
        return texts
    # Polars cannot assign by mask. Changed values are appended, and one gather puts each in its place.
    places = np.arange(len(texts))
    places[selected] = len(texts) + np.arange(np.count_nonzero(selected))
    return pl.concat([texts, change(texts.filter(pl.Series(selected)))]).gather(places)


def normalize_display(text: str) -> str:
    """Return the text for display: one kind of dash and space, no wide letters; case, accents and punctuation are kept."""
    text = _DASHES_RE.sub("-", unicodedata.normalize("NFKC", _INVISIBLE_RE.sub("", text)))
    return _SPACES_RE.sub(" ", _WAVES_RE.sub("~", text)).strip(" ")


def normalize_display_expr(text: pl.Expr) -> pl.Expr:
    """Return the column form of `normalize_display`."""
    text = text.str.replace_all(_INVISIBLE, "").str.normalize("NFKC")
    return text.str.replace_all(_DASHES, "-").str.replace_all(_WAVES, "~").str.replace_all(_SPACES, " ").str.strip_chars(" ")


def is_bare(folded: str) -> bool:
    """Return whether folded text has only letters, digits and spaces. Most names do and need none of the patterns for signs."""
    return folded.replace(" ", "").isalnum() if folded.isascii() else not _SIGN_RE.search(folded)


def extract_words(folded: str) -> str:
    """Reduce folded text to letters and digits, with single spaces between words; `&` and `+` become "and". Empty for symbols only."""
    spaced = folded if is_bare(folded) else _SEPARATORS_RE.sub(" ", _AND_RE.sub(" and ", folded))
    text = " ".join(spaced.split())
    if " n " in text:
        text = _ROCK_N_ROLL_RE.sub(r"\1 and \2", _ROCK_N_ROLL_RE.sub(r"\1 and \2", text))
    return text


def extract_words_expr(folded: pl.Expr) -> pl.Expr:
    """Return the column form of `extract_words`."""
    text = folded.str.replace_all(_AND, " and ").str.replace_all(_SEPARATORS, " ").str.strip_chars(" ")
    return text.str.replace_all(_ROCK_N_ROLL, "${1} and ${2}").str.replace_all(_ROCK_N_ROLL, "${1} and ${2}")


def compact(key: str) -> str:
    """Remove the spaces of a key, so that `alt j` equals `altj` and `r e m` equals `rem`."""
    return key.replace(" ", "")


def compact_expr(key: pl.Expr) -> pl.Expr:
    """Return the column form of `compact`."""
    return key.str.replace_all(" ", "", literal=True)
