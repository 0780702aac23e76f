"""Artists of a document as numbers of names. Few names make most lists, and many documents share a list.

A list's text (documents.py) is the keys of its primary artists, TAB, those of the featured ones, each joined by "|". It is stored as a
number per artist: twice the number of the name, plus one when featured. layout.py names the files, walks.pyx reads them. Keys and hashes do
not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def split_artists(lists: pl.DataFrame, text: str) -> pl.DataFrame:
    """Replace the text column `text` of `lists` by `place`, `is_featured` and `key`: one row per artist, place 0, 1 ... inside a list.

    Rows keep the order of the lists, primary artists first.
    """
    fields = pl.col(text).str.split_exact(FIELD_SEPARATOR, 1)
    keys = [fields.struct.field(side).str.split(NAME_SEPARATOR) for side in ("field_0", "field_1")]
    # Splitting an empty text gives one empty name, which is no artist.
    primary, featured = (pl.when(side.list.get(0) != "").then(side).otherwise(_NO_ARTISTS) for side in keys)
    whole = lists.with_columns(key=pl.concat_list(primary, featured), primary_count=primary.list.len()).drop(text)
    whole = whole.with_columns(place=pl.int_ranges(pl.col("key").list.len())).explode("key", "place", empty_as_null=False)
    return whole.with_columns(is_featured=pl.col("place") >= pl.col("primary_count")).drop("primary_count")


_NO_ARTISTS = pl.lit([], dtype=pl.List(pl.String))


class EncodedLists(NamedTuple):
    """Lists of names: the start of each text's list (one more at the end), the numbers of all lists, and the names behind the numbers."""

    starts: NDArray[np.uint64]
    numbers: NDArray[np.uint32]
    names: pl.Series


def encode_lists(texts: Sequence[str]) -> EncodedLists:
    """Encode the lists of distinct texts. Names are numbered in order of first appearance, so the same texts give the same bytes."""
    lists = pl.DataFrame({"text": texts}, schema={"text": pl.String}).with_row_index("list")
    artists = split_artists(lists, "text")
    names = artists.select(pl.col("key").unique(maintain_order=True)).with_row_index("name")
    numbered = artists.join(names, on="key", how="left", maintain_order="left")
    # Lists without artists have no rows here: `minlength` keeps their size of 0.
    sizes = np.bincount(numbered["list"].to_numpy(), minlength=lists.height)
    return EncodedLists(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64),
        numbered.select(2 * pl.col("name") + pl.col("is_featured").cast(pl.UInt32)).to_series().to_numpy(),
        names["key"],
    )


class Artists(msgspec.Struct, frozen=True, gc=False):
    """The keys of a document's artists."""

    primary: tuple[str, ...]
    featured: tuple[str, ...]
