"""Normal forms by which artists, labels and release titles of different platforms are compared.

First form, until every comparison goes through the shared name keys; run on distinct strings only. Nothing normalises to nothing: a name
of symbols only keeps them.
"""

from __future__ import annotations

import polars as pl

from catalog_store.platforms import CATALOG_A

NUMBERED = r"\s*\((\d{1,3})\)\s*$"
"""The suffix by which catalog_a numbers bearers of one name; the first bearer carries none."""
_MARKS = r"\p{M}"
_APOSTROPHES = "['\u2019\u2018\u02bc`\u00b4]"
_NO_WORD = r"[^\p{L}\p{N}]+"
_LABEL_TAIL = r" (?:records|recordings|recording|record|music|music group|entertainment|ltd|inc|llc|gmbh|productions)$"
_RELEASE_TAIL = r"(?i)\s+[-\u2013]\s+(?:single|ep)\s*$"


def shown_name_sql(name: str, platform: str = "platform") -> str:
    """SQL for a name as shown: without the number that catalog_a appends; other platforms' names are taken as they are."""
    return f"CASE WHEN {platform} = '{CATALOG_A}' THEN regexp_replace({name}, '{NUMBERED}', '') ELSE {name} END"


def artist_key(name: pl.Expr) -> pl.Expr:
    """`The Chemical Brothers`, `chemical brothers (2)` -> `chemical brothers`; `Beyoncé` -> `beyonce`; `!!!` -> `!!!`."""
    return _plain(name.str.replace(NUMBERED, "")).str.replace("^the (.)", "$1")


def label_key(name: pl.Expr) -> pl.Expr:
    """`Interscope Records` -> `interscope`; `Music` -> `music`."""
    return _plain(name.str.replace(NUMBERED, "")).str.replace(_LABEL_TAIL, "").str.replace(_LABEL_TAIL, "")


def release_key(title: pl.Expr) -> pl.Expr:
    """`Around the World - Single` -> `around the world`."""
    return _plain(title.str.replace(_RELEASE_TAIL, ""))


def _plain(text: pl.Expr) -> pl.Expr:
    folded = text.str.normalize("NFKD").str.replace_all(_MARKS, "").str.to_lowercase()
    words = folded.str.replace_all("&", " and ", literal=True).str.replace_all(_APOSTROPHES, "").str.replace_all(_NO_WORD, " ")
    words = words.str.strip_chars()
    return pl.when(words == "").then(folded.str.strip_chars()).otherwise(words)
