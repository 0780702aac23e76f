"""Artists of a document as numbers of names: few names make most lists of artists, and a list of several repeats none of them.

A list's text (documents.py) is the keys of its primary artists, TAB, those of the featured ones, each joined by "|". It is stored as a
number per artist: twice the number of the name, plus one when featured. layout.py names the files. What must not live here: keys, hashes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from catalog_store.search.index import TextPool


_CACHED_NAMES = 65_536


def artists_of(lists: pl.DataFrame, text: str) -> pl.DataFrame:
    """`lists` with the text column `text` replaced by `place`, `is_featured` and `key`: one row per artist, place 0, 1 ... inside a list.

    Rows keep the order of the lists, primary artists first.
    """
    fields = pl.col(text).str.split_exact(FIELD_SEPARATOR, 1)
    keys = [fields.struct.field(side).str.split(NAME_SEPARATOR) for side in ("field_0", "field_1")]
    primary, featured = (pl.when(side.list.get(0) != "").then(side).otherwise(_NOBODY) for side in keys)
    whole = lists.with_columns(key=pl.concat_list(primary, featured), primary_count=primary.list.len()).drop(text)
    whole = whole.with_columns(place=pl.int_ranges(pl.col("key").list.len())).explode("key", "place", empty_as_null=False)
    return whole.with_columns(is_featured=pl.col("place") >= pl.col("primary_count")).drop("primary_count")


_NOBODY = pl.lit([], dtype=pl.List(pl.String))


class Encoded(NamedTuple):
    """Where the list of each text begins (one more at the end), the numbers of all lists, and the names they stand for."""

    starts: NDArray[np.uint64]
    numbers: NDArray[np.uint32]
    names: pl.Series


def encode(texts: Sequence[str]) -> Encoded:
    """The lists of distinct texts; names are numbered as they first appear."""
    lists = pl.DataFrame({"text": texts}, schema={"text": pl.String}).with_row_index("list")
    artists = artists_of(lists, "text")
    names = artists.select(pl.col("key").unique(maintain_order=True)).with_row_index("name")
    numbered = artists.join(names, on="key", how="left", maintain_order="left")
    sizes = np.bincount(numbered["list"].to_numpy(), minlength=lists.height)
    return Encoded(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64),
        numbered.select(2 * pl.col("name") + pl.col("is_featured").cast(pl.UInt32)).to_series().to_numpy(),
        names["key"],
    )


class CreditPool:
    """The lists of artists of all documents."""

    def __init__(self, starts: NDArray[Any], numbers: NDArray[Any], names: TextPool) -> None:
        """Arrays as in `Encoded`."""
        self._starts = starts
        self._numbers = numbers
        self._name = lru_cache(_CACHED_NAMES)(lambda number: names[number].decode())

    def artists(self, lists: NDArray[Any]) -> list[tuple[list[str], list[str]]]:
        """(primary, featured) of several lists."""
        # One by one: most queries ask for a handful, for which a dozen array operations cost more than the lists.
        starts, ends = self._starts[lists].tolist(), self._starts[lists + 1].tolist()
        return [self._artists(self._numbers[start:end].tolist()) for start, end in zip(starts, ends, strict=True)]

    def _artists(self, numbers: list[int]) -> tuple[list[str], list[str]]:
        names = [self._name(number >> 1) for number in numbers]
        featured = sum(number & 1 for number in numbers)
        # Primary artists come first.
        return names[: len(names) - featured], names[len(names) - featured :]
