"""The build of the token-pair index from the tables of a snapshot, in buckets. The words of all names are held whole, names are not.

1. Number documents by popularity: 20 bytes a recording for a moment.
2. Build name keys in blocks of ids and partition them into files by document range.
3. Write the lists of artists (credit_build.py).
4. For each range, split names into words, and count these.
5. For each range, write titles as ranks of words.
6. For each range, pair each document's rarest words and partition the pairs into files by hash range.
7. For each hash range, sort, cap and write the pairs.

layout.py specifies the files.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, write_array
from catalog_store.folder_listing import list_folder
from catalog_store.job_runner import run_in_turn
from catalog_store.ranked_ids import number_ids, rank_by_popularity
from catalog_store.remembered_texts import read_anew
from catalog_store.search.credit_build import write_credits
from catalog_store.search.credits import split_artists
from catalog_store.search.documents import read_names
from catalog_store.search.extra_words import build_composers, build_initials, build_sounds
from catalog_store.search.index_words import split_word_column
from catalog_store.search.layout import (
    FIELD_SEPARATOR,
    FORMAT_FILE,
    FORMAT_VERSION,
    HASH_BITS,
    POSTINGS_CAP,
    TAG_BITS,
    choose_bucket_bits,
    choose_unsigned,
    hash_artist_word,
    hash_title_word,
)
from catalog_store.search.titles import encode_ranks, split_titles
from catalog_store.search.vocabulary import sort_words, write_vocabulary
from catalog_store.search.whole_names import ANY, build_whole_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.job_runner import JobRunner
    from catalog_store.remembered_texts import TextMemory

DOCUMENTS_PER_BLOCK = 200_000
"""Documents whose names are keyed and paired at once: about 300 MB."""
PAIRS_PER_PARTITION = 8_000_000
"""Pairs sorted at once: 64 MB of keys."""
ARTIST_WORDS, TITLE_WORDS, TITLE_WORDS_BESIDE_FEATURED = 2, 5, 2
"""Rarest words kept of each artist and of the title. Each artist has a budget of its own. With a shared budget, 30 % of the queries by the
second of several artists missed at 1 M recordings, because the other artist's words were rarer."""
_TITLES = "search-titles"
_PLACES_APART = 1_000_000
"""Initials and sounds of an artist count as further artists of the list, at places above all others."""
_PAIRS_PER_DOCUMENT = 5
"""An estimate, which sizes partitions before the pairs are counted."""


def build_search(tables: Mapping[str, Path], folder: Path, run: JobRunner = run_in_turn, texts: TextMemory | None = None) -> None:
    """Write all files of the index into the new folder `folder`.

    `run` builds the keys of blocks of names. `texts` remembers the keys of titles for the next build.
    """
    folder.mkdir()
    work = folder / ".parts"
    work.mkdir()
    documents = _number_documents(tables, folder, work, run, texts)
    # Division rounded up. At least one range, so an empty catalog writes valid empty files.
    ranges = max(1, -(-documents // DOCUMENTS_PER_BLOCK))
    # Names are only known at the end. The size of the uncompressed files bounds their bytes and chooses the width of the starts.
    size_at_most = sum(file.stat().st_size for file in list_folder(work, "names-*"))
    write_credits(folder, work, lambda: (_read_names(work, part)["artists"] for part in range(ranges)), size_at_most)
    counts = _count_words(work, ranges)
    _write_titles(folder, work, ranges, counts)
    partitions = _count_partitions(documents)
    entries = _partition_pairs(counts, work, ranges, partitions)
    # A bucket must not span two partitions, so there are at least as many buckets as partitions.
    bits = max(choose_bucket_bits(entries), partitions.bit_length() - 1)
    _write_pairs(folder, work, partitions, bits, documents)
    write_vocabulary(folder, counts)
    shutil.rmtree(work)
    content = {"format_version": FORMAT_VERSION, "documents": documents, "bucket_bits": bits}
    (folder / FORMAT_FILE).write_text(json.dumps(content) + "\n")


def _number_documents(tables: Mapping[str, Path], folder: Path, work: Path, run: JobRunner, texts: TextMemory | None) -> int:
    """Steps 1 and 2: write ids.npy and popularity.npy, and the names of all documents into `work`; return the number of documents."""
    ids, popularity = rank_by_popularity(tables)
    write_array(folder / "ids.npy", ids.astype(choose_unsigned(int(ids.max(initial=0))), copy=False))
    write_array(folder / "popularity.npy", popularity)
    del popularity
    numbers = number_ids(ids)
    # In place: the order by popularity is on disk now.
    ids.sort()
    _partition_names(tables, ids, numbers, work, run, texts)
    return len(ids)


def _partition_names(
    tables: Mapping[str, Path],
    ids: NDArray[np.unsignedinteger],
    numbers: NDArray[np.uint32],
    work: Path,
    run: JobRunner,
    texts: TextMemory | None,
) -> None:
    """Write names-<range>-<block>.arrow with [document, artists, title, sounds]. `ids` ascend; `numbers` are documents by id."""
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
        rows.write_ipc(work / f"names-{part:06d}-{block.number:06d}.arrow")


def _read_names(work: Path, part: int) -> pl.DataFrame:
    """Read all names of one document range, in document order."""
    files = list_folder(work, f"names-{part:06d}-*.arrow")
    return pl.concat([pl.read_ipc(file) for file in files]).sort("document") if files else _NO_NAMES


_NO_NAMES = pl.DataFrame(schema={"document": pl.UInt32, "artists": pl.String, "title": pl.String, "sounds": pl.List(pl.String)})


class _Words(NamedTuple):
    """The words of the names of a document range: they are counted before they can be paired."""

    lists: pl.DataFrame
    """document, list: the list of artists of each document."""
    artists: pl.DataFrame
    """list, place, is_featured, word."""
    titles: pl.DataFrame
    """document, word, is_sound."""
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
    main_artists = split_artists(lists, "artists").filter(~pl.col("is_featured")).select("list", "key")
    composers = build_composers(_select_cores(names), "key")
    return _Words(of_document, _split_artist_words(lists), _split_title_words(names), composers, main_artists)


def _count_words(work: Path, ranges: int) -> pl.DataFrame:
    """Step 4: write the words of each range into `work`, and count them.

    Return [rarity, word, count, title_count, artist_hash, title_hash, number] of all words in the order of the vocabulary; number =
    position.
    """
    counts = pl.DataFrame(schema={"word": pl.String, "count": pl.UInt32, "title_count": pl.UInt32})
    waiting: list[pl.DataFrame] = []
    for part in range(ranges):
        names = _read_names(work, part)
        words = _split_words(names)
        words.write(work, part)
        # A list counts as often as it occurs.
        credited = words.artists.join(words.lists.group_by("list").agg(count=pl.len()), on="list")
        waiting += [
            words.composers.group_by("word").agg(pl.len().alias("count"), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            credited.group_by("word").agg(pl.col("count").sum(), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            words.titles.group_by("word").agg(pl.len().alias("count"), pl.lit(0, dtype=pl.UInt32).alias("title_count")),
            split_titles(names).group_by("word").agg(pl.lit(0, dtype=pl.UInt32).alias("count"), pl.len().alias("title_count")),
        ]
        # Words are added up only when as many wait as are known: after each range it would take ranges times words.
        if part == ranges - 1 or sum(found.height for found in waiting) > counts.height:
            counts = pl.concat([counts, *waiting]).group_by("word").agg(pl.col("count", "title_count").sum())
            waiting.clear()
    # `rarity` is a total order, ties by text. Otherwise the rarest words of a name, and so the index, would depend on the order of rows.
    counts = sort_words(counts.sort("count", "word").with_row_index("rarity"))
    hashes = {
        name: pl.Series(np.fromiter(map(hashed, counts["word"]), np.uint64, counts.height))
        for name, hashed in (("artist_hash", hash_artist_word), ("title_hash", hash_title_word))
    }
    return counts.with_columns(**hashes).with_row_index("number")


def _write_titles(folder: Path, work: Path, ranges: int, counts: pl.DataFrame) -> None:
    """Step 5: write titles as ranks of words."""
    ranked = counts.filter(pl.col("title_count") > 0).sort("title_count", "word", descending=[True, False]).with_row_index("rank")
    write_array(folder / "title_ranked.npy", ranked["number"].to_numpy())
    # Each word takes one unit or two.
    units_at_most = 2 * int(counts["title_count"].sum())
    with (
        ArrayWriter(folder / "title_units.npy", np.uint16) as units,
        ArrayWriter(folder / "title_starts.npy", choose_unsigned(units_at_most)) as starts,
    ):
        for part in range(ranges):
            names = _read_names(work, part)
            spelled = split_titles(names).join(ranked.select("word", "rank"), on="word", how="left", maintain_order="left")
            encoded, sizes = encode_ranks(spelled["rank"].to_numpy())
            per_document = np.bincount(spelled["document"].to_numpy() - part * DOCUMENTS_PER_BLOCK, weights=sizes, minlength=names.height)
            # `units.length` still counts the units of earlier ranges only: starts are written before this range's units.
            starts.append(units.length + np.cumsum(per_document.astype(np.uint64)) - per_document.astype(np.uint64))
            units.append(encoded)
        starts.append(np.array([units.length], dtype=np.uint64))


def _split_artist_words(names: pl.DataFrame) -> pl.DataFrame:
    """Replace `artists` by place, is_featured, word: the distinct words of each artist, and initials and sounds at places apart."""
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
    """Return [document, word, is_sound]: the distinct words of each title, and the sound of a title in another script."""
    spelled = split_word_column(_select_cores(names), "key").with_columns(is_sound=pl.lit(value=False))
    sounds = names.select("document", word="sounds").explode("word", empty_as_null=False)
    return pl.concat([spelled, sounds.with_columns(is_sound=pl.lit(value=True)).select(spelled.columns)])


def _select_cores(names: pl.DataFrame) -> pl.DataFrame:
    return names.select("document", key=pl.col("title").str.split_exact(FIELD_SEPARATOR, 1).struct.field("field_0"))


def _count_partitions(documents: int) -> int:
    """Return the number of hash ranges, a power of two."""
    return 1 << max(0, (documents * _PAIRS_PER_DOCUMENT // PAIRS_PER_PARTITION)).bit_length()


def _partition_pairs(counts: pl.DataFrame, work: Path, ranges: int, partitions: int) -> int:
    """Step 6: write pairs-<partition>.bin with (hash, document) as uint64 each. Return the number of pairs."""
    entries = 0
    # With one partition the shift would be 64 bits, which is undefined for 64-bit numbers. Hence the case apart below.
    shift = np.uint64(HASH_BITS - partitions.bit_length() + 1)
    for part in range(ranges):
        for hashes, documents in _build_pairs(_read_names(work, part), _Words.read(work, part), counts):
            entries += len(hashes)
            partition = (hashes >> shift).astype(np.uint16) if partitions > 1 else np.zeros(len(hashes), np.uint16)
            order = np.argsort(partition, kind="stable")
            rows = np.column_stack([hashes, documents])[order]
            ends = np.searchsorted(partition[order], np.arange(partitions), side="right")
            for number, (first, last) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
                if last > first:
                    with (work / f"pairs-{number:06d}.bin").open("ab") as file:
                        file.write(rows[first:last].data)
    return entries


def _build_pairs(names: pl.DataFrame, found: _Words, counts: pl.DataFrame) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    words = counts.select("word", "rarity", "artist_hash", "title_hash")
    credited = _select_rarest(found.artists.join(words, on="word"), ARTIST_WORDS, "list", "place")
    artists = found.lists.join(credited, on="list")
    titles = _select_rarest(found.titles.join(words, on="word"), TITLE_WORDS, "document", "is_sound")
    yield _combine_words(artists.filter(~pl.col("is_featured")), titles)
    yield _combine_words(found.composers.join(words, on="word"), titles)
    yield _combine_words(artists.filter("is_featured"), titles.filter(pl.col("rank") < TITLE_WORDS_BESIDE_FEATURED))
    yield _pair_whole_names(_select_cores(names), hash_title_word, hash_artist_word(ANY))
    credited_names = found.lists.join(found.main_artists, on="list").select("document", "key")
    yield _pair_whole_names(credited_names, hash_artist_word, hash_title_word(ANY))


def _pair_whole_names(names: pl.DataFrame, hash_word: Callable[[str], int], other: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Pair the key of each name with the word ANY, whose hash on the other side is `other`."""
    keys = build_whole_keys(names["key"])
    hashes = np.fromiter(map(hash_word, keys), np.uint64, len(keys))
    return hashes ^ np.uint64(other), names["document"].cast(pl.UInt64).to_numpy()


def _select_rarest(found: pl.DataFrame, budget: int, *name: str) -> pl.DataFrame:
    """Select the `budget` rarest words of each `name`, with their rank in it, 0 for the rarest."""
    ordered = found.sort(*name, "rarity")
    ranked = ordered.with_columns(rank=pl.int_range(pl.len()).over(name, order_by=None))
    return ranked.filter(pl.col("rank") < budget)


def _combine_words(artist_words: pl.DataFrame, title_words: pl.DataFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    both = artist_words.select("document", "artist_hash").join(title_words.select("document", "title_hash"), on="document")
    return both["artist_hash"].to_numpy() ^ both["title_hash"].to_numpy(), both["document"].cast(pl.UInt64).to_numpy()


def _write_pairs(folder: Path, work: Path, partitions: int, bits: int, documents: int) -> None:
    """Step 7: sort each partition by one key, which packs the rest of bucket and tag with the document.

    All pairs of a partition share its top bits, so the key leaves them out.
    """
    known_bits = partitions.bit_length() - 1
    document_bits = max(1, (documents - 1).bit_length()) if documents else 1
    kept_bits = bits + TAG_BITS - known_bits
    if kept_bits + document_bits > HASH_BITS:
        raise ValueError(f"{documents} documents in {partitions} partitions do not fit the 64-bit sort key: lower PAIRS_PER_PARTITION")
    buckets = 1 << (bits - known_bits)
    with (
        # The width is chosen before repetitions are dropped: 16 pairs a document are three times _PAIRS_PER_DOCUMENT.
        ArrayWriter(folder / "pair_starts.npy", np.uint64 if documents * 16 >= 1 << 32 else np.uint32) as starts,
        ArrayWriter(folder / "pair_tags.npy", np.uint16) as tags,
        ArrayWriter(folder / "pair_documents.npy", np.uint32) as posted,
    ):
        for number in range(partitions):
            path = work / f"pairs-{number:06d}.bin"
            rows = np.fromfile(path, dtype=np.uint64).reshape(-1, 2) if path.exists() else np.empty((0, 2), np.uint64)
            # Shifting left drops the bits that the partition already says.
            kept = (rows[:, 0] << np.uint64(known_bits)) >> np.uint64(HASH_BITS - kept_bits)
            keys = np.sort((kept << np.uint64(document_bits)) | rows[:, 1])
            del rows, kept
            keys = _cap_postings(keys, document_bits)
            pairs = keys >> np.uint64(document_bits)
            # Buckets without pairs begin where the next bucket does.
            first_of = np.searchsorted(pairs >> np.uint64(TAG_BITS), np.arange(buckets, dtype=np.uint64), side="left")
            starts.append(first_of.astype(np.uint64) + np.uint64(posted.length))
            tags.append((pairs & np.uint64(0xFFFF)).astype(np.uint16))
            posted.append((keys & np.uint64((1 << document_bits) - 1)).astype(np.uint32))
        starts.append(np.array([posted.length], dtype=np.uint64))


def _cap_postings(keys: NDArray[np.uint64], document_bits: int) -> NDArray[np.uint64]:
    """Drop repetitions from sorted keys and keep at most POSTINGS_CAP documents per pair."""
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    if len(keys) <= POSTINGS_CAP:
        return keys
    pairs = keys >> np.uint64(document_bits)
    # Keys are sorted, so an entry is beyond the cap exactly when the entry POSTINGS_CAP places before it has the same pair. The first
    # entries of a pair are its most popular documents.
    kept = np.concatenate([np.ones(POSTINGS_CAP, dtype=bool), pairs[POSTINGS_CAP:] != pairs[:-POSTINGS_CAP]])
    capped: NDArray[np.uint64] = keys[kept]
    return capped
