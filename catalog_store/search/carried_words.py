"""The words of the documents of a base, by which a night counts words and finds the documents whose pairs may differ.

A document is indexed by the rarest words of its names. So its pairs stay if its names stay and its words keep their order by rarity. Beside
the catalog, among the attachments, a snapshot keeps of the N documents of the base:

  search_names.npy       uint64 [N]: the digest of the rows that a document's names are built from, 0 for one that no longer counts
  search_words.parquet   document, entry: twice the number of a word, plus 1 if it belongs to the spelling of the title; by document, first
                         the words that pairs are made of, the rarest first. A word that counts twice is there twice
  search_texts.parquet   word, rarity: the words by number, and their order by rarity when the pairs were chosen

The program is part of each digest, because another one may split names otherwise. search_build.py splits names and builds pairs,
base_documents.py compares the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.array_files import map_array, write_array
from catalog_store.layered_order import ABSENT
from catalog_store.program_hash import hash_packages
from catalog_store.published_files import has_published, link_or_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.search.name_words import NameWords, WordRanks

CARRIED_WORDS = ("search_names.npy", "search_words.parquet", "search_texts.parquet")
"""Files that `build_search` writes beside the catalog, for the next build."""
_NAMES, _WORDS, _TEXTS = CARRIED_WORDS
_LIBRARIES = ("polars", "janome", "anyascii")
_SEED_DIGITS = 15


def make_seed() -> int:
    """Return a number for this program and its libraries, for digests of names."""
    return int(hash_packages(("catalog_store",), _LIBRARIES)[:_SEED_DIGITS], 16)


def write_words(
    folder: Path,
    documents: int,
    numbers: NDArray[np.uint32],
    names: NDArray[np.uint64],
    ranks: WordRanks,
    words: Iterable[NameWords],
) -> None:
    """Write the words of a base.

    Args:
        folder: an existing folder.
        documents: how many the base has.
        numbers: the number in the base of each document, ABSENT for those of the delta.
        names: the digest of the rows that each document's names are built from.
        ranks: all words of the index.
        words: those of all names, range by range in document order.
    """
    is_kept = numbers != ABSENT
    of_base = np.zeros(documents, dtype=np.uint64)
    of_base[numbers[is_kept]] = names[is_kept]
    write_array(folder / _NAMES, of_base)
    schema = pl.DataFrame(schema={"document": pl.UInt32, "entry": pl.UInt32}).to_arrow().schema
    with pq.ParquetWriter(folder / _WORDS, schema, compression="zstd", compression_level=1) as writer:
        for block in words:
            document, is_spelling, rarities = block.list_occurrences(ranks, numbers)
            entry = ranks.numbers[rarities] * np.uint32(2) + is_spelling
            rows = pl.DataFrame({"document": document, "entry": entry}, schema=dict.fromkeys(("document", "entry"), pl.UInt32))
            # One row group per block: a reader holds one at a time.
            writer.write_table(rows.to_arrow().cast(schema), row_group_size=1 << 30)
    ranks.words.select("word", "rarity").write_parquet(folder / _TEXTS, compression="zstd", compression_level=1)


class CarriedWords:
    """The words of the base of a snapshot."""

    def __init__(self, snapshot: Path) -> None:
        """Open the files beside the catalog."""
        self._snapshot = snapshot
        self.names = map_array(snapshot / _NAMES)
        self._texts = pl.read_parquet(snapshot / _TEXTS)

    @classmethod
    def open(cls, snapshot: Path) -> CarriedWords | None:
        """Open the words of a snapshot; None if they are missing or damaged."""
        return cls(snapshot) if has_published(snapshot, CARRIED_WORDS) else None

    def count(self, is_kept: NDArray[np.bool_], others: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """Return [word, count, title_count, base]: how often the words occur in the kept documents of the base and in other names.

        `others` have word, count and title_count. `base` is the number of a word in these files, null for a new one.
        """
        sums = np.zeros(2 * self._texts.height, dtype=np.int64)
        for documents, entries in self._read_entries():
            sums += np.bincount(entries[is_kept[documents]], minlength=len(sums))
        known = self._texts.select("word").with_columns(
            pl.Series("count", sums[::2], pl.UInt32), pl.Series("title_count", sums[1::2], pl.UInt32)
        )
        known = known.with_columns(base=pl.int_range(pl.len(), dtype=pl.UInt32))
        new = [rows.with_columns(base=pl.lit(None, pl.UInt32)) for rows in others]
        summed = pl.concat([known, *new]).group_by("word").agg(pl.col("count", "title_count").sum(), pl.col("base").max())
        return summed.filter(pl.col("count") + pl.col("title_count") > 0)

    def find_reordered(self, counts: pl.DataFrame, is_kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which kept documents have words in another order by rarity. `counts` have base and rarity of all words."""
        rarity = np.zeros(self._texts.height, dtype=np.int64)
        known = counts.drop_nulls("base")
        rarity[known["base"].to_numpy()] = known["rarity"].to_numpy()
        found = np.zeros(len(is_kept), dtype=np.bool_)
        for documents, entries in self._read_entries():
            ranks = rarity[entries >> 1]
            is_pair = (entries & 1) == 0
            is_turned = (documents[1:] == documents[:-1]) & is_pair[1:] & is_pair[:-1] & (ranks[1:] < ranks[:-1])
            found[documents[1:][is_turned]] = True
        return found & is_kept

    def link(self, folder: Path) -> None:
        """Share the files with the snapshot in `folder`."""
        for name in CARRIED_WORDS:
            link_or_copy(self._snapshot / name, folder / name)

    def _read_entries(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        with pq.ParquetFile(self._snapshot / _WORDS) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                yield rows.column("document").to_numpy(), rows.column("entry").to_numpy()
