"""Credited artists as lists of structs: expressions with which adapters build `artists` and `artist_credit`."""

from __future__ import annotations

import polars as pl

from catalog_store.tables.staging import SOURCE_RECORDING

CREDITS = SOURCE_RECORDING.polars_schema["artists"]
"""list of struct(artist_id, name, role)."""
VARIOUS_ARTISTS = "Various Artists"
PLACEHOLDER_NAMES = (VARIOUS_ARTISTS, "Unknown Artist", "Unknown", "[unknown]")


def select_named_credits(column: str = "artists") -> pl.Expr:
    """Return an expression for the credits that have a name; a null list becomes empty."""
    # A null name compares as null, and `filter` drops it with the blank ones.
    named = pl.col(column).list.filter(pl.element().struct.field("name").str.strip_chars() != "")
    return named.fill_null(pl.lit([], dtype=CREDITS))


def list_credit_names(column: str = "artists") -> pl.Expr:
    """Return an expression for the names of the credits, in order."""
    return select_named_credits(column).list.eval(pl.element().struct.field("name"))


def join_names(separator: str, last_separator: str | None = None, column: str = "artists") -> pl.Expr:
    """Return an expression for the names as one text, null without names. `last_separator` comes before the last name."""
    names = list_credit_names(column)
    if last_separator is None:
        joined = names.list.join(separator)
    else:
        start = names.list.head(names.list.len().cast(pl.Int64) - 1).list.join(separator)
        joined = (
            pl.when(names.list.len() > 1)
            .then(pl.concat_str(start, pl.lit(last_separator), names.list.last()))
            .otherwise(names.list.first())
        )
    return pl.when(joined != "").then(joined)


def remove_blank_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` with null for each blank id in `artists`: as an id, it would make one artist of all that lack one."""
    if "artists" not in frame.columns:
        return frame
    ids = frame["artists"].explode().struct.field("artist_id")
    # Blank ids are rare, and building the lists anew costs more than this look.
    if not (ids.str.strip_chars() == "").any():
        return frame
    artist_id = pl.field("artist_id")
    known = pl.element().struct.with_fields(artist_id=pl.when(artist_id.str.strip_chars() != "").then(artist_id))
    return frame.with_columns(pl.col("artists").list.eval(known))
