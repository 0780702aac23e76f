"""Names of several artists in one string (`A & B feat. C`) without ids: cut as linkage cuts them, shown as they were written.

Whether a name is cut is decided by `pipeline.linkage.credits.name_table` alone; here are only the words of the parts and their roles.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline.linkage.credits import PLACEHOLDERS, SEPARATORS, name_table

FEATURED = ("feat", "ft", "featuring")
_CUT, _GUESTS = "\x1f", "\x1e"


def _pattern(separators: list[str]) -> str:
    return "(?i)(?:" + "|".join(re.escape(text) for text in sorted(separators, key=len, reverse=True)) + ")"


_BEFORE_GUESTS = _pattern([text for text in SEPARATORS if text.strip(" .") in FEATURED])
_BETWEEN = _pattern([text for text in SEPARATORS if text.strip(" .") not in FEATURED])


def joined_names(names: pl.DataFrame) -> pl.DataFrame:
    """The names that are to be cut: name, place (from 0), part, role (`featured` behind `feat.`, else null).

    Args:
        names: name (distinct), key, has_id: every name of the build; `key` as `artist_key` gives it.
    """
    forms = names.filter(pl.col("has_id") | ~pl.col("name").str.contains(f"{_BEFORE_GUESTS}|{_BETWEEN}")).select(
        "name",
        name_key=pl.when(pl.col("key").is_in(PLACEHOLDERS)).then(pl.lit("")).otherwise("key"),
        parts=pl.lit(None, dtype=pl.List(pl.String)),
    )
    cut = name_table(names.select("name", "has_id"), forms).filter(pl.col("part_keys").is_not_null())
    text = pl.col("name").str.replace_all(_BEFORE_GUESTS, f"{_CUT}{_GUESTS}").str.replace_all(_BETWEEN, _CUT)
    parts = cut.select("name", part=text.str.split(_CUT)).explode("part", empty_as_null=False)
    parts = parts.with_columns(is_guest=pl.col("part").str.starts_with(_GUESTS).cum_max().over("name"))
    parts = parts.with_columns(pl.col("part").str.strip_prefix(_GUESTS).str.strip_chars()).filter(pl.col("part") != "")
    return parts.select(
        "name",
        place=pl.int_range(pl.len(), dtype=pl.Int32).over("name"),
        part="part",
        role=pl.when("is_guest").then(pl.lit("featured")),
    )
