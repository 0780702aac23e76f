"""Normal forms by which artists, labels and release titles of different platforms are compared: the shared name keys, and what labels need.

Run on distinct strings only. What must not live here: another way to fold characters (see catalog_store/name_keys).
"""

from __future__ import annotations

import polars as pl

from catalog_store.name_keys import compact_expr, name_key_expr
from catalog_store.name_keys.folding import fold_expr, words_expr
from catalog_store.platforms import CATALOG_A

NUMBERED = r"\s*\((\d{1,3})\)\s*$"
"""The suffix by which catalog_a numbers bearers of one name; the first bearer carries none."""
_LABEL_TAIL = r" (?:records|recordings|recording|record|music|music group|entertainment|ltd|inc|llc|gmbh|productions)$"
_RELEASE_TAIL = r" - (?:single|ep)$"


def shown_name_sql(name: str, platform: str = "platform") -> str:
    """SQL for a name as shown: without the number that catalog_a appends; other platforms' names are taken as they are."""
    return f"CASE WHEN {platform} = '{CATALOG_A}' THEN regexp_replace({name}, '{NUMBERED}', '') ELSE {name} END"


def artist_key(name: pl.Expr) -> pl.Expr:
    """`The Chemical Brothers`, `chemical brothers (2)` -> `chemicalbrothers`; `Beyoncé` -> `beyonce`; `!!!` -> `!!!`."""
    return compact_expr(name_key_expr(name))


def label_key(name: pl.Expr) -> pl.Expr:
    """`Interscope Records` -> `interscope`; `Music` -> `music`; words stay parted."""
    return name_key_expr(name).str.replace(_LABEL_TAIL, "").str.replace(_LABEL_TAIL, "")


def release_key(title: pl.Expr) -> pl.Expr:
    """`Around the World - Single` -> `aroundtheworld`; `(...)` and other titles of symbols only keep them."""
    folded = fold_expr(title).str.replace(_RELEASE_TAIL, "")
    words = compact_expr(words_expr(folded))
    return pl.when(words == "").then(folded).otherwise(words)
