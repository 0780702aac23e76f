"""Artists of a document as numbers of names. Few names make most lists, and many documents share a list.

A list's text (documents.py) is the keys of its primary artists, TAB, those of the featured ones, each joined by "|". It is stored as a
number per artist: twice the number of the name, plus one when featured. layout.py names the files, walks.pyx reads them. Keys and hashes do
not belong here.
"""

from __future__ import annotations

import msgspec
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR


def split_artists(lists: pl.DataFrame, text: str) -> pl.DataFrame:
    """Replace the text column `text` of `lists` by `place`, `is_featured` and `key`: one row per artist, place 0, 1 ... inside a list.

    Rows keep the order of the lists, primary artists first.
    """
    fields = pl.col(text).str.split_exact(FIELD_SEPARATOR, 1)
    keys = [fields.struct.field(side).str.split(NAME_SEPARATOR) for side in ("field_0", "field_1")]
    # Splitting an empty text gives one empty name, which is not an artist.
    primary, featured = (pl.when(side.list.get(0) != "").then(side).otherwise(_NO_ARTISTS) for side in keys)
    whole = lists.with_columns(key=pl.concat_list(primary, featured), primary_count=primary.list.len()).drop(text)
    whole = whole.with_columns(place=pl.int_ranges(pl.col("key").list.len())).explode("key", "place", empty_as_null=False)
    return whole.with_columns(is_featured=pl.col("place") >= pl.col("primary_count")).drop("primary_count")


_NO_ARTISTS = pl.lit([], dtype=pl.List(pl.String))


class Artists(msgspec.Struct, frozen=True, gc=False):
    """The keys of a document's artists."""

    primary: tuple[str, ...]
    featured: tuple[str, ...]
