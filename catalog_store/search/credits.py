"""Artists of a document as numbers of names. Few names make most lists, and many documents share a list.

A list's text (documents.py) is the keys of its primary artists, TAB, those of the featured ones, TAB, other names of the primary ones, each
joined by "|". It is stored as a number per name, with its role. layout.py names the files, walks.pyx reads them. Keys and hashes do
not belong here.
"""

from __future__ import annotations

import msgspec
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR, ROLES


def split_artists(lists: pl.DataFrame, text: str) -> pl.DataFrame:
    """Replace the text column `text` of `lists` by `place`, `role` and `key`: one row per name, place 0, 1 ... inside a list.

    A role is a place in ROLES. Rows keep the order of the lists, and in a list that of the roles.
    """
    fields = pl.col(text).str.split_exact(FIELD_SEPARATOR, len(ROLES) - 1)
    keys = [fields.struct.field(f"field_{role}").fill_null("").str.split(NAME_SEPARATOR) for role in range(len(ROLES))]
    # Splitting an empty text gives one empty name, which is not an artist.
    named = [pl.when(side.list.get(0) != "").then(side).otherwise(_NO_ARTISTS) for side in keys]
    before = [pl.sum_horizontal(*(side.list.len() for side in named[:count])).alias(f"before_{count}") for count in (1, 2)]
    whole = lists.with_columns(*before, key=pl.concat_list(named)).drop(text)
    whole = whole.with_columns(place=pl.int_ranges(pl.col("key").list.len())).explode("key", "place", empty_as_null=False)
    role = sum((pl.col("place") >= pl.col(f"before_{count}")).cast(pl.UInt32) for count in (1, 2))
    return whole.with_columns(role=role).drop("before_1", "before_2")


_NO_ARTISTS = pl.lit([], dtype=pl.List(pl.String))


class Artists(msgspec.Struct, frozen=True, gc=False):
    """The keys of a document's artists."""

    primary: tuple[str, ...]
    featured: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    """Other names of the primary artists."""
