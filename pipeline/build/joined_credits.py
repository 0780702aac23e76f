"""Names of several artists in one string (`A & B feat. C`) without ids, cut as linkage cuts them and shown as they were written.

`pipeline.linkage.credits.build_name_table` alone decides whether and where a name is cut. This module adds the names and roles of the
parts.
"""

from __future__ import annotations

import polars as pl

from pipeline.build.name_forms import NUMBERED, build_artist_key
from pipeline.linkage.credits import build_name_table

_CUT, _GUESTS = "\x1f", "\x1e"
_BEFORE_GUESTS = r"(?i)[\s(\[]+(?:feat\.?|ft\.?|featuring|f/)\s+"
_BETWEEN = r"(?i)\s*[,;/+&\u00d7]\s*|\s+(?:and|x|vs\.?|with|meets|pres\.?|presents)\s+"


def cut_joined_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return the names that are to be cut: name, place (from 0), part, role (`featured` after `feat.`, else null).

    A part is named as it was written. If it cannot be found again (`Tyler, The Creator`), it gets the usual name of the artist of that key.

    Args:
        names: name (distinct), key, has_id: every name of the build; `key` as `build_artist_key` gives it.
    """
    cut = build_name_table(names.select("name", "has_id")).filter(pl.col("part_keys").is_not_null())
    parts = cut.select("name", key="part_keys").explode("key", empty_as_null=False)
    parts = parts.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int32).over("name"))
    usual_names = names.filter("has_id").sort("name").unique("key", keep="first", maintain_order=True)
    usual_names = usual_names.select("key", known=pl.col("name").str.replace(NUMBERED, ""))
    written = _cut_pieces(cut.select("name")).unique(["name", "key"], keep="first", maintain_order=True)
    # The joins keep the order of the parts: `forward` below marks every part after the first guest.
    found = parts.join(written, on=["name", "key"], how="left", maintain_order="left").join(
        usual_names, on="key", how="left", maintain_order="left"
    )
    return found.select(
        "name",
        "place",
        part=pl.coalesce("piece", "known", "key"),
        role=pl.when(pl.col("is_guest").fill_null(strategy="forward").over("name")).then(pl.lit("featured")),
    )


def _cut_pieces(names: pl.DataFrame) -> pl.DataFrame:
    """Return the parts between the joints of each name: name, piece, key, is_guest."""
    # Staging removes control characters from names, so two of them can mark the cuts and the beginning of the guests.
    text = pl.col("name").str.replace_all(_BEFORE_GUESTS, f"{_CUT}{_GUESTS}").str.replace_all(_BETWEEN, _CUT)
    pieces = names.select("name", piece=text.str.split(_CUT)).explode("piece", empty_as_null=False)
    pieces = pieces.with_columns(is_guest=pl.col("piece").str.starts_with(_GUESTS).cum_max().over("name"))
    pieces = pieces.with_columns(pl.col("piece").str.strip_prefix(_GUESTS).str.strip_chars(" )]")).filter(pl.col("piece") != "")
    return pieces.with_columns(key=build_artist_key(pl.col("piece")))
