"""An artist name -> its key: without leading "The", numeric suffix `(2)`, name-variation mark `*`.

One name at a time: whether `Earth, Wind & Fire` is one name or three is not for characters to decide (see `pipeline/linkage/credits.py`).
"""

from __future__ import annotations

import re

import polars as pl

from catalog_store.name_keys.folding import compact, compact_expr, fold, fold_expr, words, words_expr

_SUFFIX = r"(?:[ *]*\([0-9]{1,4}\))+[ *]*$|[ *]+$"
_TRAILING_THE = r"^(.*[^ ,]), the$"
_LEADING_THE = r"^(?:the )+"

_SUFFIX_RE, _TRAILING_THE_RE, _LEADING_THE_RE = (re.compile(pattern) for pattern in (_SUFFIX, _TRAILING_THE, _LEADING_THE))


def name_key(name: str) -> str:
    """Words of the name, folded; for a name of symbols the symbols. Empty only when `name` is blank."""
    folded = fold(name)
    key = _LEADING_THE_RE.sub("", words(_TRAILING_THE_RE.sub(r"\1", _SUFFIX_RE.sub("", folded))))
    return key or words(folded) or compact(folded) or name.strip(" ")


def name_key_expr(name: pl.Expr) -> pl.Expr:
    """As `name_key`, over a column."""
    folded = fold_expr(name)
    bare = folded.str.replace(_SUFFIX, "").str.replace(_TRAILING_THE, "${1}")
    key = words_expr(bare).str.replace(_LEADING_THE, "")
    return _first_filled(key, words_expr(folded), compact_expr(folded), name.str.strip_chars(" "))


def _first_filled(*candidates: pl.Expr) -> pl.Expr:
    return pl.coalesce(*(pl.when(text != "").then(text) for text in candidates), pl.lit(""))
