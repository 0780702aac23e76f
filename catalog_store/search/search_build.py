"""The build of the token-pair index from the tables of a snapshot, in buckets. The words of all names are held whole, names are not.

1. Number all recordings by popularity: 20 bytes a recording for a moment.
2. Build name keys in blocks of ids and partition them into files by document range.
3. For each range, split names into words, and count these.
4. For each range, pair each document's rarest words and partition the pairs into files by hash range.
5. Compare each document with the base of the live snapshot (base_documents.py).
   At night, steps 3 and 4 read only documents that may differ from it (carried_words.py).
6. Write a delta of those that differ, or all documents as a new base (layer_build.py): artists, titles and pairs.

layout.py specifies the files.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import polars as pl

from catalog_store.array_files import write_array
from catalog_store.folder_listing import list_folder
from catalog_store.job_runner import run_in_turn
from catalog_store.layered_order import ABSENT
from catalog_store.pending_files import write_aside
from catalog_store.ranked_ids import number_ids, rank_by_popularity
from catalog_store.record_keys.numbers import hash_columns, mix_bits
from catalog_store.remembered_texts import read_anew
from catalog_store.search.base_documents import SEARCH_DIGESTS, BaseDocuments
from catalog_store.search.carried_words import CarriedWords, digest_names, write_words
from catalog_store.search.credits import split_artists
from catalog_store.search.documents import read_names
from catalog_store.search.extra_words import build_composers, build_initials, build_sounds
from catalog_store.search.index_words import split_word_column
from catalog_store.search.layer_build import (
    Layer,
    read_names_of_range,
    write_artists,
    write_documents,
    write_pairs,
    write_titles,
)
from catalog_store.search.layout import (
    BASE_CAP,
    DELTA_FOLDER,
    DELTA_TAG_BITS,
    FORMAT_FILE,
    FORMAT_VERSION,
    HASH_BITS,
    POSTINGS_CAP,
    TAG_BITS,
    choose_bucket_bits,
    hash_artist_word,
    hash_title_word,
)
from catalog_store.search.titles import select_titles, split_titles
from catalog_store.search.vocabulary import sort_words, write_vocabulary
from catalog_store.search.whole_names import ANY, build_whole_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.job_runner import JobRunner
    from catalog_store.layered_order import Difference
    from catalog_store.remembered_texts import TextMemory

DOCUMENTS_PER_BLOCK = 200_000
"""Documents whose names are keyed and paired at once: about 300 MB."""
PAIRS_PER_PARTITION = 8_000_000
"""Pairs sorted at once: 64 MB of keys."""
ARTIST_WORDS, TITLE_WORDS, TITLE_WORDS_BESIDE_FEATURED = 2, 5, 2
"""Rarest words kept of each artist and of the title. Each artist has a budget of its own. With a shared budget, 30 % of the queries by the
second of several artists missed at 1 M recordings, because the other artist's words were rarer."""
_TITLES = "search-titles"
_SOUND_PART = 1_000
"""Sounds have a budget of their own, as each title of a document has."""
_PLACES_APART = 1_000_000
"""Initials and sounds of an artist count as further artists of the list, at places above all others."""
_PAIRS_PER_DOCUMENT = 5
"""An estimate, which sizes partitions before the pairs are counted."""


def build_search(
    tables: Mapping[str, Path],
    folder: Path,
    run: JobRunner = run_in_turn,
    texts: TextMemory | None = None,
    *,
    previous: Path | None = None,
    digests: Path | None = None,
) -> None:
    """Write all files of the index into the new folder `folder`.

    `run` builds the keys of blocks of names. `texts` remembers the keys of titles for the next build. The base of the snapshot `previous`
    is shared as long as few documents differ from it. `digests` is the folder for the file by which the next build compares documents.
    """
    folder.mkdir()
    work = folder / ".parts"
    work.mkdir()
    digests = digests or work
    (folder / DELTA_FOLDER).mkdir()
    ids, popularity = rank_by_popularity(tables)
    _partition_names(tables, ids, work, run, texts)
    documents = len(ids)
    names = _Names(work, max(1, -(-documents // DOCUMENTS_PER_BLOCK)))
    ranges, partitions = names.ranges, _count_partitions(documents)
    # A bucket must not span two partitions, so there are at least as many buckets as partitions.
    bits = max(choose_bucket_bits(documents), partitions.bit_length() - 1)
    base = BaseDocuments.open(previous, FORMAT_VERSION)
    order = _Order(ids, popularity, digest_names(names.read(), documents))
    indexed, difference, carried = _index_documents(base, names, order, partitions, bits)
    counts = indexed.counts
    if base and difference:
        base.link(folder, digests)
        write_array(folder / "dead.npy", np.packbits(difference.dead, bitorder="little"))
        numbers, places = difference.delta_numbers, difference.places
        known_lists = base.number_lists((block["artists"] for block in names.read()), difference.base_numbers)
        base_numbers = difference.base_numbers
    else:
        write_array(digests / SEARCH_DIGESTS, indexed.digests)
        write_array(folder / "dead.npy", np.empty(0, dtype=np.uint8))
        base_numbers = np.arange(documents, dtype=np.uint32)
        whole = Layer(folder, work, ranges, base_numbers)
        write_documents(whole, ids, popularity)
        write_artists(whole)
        write_titles(whole, counts)
        write_pairs(whole, partitions, bits, bits, TAG_BITS, BASE_CAP, digests)
        numbers, places = np.full(documents, ABSENT, dtype=np.uint32), np.empty(0, dtype=np.uint32)
        known_lists = None
    if carried:
        carried.link(digests)
    else:
        in_base = len(difference.dead) if difference else documents
        # All words were counted, so the scratch folder has them.
        rows = (_list_words(block, _Words.read(work, part)) for part, block in enumerate(names.read()))
        write_words(digests, in_base, base_numbers, order.names, counts, rows)
    delta = Layer(folder / DELTA_FOLDER, work, ranges, numbers)
    # The tags of the delta must reach as far as those of the base.
    delta_bits = max(choose_bucket_bits(delta.documents), bits + TAG_BITS - DELTA_TAG_BITS, partitions.bit_length() - 1)
    write_array(delta.folder / "places.npy", places)
    write_documents(delta, ids, popularity)
    write_artists(delta, known_lists)
    write_titles(delta, counts)
    write_pairs(delta, partitions, bits, delta_bits, DELTA_TAG_BITS, POSTINGS_CAP)
    write_vocabulary(folder, counts)
    shutil.rmtree(work)
    content = {"format_version": FORMAT_VERSION, "documents": documents, "bucket_bits": bits, "delta_bucket_bits": delta_bits}
    (folder / FORMAT_FILE).write_text(json.dumps(content) + "\n")


@dataclass(frozen=True)
class _Names:
    """The names of all documents in the scratch folder `work`, by range of documents."""

    work: Path
    ranges: int

    def read(self, chosen: NDArray[np.bool_] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the names of all documents, or of the `chosen` ones, range by range in document order."""
        for part in range(self.ranges):
            names = read_names_of_range(self.work, part)
            yield names if chosen is None else names.filter(pl.Series(chosen[names["document"].to_numpy()]))


class _Indexed(NamedTuple):
    """Counts and digests of all documents. The pairs of those that may be written are in the scratch folder."""

    counts: pl.DataFrame
    digests: NDArray[np.uint64]
    """Digest of all that is indexed of each document."""


class _Order(NamedTuple):
    """All documents in their order."""

    ids: NDArray[np.unsignedinteger]
    popularity: NDArray[np.float32]
    names: NDArray[np.uint64]
    """Digests of their names."""


def _index_documents(
    base: BaseDocuments | None, names: _Names, order: _Order, partitions: int, bits: int
) -> tuple[_Indexed, Difference | None, CarriedWords | None]:
    """Steps 3 to 5. Return what is indexed, the relation to the base if it stays, and the words of the base if they stay."""
    carried = CarriedWords.open(base.snapshot) if base else None
    if base and carried:
        changed = _index_changes(base, carried, names, order, partitions)
        difference = base.compare(order.ids, changed.digests, bits) if changed else None
        if changed and difference:
            return changed, difference, carried
    every = _index_all(names, order.popularity, partitions)
    return every, base.compare(order.ids, every.digests, bits) if base else None, None


def _index_all(names: _Names, popularity: NDArray[np.float32], partitions: int) -> _Indexed:
    """Steps 3 and 4 for all documents."""
    for file in list_folder(names.work, "pairs-*"):
        file.unlink()
    counts = _count_words(names)
    return _Indexed(counts, _partition_pairs(counts, names, partitions, popularity))


def _index_changes(base: BaseDocuments, carried: CarriedWords, names: _Names, order: _Order, partitions: int) -> _Indexed | None:
    """Steps 3 and 4 for documents whose names, popularity or order of words differ from the base; None if they are many."""
    kept, places = base.find_kept(order.ids, order.names, carried.names)
    is_changed = np.ones(len(order.ids), dtype=np.bool_)
    is_changed[places[kept]] = False
    if not base.is_small(is_changed):
        return None
    counts = _rank_words(carried.count(kept, (_list_words(block, _split_words(block)) for block in names.read(is_changed))))
    is_changed[places[carried.find_reordered(counts, kept)]] = True
    digests = np.zeros(len(order.ids), dtype=np.uint64)
    digests[places[kept]] = base.digests[kept]
    # A digest is a sum, in which the popularity is a part.
    had = np.zeros(len(order.ids), dtype=np.float32)
    had[places[kept]] = base.popularity[kept]
    is_changed |= had != order.popularity
    if not base.is_small(is_changed):
        return None
    for part, block in enumerate(names.read(is_changed)):
        _split_words(block).write(names.work, part)
    counts = counts.drop("base")
    return _Indexed(counts, np.where(is_changed, _partition_pairs(counts, names, partitions, order.popularity, is_changed), digests))


def _list_words(names: pl.DataFrame, words: _Words) -> pl.DataFrame:
    """Return [document, word, is_spelling]: each occurrence that `_count_words` counts."""
    credited = words.lists.join(words.artists.select("list", "word"), on="list")
    paired = pl.concat([found.select(pl.col("document").cast(pl.UInt32), "word") for found in (credited, words.composers, words.titles)])
    spelled = split_titles(names).select(pl.col("document").cast(pl.UInt32), "word")
    return pl.concat([paired.with_columns(is_spelling=pl.lit(value=False)), spelled.with_columns(is_spelling=pl.lit(value=True))])


def _partition_names(
    tables: Mapping[str, Path], ranked: NDArray[np.unsignedinteger], work: Path, run: JobRunner, texts: TextMemory | None
) -> None:
    """Write names-<range>-<block>.arrow with [document, artists, title, sounds]. `ranked` are the ids of the documents."""
    numbers, ids = number_ids(ranked), np.sort(ranked)
    # Names are read by ranges of ids, because the tables are stored in that order. The index needs them in document order.
    bounds = (
        (int(ids[first]), int(ids[min(first + DOCUMENTS_PER_BLOCK, len(ids)) - 1])) for first in range(0, len(ids), DOCUMENTS_PER_BLOCK)
    )
    blocks = (_Block(number, first, last, numbers[first : last + 1]) for number, (first, last) in enumerate(bounds))
    for _ in run(partial(_partition_block, tables, work, texts), blocks):
        pass
    if texts:
        texts.keep_only(_TITLES, [_name_titles(number) for number in range(-(-len(ids) // DOCUMENTS_PER_BLOCK))])


class _Block(NamedTuple):
    """The recordings of a range of ids, and their documents, by id from `first` on."""

    number: int
    first: int
    last: int
    documents: NDArray[np.uint32]


def _name_titles(number: int) -> str:
    """Return the name under which the titles of a block are remembered."""
    return f"{_TITLES}-{number:06d}"


def _partition_block(tables: Mapping[str, Path], work: Path, texts: TextMemory | None, block: _Block) -> None:
    recall = partial(texts.recall, _name_titles(block.number)) if texts else read_anew
    found = read_names(tables, block.first, block.last, recall)
    documents = block.documents[found["recording_id"].to_numpy() - block.first]
    names = found.select(pl.Series("document", documents), "artists", "title", "sounds")
    for (part,), rows in names.group_by(pl.col("document") // DOCUMENTS_PER_BLOCK, maintain_order=True):
        with write_aside(work / f"names-{part:06d}-{block.number:06d}.arrow") as pending:
            rows.write_ipc(pending)


class _Words(NamedTuple):
    """The words of the names of a document range: they are counted before they can be paired."""

    lists: pl.DataFrame
    """document, list: the list of artists of each document."""
    artists: pl.DataFrame
    """list, place, role, word."""
    titles: pl.DataFrame
    """document, part, word."""
    composers: pl.DataFrame
    """document, word."""
    main_artists: pl.DataFrame
    """list, key."""

    def write(self, work: Path, part: int) -> None:
        for name, rows in self._asdict().items():
            rows.write_ipc(work / f"words-{part:06d}-{name}.arrow")

    @classmethod
    def read(cls, work: Path, part: int) -> Self:
        return cls(*(pl.read_ipc(work / f"words-{part:06d}-{name}.arrow") for name in cls._fields))


def _split_words(names: pl.DataFrame) -> _Words:
    # Many documents share a list of artists, so each list is split once.
    lists = names.select(pl.col("artists").unique()).with_row_index("list")
    of_document = names.select("document", "artists").join(lists, on="artists").select("document", "list")
    main_artists = split_artists(lists, "artists").filter(role=0).select("list", "key")
    composers = build_composers(select_titles(names).select("document", "key"), "key")
    return _Words(of_document, _split_artist_words(lists), _split_title_words(names), composers, main_artists)


def _count_words(names: _Names) -> pl.DataFrame:
    """Step 3: write the words of each range, count them, and rank all words as `_rank_words` does."""
    counts = pl.DataFrame(schema={"word": pl.String, "count": pl.UInt32, "title_count": pl.UInt32})
    waiting: list[pl.DataFrame] = []
    for part, block in enumerate(names.read()):
        words = _split_words(block)
        words.write(names.work, part)
        # A list counts as often as it occurs.
        credited = words.artists.join(words.lists.group_by("list").agg(count=pl.len()), on="list")
        waiting += [
            words.composers.group_by("word").agg(pl.len().alias("count"), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            credited.group_by("word").agg(pl.col("count").sum(), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            words.titles.group_by("word").agg(pl.len().alias("count"), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            split_titles(block).group_by("word").agg(pl.lit(0, dtype=pl.UInt32).alias("count"), pl.len().alias("title_count")),
        ]
        # Words are added up only when as many wait as are known: after each range it would take ranges times words.
        if part == names.ranges - 1 or sum(found.height for found in waiting) > counts.height:
            counts = pl.concat([counts, *waiting]).group_by("word").agg(pl.col("count", "title_count").sum())
            waiting.clear()
    return _rank_words(counts)


def _rank_words(counts: pl.DataFrame) -> pl.DataFrame:
    """Add rarity, artist_hash, title_hash and number to all words, in the order of the vocabulary; number = position."""
    # `rarity` is a total order, ties by text. Otherwise the rarest words of a name, and so the index, would depend on the order of rows.
    counts = sort_words(counts.sort("count", "word").with_row_index("rarity"))
    hashes = {
        name: pl.Series(np.fromiter(map(hashed, counts["word"]), np.uint64, counts.height))
        for name, hashed in (("artist_hash", hash_artist_word), ("title_hash", hash_title_word))
    }
    return counts.with_columns(**hashes).with_row_index("number")


def _split_artist_words(names: pl.DataFrame) -> pl.DataFrame:
    """Replace `artists` by place, role, word: the distinct words of each artist, and initials and sounds at places apart."""
    artists = split_artists(names, "artists")
    # `Marvin Gaye & Tammi Terrell` may be one name. Each half gets a budget of its own.
    halves = artists.with_columns(pl.col("key").str.split(" and ")).with_columns(half=pl.int_ranges(pl.col("key").list.len()))
    spelled = split_word_column(halves.explode("key", "half", empty_as_null=False), "key")
    spelled = spelled.with_columns(place=pl.col("place") + _PLACES_APART * (2 + pl.col("half").clip(upper_bound=9))).drop("half")
    extra = [
        found.with_columns(place=pl.col("place") + _PLACES_APART * apart)
        for apart, found in enumerate((build_initials(artists, "key"), build_sounds(artists, "key")))
    ]
    return pl.concat([spelled, *(found.select(spelled.columns) for found in extra)])


def _split_title_words(names: pl.DataFrame) -> pl.DataFrame:
    """Return [document, part, word]: the distinct words of each title and of its other titles, and the sounds of those in other scripts."""
    spelled = split_word_column(select_titles(names), "key")
    sounds = names.select("document", word="sounds").explode("word", empty_as_null=False)
    return pl.concat([spelled, sounds.with_columns(part=pl.lit(_SOUND_PART, pl.UInt32)).select(spelled.columns)])


def _count_partitions(documents: int) -> int:
    """Return the number of hash ranges, a power of two."""
    return 1 << max(0, (documents * _PAIRS_PER_DOCUMENT // PAIRS_PER_PARTITION)).bit_length()


def _partition_pairs(
    counts: pl.DataFrame, names: _Names, partitions: int, popularity: NDArray[np.float32], chosen: NDArray[np.bool_] | None = None
) -> NDArray[np.uint64]:
    """Step 4: write pairs-<partition>.bin with (hash, document) as uint64 each. Return a digest of what is indexed of each document.

    With `chosen`, only these documents are paired, and only their digests count.
    """
    digests = mix_bits(popularity.view(np.uint32).astype(np.uint64))
    # With one partition the shift would be 64 bits, which is undefined for 64-bit numbers. Hence the case apart below.
    shift = np.uint64(HASH_BITS - partitions.bit_length() + 1)
    for part, block in enumerate(names.read(chosen)):
        digests[block["document"].to_numpy()] += block.select(hash_columns(("artists", "title"))).to_series().to_numpy()
        for hashes, documents in _build_pairs(block, _Words.read(names.work, part), counts):
            np.add.at(digests, documents, mix_bits(hashes))
            partition = (hashes >> shift).astype(np.uint16) if partitions > 1 else np.zeros(len(hashes), np.uint16)
            order = np.argsort(partition, kind="stable")
            rows = np.column_stack([hashes, documents])[order]
            ends = np.searchsorted(partition[order], np.arange(partitions), side="right")
            for number, (first, last) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
                if last > first:
                    with (names.work / f"pairs-{number:06d}.bin").open("ab") as file:
                        file.write(rows[first:last].data)
    return digests


def _build_pairs(names: pl.DataFrame, found: _Words, counts: pl.DataFrame) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    words = counts.select("word", "rarity", "artist_hash", "title_hash")
    credited = _select_rarest(found.artists.join(words, on="word"), ARTIST_WORDS, "list", "place")
    artists = found.lists.join(credited, on="list")
    titles = _select_rarest(found.titles.join(words, on="word"), TITLE_WORDS, "document", "part")
    yield _combine_words(artists.filter(role=0), titles)
    yield _combine_words(found.composers.join(words, on="word"), titles)
    yield _combine_words(artists.filter(pl.col("role") > 0), titles.filter(pl.col("rank") < TITLE_WORDS_BESIDE_FEATURED))
    yield _pair_whole_names(_hash_whole_names(select_titles(names), hash_title_word), hash_artist_word(ANY))
    # Each list is hashed once, not each of its documents.
    credited_names = found.lists.join(_hash_whole_names(found.main_artists, hash_artist_word), on="list")
    yield _pair_whole_names(credited_names, hash_title_word(ANY))


def _hash_whole_names(names: pl.DataFrame, hash_word: Callable[[str], int]) -> pl.DataFrame:
    keys = build_whole_keys(names["key"])
    return names.with_columns(hash=pl.Series(np.fromiter(map(hash_word, keys), np.uint64, len(keys))))


def _pair_whole_names(names: pl.DataFrame, other: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Pair the hash of each whole name with the word ANY, whose hash on the other side is `other`."""
    return names["hash"].to_numpy() ^ np.uint64(other), names["document"].cast(pl.UInt64).to_numpy()


def _select_rarest(found: pl.DataFrame, budget: int, *name: str) -> pl.DataFrame:
    """Select the `budget` rarest words of each `name`, with their rank in it, 0 for the rarest."""
    ordered = found.sort(*name, "rarity")
    ranked = ordered.with_columns(rank=pl.int_range(pl.len()).over(name, order_by=None))
    return ranked.filter(pl.col("rank") < budget)


def _combine_words(artist_words: pl.DataFrame, title_words: pl.DataFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    both = artist_words.select("document", "artist_hash").join(title_words.select("document", "title_hash"), on="document")
    return both["artist_hash"].to_numpy() ^ both["title_hash"].to_numpy(), both["document"].cast(pl.UInt64).to_numpy()
