"""ISRCs in dumps: the marks of fonts and typists are removed before a code is checked.

One field may hold several codes. Wide letters, invisible characters and quotes do not belong to a code. Where only digits are possible, an
O is a zero, and an I or L is a one. Nothing else is guessed. Out of scope: which codes a lookup accepts
(catalog_store/identifiers.py).
"""

from __future__ import annotations

import re
import unicodedata
from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.identifiers import normalise_isrc, normalise_isrc_expr

_NOISE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff\"'`\u2018\u2019\u201c\u201d]|[.,;]+$")
_DIGITS = re.compile(r"^(.*?)((?:[0-9OIL][^0-9A-Z]*){7})$")
"""The last seven places of a code: year and number."""
_SEPARATOR = re.compile(r"\s*[,;/|\n+&]\s*|\s+and\s+", re.IGNORECASE)
_BRACKETS = " \t\r\n[](){}"
"""Characters around lists that were written as text."""
_AS_DIGITS = str.maketrans("OIL", "011")


def read_isrc(value: str) -> str | None:
    """Return the code that a value of a dump means, or None."""
    code = normalise_isrc(value)
    if code is not None:
        return code
    # NFKC turns the wide letters of CJK fonts into ASCII ones. Noise goes afterwards, because NFKC leaves invisible characters.
    text = _NOISE.sub("", unicodedata.normalize("NFKC", value).strip()).upper()
    found = _DIGITS.match(text)
    # The letters are replaced last: `O` is a legal letter in the first five places, and a code that is right as it is stays.
    return normalise_isrc(text) or (normalise_isrc(found[1] + found[2].translate(_AS_DIGITS)) if found else None)


def read_isrcs(value: str) -> tuple[list[str], list[str]]:
    """Return the codes in a value, in order, and the parts that are not codes. A value has one code, or several with separators."""
    # First as one code: `GB-EMI-03-00013` and `GB EMI 03 00013` hold separators themselves.
    whole = read_isrc(value)
    if whole:
        return [whole], []
    parts = [part for part in _SEPARATOR.split(value.strip(_BRACKETS)) if part]
    # A blank separates codes only if each word is a whole code.
    if len(parts) == 1 and all(read_isrc(word) for word in parts[0].split()):
        parts = parts[0].split()
    codes = [read_isrc(part) for part in parts]
    if not any(codes):
        return [], [value.strip()]
    return list(dict.fromkeys(filter(None, codes))), [part for part, code in zip(parts, codes, strict=True) if code is None]


def read_isrc_lists(values: pl.Series) -> pl.DataFrame:
    """Read a column of text as `read_isrcs` does: `_isrcs`, lists that may be empty, and `_no_isrc`, text or null. A blank is neither.

    Only values that are not plain codes are read one by one.
    """
    # Nearly all values are plain codes and are read as a column; Python sees the rest.
    codes = pl.select(normalise_isrc_expr(pl.lit(values))).to_series()
    doubtful = (codes.is_null() & (values.str.strip_chars() != "")).fill_null(value=False).arg_true().to_list()
    found = [read_isrcs(value) for value in values.gather(doubtful)]
    plain = codes.is_not_null().arg_true()
    rows = np.concatenate([plain.to_numpy(), np.repeat(np.array(doubtful, dtype=np.int64), [len(several) for several, _ in found])])
    every = pl.concat([codes.drop_nulls(), pl.Series([code for several, _ in found for code in several], dtype=pl.String)])
    # Lists as offsets into one array of codes: rows without a code get an empty list, and no object per row is made.
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows.astype(np.int64), minlength=len(values)))])
    in_order = every.gather(np.argsort(rows, kind="stable")).to_arrow()
    strange = dict(zip(doubtful, ("; ".join(rest) or None for _, rest in found), strict=True))
    # From Polars, because pyarrow imports pandas to make an array: a quarter of a second in each process.
    offsets = cast("pa.Int64Array", pl.Series(starts, dtype=pl.Int64).to_arrow())
    lists = pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(offsets, in_order)))
    left_over = pl.repeat(None, len(values), dtype=pl.String, eager=True)
    if strange:
        left_over = left_over.scatter(list(strange), pl.Series(list(strange.values()), dtype=pl.String))
    return pl.DataFrame({"_isrcs": lists.cast(pl.List(pl.String)), "_no_isrc": left_over})
