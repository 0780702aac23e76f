"""Who made a remix, read off its title: `Song (X Remix)`, `Song - X & Y Remix`, `Song [X's Extended Rework]`.

Only words that always name a maker count (remix, rework, bootleg ...); `Mix`, `Edit` and `Version` mostly name a use (Club Mix, Radio
Edit) and are left alone. Run on distinct titles.
"""

from __future__ import annotations

import polars as pl

from pipeline.build.name_forms import artist_key

_MAKER_WORDS = "remix|rmx|rework|reworked|refix|bootleg|flip"
_USE_WORDS = (
    "club|radio|dance|extended|original|official|vocal|dub|instrumental|acoustic|house|techno|trance|garage|jungle|dnb|d&b|drum|bass|deep|"
    "tech|festival|short|long|full|main|special|summer|winter|late|night|midnight|morning|sunset|sunrise|chill|chillout|ambient|latin|disco|"
    "funk|funky|soul|soulful|hip|hop|rock|pop|trap|piano|party|remastered|remaster|live|new|old|final|exclusive|first|second|third|edit|mix|"
    "version|classic|underground|hard|uplifting|progressive|electro|dubstep|breakbeat|breaks|moombahton|reggae|reggaeton|dirty|clean|explicit|"
    "bonus|single|album|alternate|alternative|the|a|and|of|unreleased|limited|anniversary|vip|digital|mixed|intro|outro|hype|dj|us|uk|eu|euro"
)
_BRACKETED = rf"(?i)[(\[]\s*([^()\[\]]+?)\s+(?:{_MAKER_WORDS})\b[^()\[\]]*[)\]]"
_DASHED = rf"(?i)\s[-\u2013]\s+([^()\[\]]+?)\s+(?:{_MAKER_WORDS})\b[^()\[\]]*$"
_WHOLE = rf"(?i)^\s*([^()\[\]]+?)\s+(?:{_MAKER_WORDS})\b[^()\[\]]*$"
_USE_TAIL = rf"(?i)(?:\s+(?:{_USE_WORDS}|\d+))+$"
_USE_ONLY = rf"(?i)^(?:(?:{_USE_WORDS}|\d+)(?:\s+|$))+$"
_POSSESSIVE = "['\u2019]s?$"
_JOINTS = r"(?i)\s+(?:&|and|x|vs\.?|feat\.?|ft\.?|with)\s+|\s*,\s+"


def remixers(titles: pl.DataFrame) -> pl.DataFrame:
    """`titles`: title, version (distinct) -> title, version, remixer: a row per title that names its maker, the name as written."""
    title, version = pl.col("title"), pl.col("version")
    named = pl.coalesce(
        version.str.extract(_BRACKETED), version.str.extract(_WHOLE), title.str.extract(_BRACKETED), title.str.extract(_DASHED)
    )
    named = pl.when(named.str.contains(_USE_ONLY)).then(None).otherwise(named.str.replace(_USE_TAIL, ""))
    named = named.str.strip_chars().str.replace(_POSSESSIVE, "")
    return titles.with_columns(remixer=named).filter(pl.col("remixer").str.len_chars() > 0)


def split_joint_names(remixers: pl.Series, known: pl.Series) -> pl.DataFrame:
    """`A & B` -> `A`, `B` where both are known and `A & B` is not; any other name stays whole.

    Args:
        remixers: names as written, distinct.
        known: normal forms of the artists that the platforms name by id.

    Returns:
        remixer, part: a row per name to credit, in the written order.
    """
    names = remixers.alias("remixer").to_frame()
    parts = (
        names.with_columns(part=pl.col("remixer").str.replace_all(_JOINTS, "\x00").str.split("\x00"))
        .explode("part")
        .with_columns(pl.col("part").str.strip_chars())
        .with_columns(is_known=artist_key(pl.col("part")).is_in(known.implode()))
    )
    splits = parts.filter(pl.col("is_known").all().over("remixer") & ~artist_key(pl.col("remixer")).is_in(known.implode()))
    whole = names.join(splits, on="remixer", how="anti")
    return pl.concat([whole.select("remixer", part="remixer"), splits.select("remixer", "part")])
