"""The words of the names of a range of documents, as numbers: each text is hashed once, and all later steps work on integers.

A *name* here is a title of a document, or an artist of a list, its initials or its sound: each has a budget of words of its own
(search_build.py). A *code* is the place of a word among the distinct words of the range. Once all words are counted, their *rarity*
stands for them: 0 for the rarest word of the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import polars as pl

from catalog_store.layered_order import ABSENT
from catalog_store.search.credits import split_artists
from catalog_store.search.extra_words import build_composers, build_initials, build_sounds
from catalog_store.search.index_words import split_word_column
from catalog_store.search.layout import hash_artist_word, hash_title_word
from catalog_store.search.titles import select_titles, split_titles
from catalog_store.search.vocabulary import sort_words
from catalog_store.sorted_search import search_many

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    Numbers = NDArray[np.uint32]

_MOST_HALVES = 10
"""Parts of an artist's name with a budget of their own; all further ones share that of the last."""
_RARITY_BITS = 31
"""Bits of a rarity in a packed occurrence: a document of 32 bits and one bit for spellings are above them."""


class NameWords(NamedTuple):
    """The words of one range."""

    texts: pl.DataFrame
    """word: the distinct words by code."""
    lists: pl.DataFrame
    """document, list: the list of artists of each document."""
    artists: pl.DataFrame
    """list, role: the names in lists of artists."""
    artist_words: pl.DataFrame
    """name, code: the distinct words of each name, which is a row of `artists`."""
    titles: pl.DataFrame
    """document: the titles, and the sounds of each document."""
    title_words: pl.DataFrame
    """name, code: the distinct words of each name, which is a row of `titles`."""
    composers: pl.DataFrame
    """document, code."""
    spelled: pl.DataFrame
    """document, code: the words that spell the titles, in order."""
    main_artists: pl.DataFrame
    """list, key."""
    keys: pl.DataFrame
    """document, key: the titles without their sounds."""

    @classmethod
    def split(cls, names: pl.DataFrame) -> Self:
        """Split names [document, artists, title, sounds]."""
        # Many documents share a list of artists, so each list is split once.
        lists = names.select(pl.col("artists").unique()).with_row_index("list")
        of_document = names.select("document", "artists").join(lists, on="artists", maintain_order="left").select("document", "list")
        credited = split_artists(lists, "artists")
        titles = select_titles(names)
        artists, artist_words = _split_artists(credited)
        sung, title_words = _split_titles(names, titles)
        composers = build_composers(titles.select("document", "key"), "key")
        parts = [artist_words, title_words, composers, split_titles(names)]
        encoded = pl.concat([part["word"] for part in parts]).to_arrow().dictionary_encode()
        codes, done = pl.Series("code", encoded.indices).cast(pl.UInt32), 0
        coded = []
        for part in parts:
            coded.append(part.drop("word").with_columns(codes.slice(done, part.height)))
            done += part.height
        artist_words, title_words, composers, spelled = coded
        texts = pl.DataFrame({"word": pl.Series(encoded.dictionary, dtype=pl.String)})
        main_artists = credited.filter(role=0).select("list", "key")
        return cls(
            texts, of_document, artists, artist_words, sung, title_words, composers, spelled, main_artists, titles.select("document", "key")
        )

    def write(self, work: Path, part: int) -> None:
        """Write the words of range `part` into the folder `work`."""
        for name, rows in self._asdict().items():
            # Uncompressed, words and pairs of 30 million recordings took 16 GB of scratch space.
            rows.write_ipc(work / f"words-{part:06d}-{name}.arrow", compression="lz4")

    @classmethod
    def read(cls, work: Path, part: int) -> Self:
        """Read what `write` wrote."""
        return cls(*(pl.read_ipc(work / f"words-{part:06d}-{name}.arrow") for name in cls._fields))

    def count_words(self) -> pl.DataFrame:
        """Return [word, count, title_count]: how often the index pairs each word, and how often titles are spelled with it."""
        words = self.texts.height
        of_list = np.bincount(self.lists["list"])
        # A list counts as often as it occurs.
        credited = of_list[self.artists["list"].to_numpy()][self.artist_words["name"].to_numpy()]
        count = np.bincount(self.artist_words["code"], weights=credited, minlength=words).astype(np.int64)
        for found in (self.composers, self.title_words):
            count += np.bincount(found["code"], minlength=words)
        spelled = np.bincount(self.spelled["code"], minlength=words)
        return self.texts.with_columns(pl.Series("count", count, pl.UInt32), pl.Series("title_count", spelled, pl.UInt32))

    def list_occurrences(self, ranks: WordRanks, numbers: Numbers) -> tuple[Numbers, NDArray[np.bool_], Numbers]:
        """Return document, is_spelling and rarity of each counted occurrence, sorted by all three.

        `numbers` are the numbers of all documents; those with ABSENT are left out.
        """
        rarities = ranks.find_rarities(self.texts)
        credited = self.lists.join(
            self.artists.with_row_index("name").select("list", "name").join(self.artist_words, on="name").select("list", "code"), on="list"
        )
        titles = self.title_words.select(document=pl.Series(self.titles["document"].to_numpy()[self.title_words["name"]]), code="code")
        packed = []
        for rows, is_spelling in ((credited, 0), (titles, 0), (self.composers, 0), (self.spelled, 1)):
            documents = numbers[rows["document"].to_numpy()]
            kept = documents != ABSENT
            found = documents[kept].astype(np.uint64) << np.uint64(_RARITY_BITS + 1)
            found |= np.uint64(is_spelling << _RARITY_BITS) | rarities[rows["code"].to_numpy()[kept]]
            packed.append(found)
        every = np.concatenate(packed)
        every.sort()
        documents = (every >> np.uint64(_RARITY_BITS + 1)).astype(np.uint32)
        is_spelled = (every >> np.uint64(_RARITY_BITS) & np.uint64(1)).astype(np.bool_)
        return documents, is_spelled, (every & np.uint64((1 << _RARITY_BITS) - 1)).astype(np.uint32)


class WordRanks:
    """All words of the index."""

    def __init__(self, counts: pl.DataFrame) -> None:
        """Rank words by [word, count, title_count] and other columns; words are distinct."""
        # A total order, ties by text. Otherwise the rarest words of a name, and so the index, would depend on the order of rows.
        counts = sort_words(counts.sort("count", "word").with_row_index("rarity"))
        hashes = {
            name: pl.Series(np.fromiter(map(hashed, counts["word"]), np.uint64, counts.height))
            for name, hashed in (("artist_hash", hash_artist_word), ("title_hash", hash_title_word))
        }
        self.words = counts.with_columns(**hashes).with_row_index("number")
        """word, number, rarity, count, title_count, artist_hash, title_hash in the order of the vocabulary; number = position."""
        by_rarity = self.words.select("rarity", "number", "artist_hash", "title_hash").sort("rarity")
        self.artist_hashes, self.title_hashes = by_rarity["artist_hash"].to_numpy(), by_rarity["title_hash"].to_numpy()
        """By rarity."""
        self.numbers: Numbers = by_rarity["number"].to_numpy()
        """By rarity."""
        self._texts = _TextIndex.of(self.words["word"], self.words["rarity"].to_numpy())

    def find_rarities(self, texts: pl.DataFrame) -> Numbers:
        """Return the rarity of each of `texts` [word]; all are known."""
        return self._texts.find(texts["word"])


class _TextIndex(NamedTuple):
    """Values of texts, found by hashes. A join would hash all texts of the index again for each range of documents."""

    hashes: NDArray[np.uint64]
    """Sorted and distinct."""
    values: Numbers
    seed: int

    @classmethod
    def of(cls, texts: pl.Series, values: Numbers, seed: int = 0) -> Self:
        """Index distinct texts."""
        hashes = texts.hash(seed).to_numpy()
        order = hashes.argsort()
        hashes = hashes[order]
        # Two of five million texts share a hash with a chance of one in a million.
        if (hashes[1:] == hashes[:-1]).any():
            return cls.of(texts, values, seed + 1)
        return cls(hashes, values[order], seed)

    def find(self, texts: pl.Series) -> Numbers:
        """Return the value of each text; all are known."""
        found: Numbers = self.values[search_many(self.hashes, texts.hash(self.seed).to_numpy())]
        return found


def add_counts(counts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up counts [word, count, title_count]."""
    return pl.concat(counts).group_by("word").agg(pl.col("count", "title_count").sum())


def select_rarest(words: pl.DataFrame, rarities: Numbers, budget: int) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """Return (name, rarity, rank) of the `budget` rarest of `words` [name, code] of each name; rank 0 is the rarest."""
    packed = words["name"].to_numpy().astype(np.uint64) << np.uint64(32) | rarities[words["code"].to_numpy()]
    packed.sort()
    names = (packed >> np.uint64(32)).astype(np.uint32)
    is_first = np.concatenate([np.ones(min(1, len(names)), dtype=np.bool_), names[1:] != names[:-1]])
    firsts = np.flatnonzero(is_first)
    ranks = np.arange(len(names)) - firsts[np.cumsum(is_first) - 1] if len(names) else np.empty(0, dtype=np.int64)
    kept = ranks < budget
    return names[kept], packed[kept].astype(np.uint32), ranks[kept]


def _split_artists(credited: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the names [list, role] of `credited` [list, place, role, key] and their words [name, word]: halves, initials, sounds."""
    # `Marvin Gaye & Tammi Terrell` may be one name. Each half gets a budget of its own.
    halves = credited.with_columns(pl.col("key").str.split(" and ")).with_columns(half=pl.int_ranges(pl.col("key").list.len()))
    halves = halves.explode("key", "half", empty_as_null=False).with_row_index("row")
    own = pl.col("half") < _MOST_HALVES
    halves = halves.with_columns(name=(own.cum_sum() - 1).cast(pl.UInt32))
    # Rows tell names apart: halves beyond the most may repeat a word of their name.
    spelled = split_word_column(halves.select("row", "name", "key"), "key")
    names, words = [halves.filter(own)], [spelled.select("name", "word")]
    for build in (build_initials, build_sounds):
        before = sum(found.height for found in names)
        numbered = credited.select("list", "role", "key").with_row_index("name", before)
        names.append(numbered)
        words.append(build(numbered.select("name", "key"), "key").select("name", "word"))
    return pl.concat([found.select("list", "role") for found in names]), pl.concat(words)


def _split_titles(names: pl.DataFrame, titles: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the names [document] of titles and sounds, and their words [name, word]."""
    spelled = split_word_column(titles.select("key").with_row_index("name"), "key")
    sounds = names.select(word="sounds").with_row_index("name", titles.height).explode("word", empty_as_null=False)
    return pl.concat([found.select("document") for found in (titles, names)]), pl.concat([spelled, sounds.select(spelled.columns)])
