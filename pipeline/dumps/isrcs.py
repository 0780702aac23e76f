"""ISRCs as dumps write them: what fonts and typists make of a code is undone before it is checked.

Wide letters, invisible characters and quotes around a code are no part of it, and where only digits can stand an O is a zero, an I or L a
one. Nothing else is guessed: what is then no code is none. What must not live here: what a lookup takes (catalog_store/identifiers.py).
"""

from __future__ import annotations

import re
import unicodedata

import polars as pl

from catalog_store.identifiers import isrc_expr, normalise_isrc

_NOISE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff\"'`\u2018\u2019\u201c\u201d]|[.,;]+$")
_DIGITS = re.compile(r"^(.*?)((?:[0-9OIL][^0-9A-Z]*){7})$")
"""A code's last seven places: year and number."""
_AS_DIGITS = str.maketrans("OIL", "011")


def isrc_of(value: str) -> str | None:
    """The code that a value of a dump means, or None."""
    code = normalise_isrc(value)
    if code is not None:
        return code
    text = _NOISE.sub("", unicodedata.normalize("NFKC", value).strip()).upper()
    found = _DIGITS.match(text)
    return normalise_isrc(text) or (normalise_isrc(found[1] + found[2].translate(_AS_DIGITS)) if found else None)


def isrc_of_expr(value: pl.Expr) -> pl.Expr:
    """As `isrc_of`, over a column of text: only values that are no code as they stand are looked at one by one."""
    return value.map_batches(_codes, return_dtype=pl.String)


def _codes(values: pl.Series) -> pl.Series:
    codes = pl.select(isrc_expr(pl.lit(values))).to_series()
    doubtful = (codes.is_null() & values.is_not_null() & (values.str.len_chars() >= 12)).arg_true()  # noqa: PLR2004 - of a code
    if doubtful.is_empty():
        return codes
    return codes.scatter(doubtful, pl.Series([isrc_of(value) for value in values.gather(doubtful)], dtype=pl.String))
