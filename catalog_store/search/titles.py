"""Titles as numbers of words: a third of the size of their text, because few words make most titles.

A title's text is cut at spaces. A variant is one word of its own, led by TAB, and so is each other title, led by two. A word is stored by
its rank (0 = most frequent in titles): in one unit of 16 bits, or in two from rank SHORT_RANKS on. layout.py names the files, walks.pyx
reads them. Keys and hashes do not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from catalog_store.search.layout import FIELD_SEPARATOR, NAME_SEPARATOR, OTHER_TITLE, SHORT_RANKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNIT = 1 << 16


def split_titles(names: pl.DataFrame) -> pl.DataFrame:
    """Return [document, word] of `names` [document, title]: all words of core, variant and other titles in order, repetitions included.

    Documents ascend.
    """
    fields = pl.col("title").str.split_exact(FIELD_SEPARATOR, 2)
    core, variant, others = (fields.struct.field(f"field_{number}") for number in range(3))
    cut = names.select("document", core=core, variant=variant.fill_null(""), others=others.fill_null(""))
    # Repetitions stay: the stored title must spell the same text again. TAB occurs in no key, so a variant never shares its rank with a
    # word of a title.
    core_words = cut.select("document", word=pl.col("core").str.split(" ")).explode("word", empty_as_null=False)
    variant_words = cut.filter(pl.col("variant") != "").select("document", word=FIELD_SEPARATOR + pl.col("variant"))
    other_words = cut.filter(pl.col("others") != "").select("document", word=pl.col("others").str.split(NAME_SEPARATOR)).explode("word")
    other_words = other_words.with_columns(word=OTHER_TITLE + pl.col("word"))
    # Few titles have more than a core: to put these words in place costs a third of lists that hold all words of a title.
    return pl.concat([core_words, variant_words, other_words]).sort("document", maintain_order=True)


def select_titles(names: pl.DataFrame) -> pl.DataFrame:
    """Return [document, part, key]: the core of each title, part 0, and its other titles."""
    fields = pl.col("title").str.split_exact(FIELD_SEPARATOR, 2)
    cores = names.select("document", part=pl.lit(0, pl.UInt32), key=fields.struct.field("field_0"))
    others = names.select("document", key=fields.struct.field("field_2").fill_null("")).filter(pl.col("key") != "")
    others = others.with_columns(pl.col("key").str.split(NAME_SEPARATOR))
    others = others.with_columns(part=pl.int_ranges(1, pl.col("key").list.len() + 1, dtype=pl.UInt32)).explode(
        "key", "part", empty_as_null=False
    )
    return pl.concat([cores, others.select(cores.columns)])


def encode_ranks(ranks: NDArray[np.uint32]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Return (units of all words, number of units of each word)."""
    is_long = ranks >= SHORT_RANKS
    sizes = 1 + is_long.astype(np.int64)
    first = np.cumsum(sizes) - sizes
    units = np.empty(int(sizes.sum()), dtype=np.uint16)
    beyond = ranks.astype(np.int64) - SHORT_RANKS
    units[first] = np.where(is_long, SHORT_RANKS + beyond // _UNIT, ranks)
    units[first[is_long] + 1] = beyond[is_long] % _UNIT
    return units, sizes


class Title(msgspec.Struct, frozen=True, gc=False):
    """The keys of a document's title. A struct takes .05 us to create, a named tuple .2 us, and a query creates dozens."""

    core: str
    variant: str
    others: tuple[str, ...] = ()
    """Other titles: translations, transliterations."""
