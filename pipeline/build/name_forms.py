"""Normal forms of the names of artists, labels and release titles, for comparison between platforms.

They are the shared name keys and the rules of labels and editions. Run them on distinct strings only. catalog_store/name_keys alone folds
characters.
"""

from __future__ import annotations

import polars as pl

from catalog_store.name_keys import build_name_key_expr, compact_expr
from catalog_store.name_keys.folding import extract_words_expr, fold_expr
from catalog_store.platforms import CATALOG_A

NUMBERED = r"\s*\((\d{1,3})\)\s*$"
"""The suffix by which catalog_a numbers bearers of one name; the first bearer carries none."""
_LABEL_TAIL = r" (?:records|recordings|recording|record|music|music group|entertainment|ltd|inc|llc|gmbh|productions)$"
_RELEASE_TAIL = r" - (?:single|ep)$"
_EDITION_WORD = r"deluxe|expanded|special|limited|collectors?|anniversary|bonus|edition|re-?issue|re-?master(?:ed|s|ing)?"
_EDITION = rf"\s*[(\[][^()\[\]]*\b(?:{_EDITION_WORD})\b[^()\[\]]*[)\]]"
_REMASTER = r"\b(?:re-?master\w*|re-?issue)\b"
_LARGER = (
    r"\b(?:deluxe|expanded|special|limited|collectors?|bonus|super|edition|version|tracks?|the|and|re-?master\w*|re-?issue|[0-9]{4})\b"
)
"""Pattern of the words that mean a larger release, or nothing more than `Edition`."""


def render_shown_name_sql(name: str, platform: str = "platform") -> str:
    """Return SQL for a name as shown: without the number that catalog_a appends. Names of other platforms stay as they are."""
    return f"CASE WHEN {platform} = '{CATALOG_A}' THEN regexp_replace({name}, '{NUMBERED}', '') ELSE {name} END"


def build_artist_key(name: pl.Expr) -> pl.Expr:
    """Return the key of an artist's name.

    `The Chemical Brothers`, `chemical brothers (2)` -> `chemicalbrothers`; `Beyoncé` -> `beyonce`; `!!!` -> `!!!`.
    """
    return compact_expr(build_name_key_expr(name))


def build_label_key(name: pl.Expr) -> pl.Expr:
    """Return the key of a label's name, with its words apart.

    `Interscope Records` -> `interscope`; `Music` -> `music`.
    """
    # Twice, because a name may end in two such words: `XL Recordings Ltd`.
    return build_name_key_expr(name).str.replace(_LABEL_TAIL, "").str.replace(_LABEL_TAIL, "")


def build_release_key(title: pl.Expr) -> pl.Expr:
    """Return the key of a release title; a title of symbols only, such as `(...)`, keeps them.

    `Around the World - Single` -> `aroundtheworld`.
    """
    folded = fold_expr(title).str.replace(_RELEASE_TAIL, "")
    words = compact_expr(extract_words_expr(folded))
    return pl.when(words == "").then(folded).otherwise(words)


def build_edition_form(title: pl.Expr, version: pl.Expr) -> pl.Expr:
    """Return a struct of `title_key`, `edition` and `is_remaster` from a release's title and its separate version.

    `Hit (Deluxe Version)` -> `hit`, `larger`; `Hit (20th Anniversary Edition)` -> `hit`, `larger 20th anniversary`; `Hit` with the version
    `Remastered` -> `hit`, ``, true. A bracket without such a word stays part of the title.
    """
    whole = pl.concat_str(title, pl.when(version.str.strip_chars() != "").then(pl.format(" ({})", version)), ignore_nulls=True)
    folded = fold_expr(whole)
    notes = folded.str.extract_all(_EDITION).list.join(" ")
    other = extract_words_expr(notes.str.replace_all(_LARGER, " "))
    bare = folded.str.replace_all(_EDITION, "")
    larger = pl.when(
        extract_words_expr(notes.str.replace_all(_REMASTER, " ").str.replace_all(r"\b(?:[0-9]{4}|edition|version|the|and)\b", " ")) != ""
    )
    return pl.struct(
        title_key=build_release_key(pl.when(bare.str.strip_chars() != "").then(bare).otherwise(folded)),
        edition=pl.concat_str(larger.then(pl.lit("larger")).otherwise(pl.lit("")), other, separator=" ").str.strip_chars(),
        is_remaster=notes.str.contains(_REMASTER),
    )
