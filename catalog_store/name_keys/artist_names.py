"""The key of an artist name: without leading or trailing "The", numeric suffix `(2)`, name-variation mark `*` or singer `(CV:X)`.

It takes one name at a time. Whether `Earth, Wind & Fire` is one name or three is decided in `pipeline/linkage/credits.py`.
"""

from __future__ import annotations

import re

import polars as pl

from catalog_store.name_keys.folding import (
    change_where,
    compact,
    compact_expr,
    extract_words,
    extract_words_expr,
    fold,
    fold_series,
    map_texts,
)

_SUFFIX = r"(?:[ *]*\([0-9]{1,4}\))+[ *]*$|[ *]+$"
_SINGER = r" ?[(\[]c\.?v\.?[:.][^)\]]*[)\]]?"
"""`Character (CV:X)`: the singer behind a character. Platforms that credit the character alone have the same artist."""
_TRAILING_THE = r"^(.*[^ ,])(?:, the| \(the\))$"
_LEADING_THE = r"^(?:the )+"
_JUNIOR = r"^([^ ]+ .*[^ ]) junior$"
"""After two words only: `Junior` and `Mr. Junior` are names of their own."""
_ORCHESTRA = r" orch$"

_MAY_END_IN_MORE = (")", "*", " ", ", the")
"""The ends of all names that `_SUFFIX` or `_TRAILING_THE` match."""

_SUFFIX_RE, _SINGER_RE, _TRAILING_THE_RE, _LEADING_THE_RE, _JUNIOR_RE, _ORCHESTRA_RE = (
    re.compile(pattern) for pattern in (_SUFFIX, _SINGER, _TRAILING_THE, _LEADING_THE, _JUNIOR, _ORCHESTRA)
)


def build_name_key(name: str) -> str:
    """Return the folded words of the name, or the symbols of a name of symbols. Empty only when `name` is blank."""
    return build_folded_name_key(fold(name)) or name.strip(" ")


def build_folded_name_key(folded: str) -> str:
    """Return the `build_name_key` of a folded name; empty when folding left nothing."""
    bare = folded
    # Few names end in any of these, and each pattern costs as much as everything else here.
    if bare.endswith(_MAY_END_IN_MORE):
        bare = _TRAILING_THE_RE.sub(r"\1", _SUFFIX_RE.sub("", bare))
    if "(c" in bare or "[c" in bare:
        bare = _SINGER_RE.sub(" ", bare)
    key = extract_words(bare)
    if key.startswith("the "):
        key = _LEADING_THE_RE.sub("", key)
    if key.endswith((" junior", " orch")):
        key = _ORCHESTRA_RE.sub(" orchestra", _JUNIOR_RE.sub(r"\1 jr", key))
    # `The` alone would leave nothing, so it keeps all its words. A name of symbols keeps its symbols.
    return key or extract_words(folded) or compact(folded)


def build_name_key_expr(name: pl.Expr) -> pl.Expr:
    """Return the column form of `build_name_key`; nulls stay."""
    return map_texts(name, lambda names: build_name_key_series(names, fold_series(names)))


def build_name_key_series(names: pl.Series, folded: pl.Series) -> pl.Series:
    """Return the keys of a column without nulls from its `fold_series`."""
    text = pl.col("folded")
    found = pl.DataFrame({"name": names, "folded": folded}).with_columns(key=_build_key(text))
    is_empty = found["key"] == ""
    # Names of symbols only are rare, so they alone take the other forms.
    other = _select_first_filled(extract_words_expr(text), compact_expr(text), pl.col("name").str.strip_chars(" "))
    return change_where(found["key"], is_empty.to_numpy(), lambda _: found.filter(is_empty).select(other).to_series())


def _build_key(folded: pl.Expr) -> pl.Expr:
    """Build the key; empty where the name has only symbols, or is `The`."""
    bare = folded.str.replace(_SUFFIX, "").str.replace(_TRAILING_THE, "${1}").str.replace_all(_SINGER, " ")
    return extract_words_expr(bare).str.replace(_LEADING_THE, "").str.replace(_JUNIOR, "${1} jr").str.replace(_ORCHESTRA, " orchestra")


def _select_first_filled(*candidates: pl.Expr) -> pl.Expr:
    return pl.coalesce(*(pl.when(text != "").then(text) for text in candidates), pl.lit(""))
