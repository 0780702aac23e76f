"""The files of one layer of the index: the base, with all documents, or the delta, with those that differ from the base.

search_build.py splits names into words and pairs, base_documents.py chooses the documents of a layer. layout.py specifies the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, TextWriter, map_array, write_array
from catalog_store.layered_order import ABSENT
from catalog_store.row_shuffle import read_bucket
from catalog_store.search.credit_build import hash_texts, write_credits
from catalog_store.search.layout import HASH_BITS, TAG_BITS, choose_unsigned
from catalog_store.search.name_words import NameWords
from catalog_store.search.titles import encode_ranks
from catalog_store.sorted_search import search_many

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.search.name_words import WordRanks

CUT_POSTINGS = ("search_cut_places.npy", "search_cut_documents.npy")
"""Files beside the catalog: of each posting beyond the cap of its pair in the base, the place of the pair's first posting in
pair_documents.npy, uint64, ascending, and the document, uint32."""
NAMES = "names"
"""Folder of the shuffle of names, in the scratch folder (name_files.py)."""
_WORDS_PER_WRITE = 100_000
_NO_NAMES = pl.DataFrame(schema={"document": pl.UInt32, "artists": pl.String, "title": pl.String, "sounds": pl.List(pl.String)})


@dataclass(frozen=True)
class Layer:
    """Documents that are written as one layer, and the scratch folder `work` with the names and pairs of all documents."""

    folder: Path
    work: Path
    ranges: int
    numbers: NDArray[np.uint32]
    """The number of each document in this layer, or ABSENT. The numbers ascend from 0 on."""

    @property
    def documents(self) -> int:
        """The number of documents in this layer."""
        return int(np.count_nonzero(self.numbers != ABSENT))

    def read_names(self) -> Iterator[pl.DataFrame]:
        """Yield the names of the layer's documents, under their numbers, range by range."""
        for part in range(self.ranges if self.documents else 0):
            names = read_names_of_range(self.work, part)
            numbers = pl.Series("document", self.numbers[names["document"].to_numpy()])
            yield names.with_columns(numbers).filter(pl.col("document") != ABSENT)

    def read_pairs(self, partition: int) -> NDArray[np.uint64]:
        """Return (hash, number of the document) of a partition."""
        path = self.work / f"pairs-{partition:06d}.bin"
        if not path.exists() or not self.documents:
            return np.empty((0, 2), np.uint64)
        rows = np.fromfile(path, dtype=np.uint64).reshape(-1, 2)
        if self.documents == len(self.numbers):
            return rows
        numbers = self.numbers[rows[:, 1]]
        kept = numbers != ABSENT
        return np.column_stack([rows[kept, 0], numbers[kept].astype(np.uint64)])


class ListNumbers(NamedTuple):
    """The lists of artists of the base."""

    hashes: NDArray[np.uint64]
    """Ascending."""
    numbers: NDArray[np.uint32]
    lists: int
    """The number of lists in the base. Those of the delta are numbered from there on."""

    def find(self, texts: pl.Series) -> NDArray[np.uint32]:
        """Return the number of each list, ABSENT for those that the base lacks."""
        asked = hash_texts(texts)
        if not len(self.hashes):
            return np.full(len(asked), ABSENT, dtype=np.uint32)
        place = np.minimum(search_many(self.hashes, asked), len(self.hashes) - 1)
        return np.where(self.hashes[place] == asked, self.numbers[place], ABSENT)


def read_names_of_range(work: Path, part: int) -> pl.DataFrame:
    """Read all names of one range of documents, in their order."""
    names = read_bucket(work / NAMES, part)
    return names.sort("document") if names.width else _NO_NAMES


def write_documents(layer: Layer, ids: NDArray[np.unsignedinteger], popularity: NDArray[np.float32]) -> None:
    """Write ids and popularities. Both arguments are those of all documents."""
    chosen = layer.numbers != ABSENT
    write_array(layer.folder / "ids.npy", ids[chosen].astype(choose_unsigned(int(ids.max(initial=0))), copy=False))
    write_array(layer.folder / "popularity.npy", popularity[chosen])


def write_titles(layer: Layer, ranks: WordRanks) -> None:
    """Write titles as ranks of words, from the words of all names that may be in the layer."""
    is_used = np.ones(len(ranks.numbers), dtype=np.bool_)
    if layer.documents < len(layer.numbers):
        is_used[:] = False
        for _, rarities, _ in _read_spellings(layer, ranks):
            is_used[rarities] = True
    used = ranks.words.filter((pl.col("title_count") > 0) & pl.col("rarity").is_in(pl.Series(np.flatnonzero(is_used)).implode()))
    ranked = used.sort("title_count", "word", descending=[True, False])
    rank_of = np.zeros(len(ranks.numbers), dtype=np.uint32)
    rank_of[ranked["rarity"].to_numpy()] = np.arange(ranked.height, dtype=np.uint32)
    size_at_most = int(ranked["word"].str.len_bytes().sum())
    with TextWriter(layer.folder, "title_word", choose_unsigned(size_at_most)) as texts:
        for rows in ranked.iter_slices(_WORDS_PER_WRITE):
            texts.extend(rows["word"])
    # Each word takes one unit or two.
    units_at_most = 2 * int(ranks.words["title_count"].sum())
    with (
        ArrayWriter(layer.folder / "title_units.npy", np.uint16) as units,
        ArrayWriter(layer.folder / "title_starts.npy", choose_unsigned(units_at_most)) as starts,
    ):
        for numbers, rarities, documents in _read_spellings(layer, ranks):
            encoded, sizes = encode_ranks(rank_of[rarities])
            per_document = np.bincount(numbers - starts.length, weights=sizes, minlength=documents)
            # `units.length` still counts the units of earlier ranges only: starts are written before this range's units.
            starts.append(units.length + np.cumsum(per_document.astype(np.uint64)) - per_document.astype(np.uint64))
            units.append(encoded)
        starts.append(np.array([units.length], dtype=np.uint64))


def _read_spellings(layer: Layer, ranks: WordRanks) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint32], int]]:
    """Yield number of the document and rarity of each word that spells a title of the layer, in order, and the documents of the range."""
    for part in range(layer.ranges if layer.documents else 0):
        words = NameWords.read(layer.work, part)
        numbers = layer.numbers[words.spelled["document"].to_numpy()]
        is_kept = numbers != ABSENT
        rarities = ranks.find_rarities(words.texts)[words.spelled["code"].to_numpy()[is_kept]]
        documents = int(np.count_nonzero(layer.numbers[words.lists["document"].to_numpy()] != ABSENT))
        yield numbers[is_kept].astype(np.int64), rarities, documents


def write_artists(layer: Layer, base: ListNumbers | None = None) -> NDArray[np.uint64]:
    """Write the lists of artists that the base lacks, and the number of the list of each document. Return the hashes of these lists."""
    known = np.full(layer.documents, ABSENT, dtype=np.uint32)
    if base and layer.documents:
        known = np.concatenate([base.find(names["artists"]) for names in layer.read_names()])
    is_new = pl.Series(known == ABSENT)

    def read_new() -> Iterator[pl.Series]:
        done = 0
        for names in layer.read_names():
            yield names["artists"].filter(is_new[done : done + names.height])
            done += names.height

    lists = write_credits(layer.folder, layer.work, read_new)
    if base:
        known[known == ABSENT] = map_array(layer.folder / "credit_of.npy") + np.uint32(base.lists)
        (layer.folder / "credit_of.npy").unlink()
        write_array(layer.folder / "credit_of.npy", known)
    return lists


def write_pairs(layer: Layer, partitions: int, bits: int, layer_bits: int, tag_bits: int, cap: int, cut: Path | None = None) -> None:
    """Sort each partition by one key, which packs the rest of bucket and tag with the document.

    `bits` are those of the base's buckets, and with TAG_BITS more they tell pairs apart. All pairs of a partition share its top bits, so
    the key leaves them out. Each pair keeps at most `cap` documents. The others go to the files CUT_POSTINGS in the folder `cut`.
    """
    known_bits = partitions.bit_length() - 1
    document_bits = max(1, (layer.documents - 1).bit_length()) if layer.documents else 1
    kept_bits = bits + TAG_BITS - known_bits
    if kept_bits + document_bits > HASH_BITS:
        raise ValueError(
            f"{layer.documents} documents in {partitions} partitions do not fit the 64-bit sort key: lower PAIRS_PER_PARTITION"
        )
    buckets = 1 << (layer_bits - known_bits)
    with (
        # The width is chosen before repetitions are dropped.
        ArrayWriter(layer.folder / "pair_starts.npy", np.uint64 if layer.documents * 16 >= 1 << 32 else np.uint32) as starts,
        ArrayWriter(layer.folder / "pair_tags.npy", np.uint16 if tag_bits == TAG_BITS else np.uint32) as tags,
        ArrayWriter(layer.folder / "pair_documents.npy", np.uint32) as posted,
        ArrayWriter((cut or layer.work) / CUT_POSTINGS[0], np.uint64) as cut_places,
        ArrayWriter((cut or layer.work) / CUT_POSTINGS[1], np.uint32) as cut_documents,
    ):
        for number in range(partitions):
            rows = layer.read_pairs(number)
            # Shifting left drops the bits that the partition already says.
            keys = rows[:, 0] << np.uint64(known_bits)
            keys >>= np.uint64(HASH_BITS - kept_bits)
            keys <<= np.uint64(document_bits)
            keys |= rows[:, 1]
            del rows
            keys.sort()
            keys, beyond = _cap_postings(keys, document_bits, cap)
            pairs = keys >> np.uint64(document_bits)
            documents = np.uint64((1 << document_bits) - 1)
            cut_places.append(np.searchsorted(pairs, beyond >> np.uint64(document_bits)) + posted.length)
            cut_documents.append(beyond & documents)
            # Buckets without pairs begin where the next bucket does.
            bucket_of = pairs >> np.uint64(bits + TAG_BITS - layer_bits)
            first_of = np.searchsorted(bucket_of, np.arange(buckets, dtype=np.uint64), side="left")
            starts.append(first_of.astype(np.uint64) + np.uint64(posted.length))
            pairs |= np.uint64(number << kept_bits)
            tags.append((pairs & np.uint64((1 << tag_bits) - 1)).astype(tags.dtype))
            posted.append((keys & documents).astype(np.uint32))
        starts.append(np.array([posted.length], dtype=np.uint64))


def _cap_postings(keys: NDArray[np.uint64], document_bits: int, cap: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Drop repetitions from sorted keys. Return at most `cap` keys per pair, and the others."""
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    if len(keys) <= cap:
        return keys, keys[:0]
    pairs = keys >> np.uint64(document_bits)
    # Keys are sorted, so an entry is beyond the cap exactly when the entry `cap` places before it has the same pair. The first entries of a
    # pair are its most popular documents.
    kept = np.concatenate([np.ones(cap, dtype=bool), pairs[cap:] != pairs[:-cap]])
    return keys[kept], keys[~kept]
