"""The build of the token-pair index from the tables of a snapshot, in buckets.

Memory holds the words of all names, and at most 17 bytes a recording. Columns of all documents are in files, and a step reads those that it
needs.

1. Number all recordings by popularity: 16 bytes a recording for a moment.
2. Build name keys in blocks of ids and partition them into files by document range (name_files.py).
3. For each range, split names into words, and count these.
4. For each range, pair each document's rarest words and partition the pairs into files by hash range.
5. Compare each document with the base of the live snapshot (base_documents.py).
   At night, steps 2 to 4 read only documents that may differ from it (carried_words.py).
6. Write a delta of those that differ, or all documents as a new base (layer_build.py): artists, titles and pairs.

layout.py specifies the files.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl

from catalog_store.array_files import write_array
from catalog_store.folder_listing import list_folder
from catalog_store.job_runner import run_in_turn
from catalog_store.layered_order import ABSENT
from catalog_store.ranked_ids import rank_by_popularity
from catalog_store.record_keys.numbers import hash_columns, mix_bits
from catalog_store.search.base_documents import SEARCH_DIGESTS, SEARCH_LISTS, BaseDocuments
from catalog_store.search.carried_words import CarriedWords, make_seed, write_words
from catalog_store.search.layer_build import Layer, write_artists, write_documents, write_pairs, write_titles
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
from catalog_store.search.name_files import NameFiles
from catalog_store.search.name_words import NameWords, WordRanks, add_counts, select_rarest
from catalog_store.search.vocabulary import write_vocabulary
from catalog_store.search.whole_names import ANY, build_whole_keys
from catalog_store.snapshot import SCRATCH_FOLDER

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
_PAIRS_PER_DOCUMENT = 12
"""An estimate, which sizes partitions before the pairs are counted: 11.6 at 734,040 recordings."""


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
    work = folder / SCRATCH_FOLDER
    work.mkdir()
    digests = digests or work
    (folder / DELTA_FOLDER).mkdir()
    order = _Order.write(work, tables)
    documents = order.documents
    names = NameFiles(tables, order.read("ids"), work, DOCUMENTS_PER_BLOCK, run, texts)
    ranges, partitions = names.ranges, _count_partitions(documents)
    # A bucket must not span two partitions, so there are at least as many buckets as partitions.
    bits = max(choose_bucket_bits(documents), partitions.bit_length() - 1)
    base = BaseDocuments.open(previous, FORMAT_VERSION)
    carried = CarriedWords.open(base.snapshot) if base else None
    seed = make_seed()
    order.keep("names", names.digest(seed) if carried else names.build_all(seed))
    ranks, difference, carried = _index_documents(base, carried, names, order, partitions, bits)
    del names
    base_numbers = difference.base_numbers if difference else np.arange(documents, dtype=np.uint32)
    if carried:
        carried.link(digests)
    else:
        in_base = len(difference.dead) if difference else documents
        # All words were counted, so the scratch folder has them.
        write_words(digests, in_base, base_numbers, order.read("names"), ranks, (NameWords.read(work, part) for part in range(ranges)))
    if base and difference:
        base.link(folder, digests)
        write_array(folder / "dead.npy", np.packbits(difference.dead, bitorder="little"))
        numbers, places = difference.delta_numbers, difference.places
        known_lists = base.number_lists()
    else:
        order.move("digests", digests / SEARCH_DIGESTS)
        write_array(folder / "dead.npy", np.empty(0, dtype=np.uint8))
        whole = Layer(folder, work, ranges, base_numbers)
        write_documents(whole, order.read("ids"), order.read("popularity"))
        write_array(digests / SEARCH_LISTS, write_artists(whole))
        write_titles(whole, ranks)
        write_pairs(whole, partitions, bits, bits, TAG_BITS, BASE_CAP, digests)
        numbers, places = np.full(documents, ABSENT, dtype=np.uint32), np.empty(0, dtype=np.uint32)
        known_lists = None
    delta = Layer(folder / DELTA_FOLDER, work, ranges, numbers)
    # The tags of the delta must reach as far as those of the base.
    delta_bits = max(choose_bucket_bits(delta.documents), bits + TAG_BITS - DELTA_TAG_BITS, partitions.bit_length() - 1)
    write_array(delta.folder / "places.npy", places)
    write_documents(delta, order.read("ids"), order.read("popularity"))
    write_artists(delta, known_lists)
    write_titles(delta, ranks)
    write_pairs(delta, partitions, bits, delta_bits, DELTA_TAG_BITS, POSTINGS_CAP)
    write_vocabulary(folder, ranks.words)
    shutil.rmtree(work)
    content = {"format_version": FORMAT_VERSION, "documents": documents, "bucket_bits": bits, "delta_bucket_bits": delta_bits}
    (folder / FORMAT_FILE).write_text(json.dumps(content) + "\n")


class _Order(NamedTuple):
    """Columns of all documents in their order, as files of the scratch folder `work`.

    ids         recording ids
    popularity  float32
    names       digests of the rows that names are built from
    digests     digests of all that is indexed, 8 bytes as `names`
    """

    work: Path
    documents: int

    @classmethod
    def write(cls, work: Path, tables: Mapping[str, Path]) -> Self:
        """Rank all recordings."""
        ids, popularity = rank_by_popularity(tables)
        order = cls(work, len(ids))
        order.keep("ids", ids)
        order.keep("popularity", popularity)
        return order

    def keep(self, name: str, values: NDArray[Any]) -> None:
        """Write a column."""
        write_array(self._find(name), values)

    def read(self, name: str) -> NDArray[Any]:
        """Read a column into memory."""
        found: NDArray[Any] = np.load(self._find(name))
        return found

    def move(self, name: str, target: Path) -> None:
        """Move a column to its place among the files of the index."""
        self._find(name).rename(target)

    def _find(self, name: str) -> Path:
        return self.work / f"order-{name}.npy"


def _index_documents(
    base: BaseDocuments | None, carried: CarriedWords | None, names: NameFiles, order: _Order, partitions: int, bits: int
) -> tuple[WordRanks, Difference | None, CarriedWords | None]:
    """Steps 3 to 5. Return all words, the relation to the base if it stays, and the words of the base if they stay.

    The digests of what is indexed become a column of `order`. The pairs of documents that may be written are in the scratch folder.
    """
    if base and carried:
        found = _index_changes(base, carried, names, order, partitions, bits)
        if found:
            return *found, carried
        names.build_all(0)
    ranks = _index_all(names, order, partitions)
    return ranks, base.compare(order.read("ids"), order.read("digests"), bits) if base else None, None


def _index_all(names: NameFiles, order: _Order, partitions: int) -> WordRanks:
    """Steps 3 and 4 for all documents."""
    _remove_pairs(names.work)
    ranks = WordRanks(_count_words(names))
    digests = np.zeros(order.documents, dtype=np.uint64)
    _partition_pairs(ranks, names, partitions, order.read("popularity"), digests)
    order.keep("digests", digests)
    return ranks


def _index_changes(
    base: BaseDocuments, carried: CarriedWords, names: NameFiles, order: _Order, partitions: int, bits: int
) -> tuple[WordRanks, Difference] | None:
    """Steps 3 to 5 for documents whose names, popularity or order of words differ from the base; None if a new base has to be written."""
    kept, places = base.find_kept(order.read("ids"), order.read("names"), carried.names)
    popularity = order.read("popularity")
    is_changed = np.ones(order.documents, dtype=np.bool_)
    is_changed[places[kept]] = False
    # A digest is a sum, in which the popularity is a part.
    had = np.zeros(order.documents, dtype=np.float32)
    had[places[kept]] = base.popularity[kept]
    is_ranked_anew = had != popularity
    del had
    if not base.is_small(is_changed | is_ranked_anew):
        return None
    names.build(is_changed | is_ranked_anew)
    ranks = WordRanks(carried.count(kept, (NameWords.split(block).count_words() for block in names.read(is_changed))))
    is_changed[places[carried.find_reordered(ranks.words, kept)]] = True
    is_changed |= is_ranked_anew
    if not base.is_small(is_changed):
        return None
    digests = np.zeros(order.documents, dtype=np.uint64)
    digests[places[kept]] = base.digests[kept]
    del kept, places
    _index_some(ranks, names, partitions, popularity, digests, is_changed)
    difference = base.compare(order.read("ids"), digests, bits)
    if difference is None:
        return None
    if (difference.is_new & ~is_changed).any():
        # Unchanged documents move to the delta. It is written from the words and pairs in the scratch folder, which lacks theirs.
        _remove_pairs(names.work)
        _index_some(ranks, names, partitions, popularity, digests, difference.is_new)
    order.keep("digests", digests)
    return ranks, difference


def _index_some(
    ranks: WordRanks,
    names: NameFiles,
    partitions: int,
    popularity: NDArray[np.float32],
    digests: NDArray[np.uint64],
    chosen: NDArray[np.bool_],
) -> None:
    """Step 4 for the `chosen` documents, whose names are built first. Write their digests into `digests`."""
    names.build(chosen)
    for part, block in enumerate(names.read(chosen)):
        NameWords.split(block).write(names.work, part)
    _partition_pairs(ranks, names, partitions, popularity, digests, chosen)


def _remove_pairs(work: Path) -> None:
    for file in list_folder(work, "pairs-*"):
        file.unlink()


def _count_words(names: NameFiles) -> pl.DataFrame:
    """Step 3: write the words of each range, and count them."""
    counts = pl.DataFrame(schema={"word": pl.String, "count": pl.UInt32, "title_count": pl.UInt32})
    waiting: list[pl.DataFrame] = []
    for part, block in enumerate(names.read()):
        words = NameWords.split(block)
        words.write(names.work, part)
        waiting.append(words.count_words())
        # Words are added up only when as many wait as are known: after each range it would take ranges times words.
        if part == names.ranges - 1 or sum(found.height for found in waiting) > counts.height:
            counts = add_counts([counts, *waiting])
            waiting.clear()
    return counts


def _count_partitions(documents: int) -> int:
    """Return the number of hash ranges, a power of two."""
    return 1 << max(0, (documents * _PAIRS_PER_DOCUMENT // PAIRS_PER_PARTITION)).bit_length()


def _partition_pairs(
    ranks: WordRanks,
    names: NameFiles,
    partitions: int,
    popularity: NDArray[np.float32],
    digests: NDArray[np.uint64],
    chosen: NDArray[np.bool_] | None = None,
) -> None:
    """Step 4: write pairs-<partition>.bin with (hash, document) as uint64 each. Fill `digests` with those of what is indexed.

    With `chosen`, only these documents are paired, and only their digests are filled in.
    """
    # With one partition the shift would be 64 bits, which is undefined for 64-bit numbers. Hence the case apart below.
    shift = np.uint64(HASH_BITS - partitions.bit_length() + 1)
    for part, block in enumerate(names.read(chosen)):
        inside = slice(part * names.size, (part + 1) * names.size)
        own = mix_bits(popularity[inside].view(np.uint32).astype(np.uint64))
        own[block["document"].to_numpy() - inside.start] += block.select(hash_columns(("artists", "title"))).to_series().to_numpy()
        for hashes, documents in _build_pairs(NameWords.read(names.work, part), ranks):
            np.add.at(own, documents - np.uint64(inside.start), mix_bits(hashes))
            rows, ends = np.column_stack([hashes, documents]), np.array([len(hashes)])
            if partitions > 1:
                partition = (hashes >> shift).astype(np.uint16)
                order = np.argsort(partition, kind="stable")
                rows, ends = rows[order], np.searchsorted(partition[order], np.arange(partitions), side="right")
            for number, (first, last) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
                if last > first:
                    with (names.work / f"pairs-{number:06d}.bin").open("ab") as file:
                        file.write(rows[first:last].data)
        digests[inside] = own if chosen is None else np.where(chosen[inside], own, digests[inside])


def _build_pairs(found: NameWords, ranks: WordRanks) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    rarities = ranks.find_rarities(found.texts)
    names, rarest, _ = select_rarest(found.artist_words, rarities, ARTIST_WORDS)
    credited = pl.DataFrame({"artist_hash": ranks.artist_hashes[rarest]}).hstack(found.artists[names])
    artists = found.lists.join(credited, on="list")
    names, rarest, rank = select_rarest(found.title_words, rarities, TITLE_WORDS)
    titles = pl.DataFrame({"title_hash": ranks.title_hashes[rarest], "rank": rank}).hstack(found.titles[names])
    composers = found.composers.select("document", artist_hash=pl.Series(ranks.artist_hashes[rarities[found.composers["code"].to_numpy()]]))
    yield _combine_words(artists.filter(role=0), titles)
    yield _combine_words(composers, titles)
    yield _combine_words(artists.filter(pl.col("role") > 0), titles.filter(pl.col("rank") < TITLE_WORDS_BESIDE_FEATURED))
    yield _pair_whole_names(_hash_whole_names(found.keys, hash_title_word), hash_artist_word(ANY))
    # Each list is hashed once, not each of its documents.
    credited_names = found.lists.join(_hash_whole_names(found.main_artists, hash_artist_word), on="list")
    yield _pair_whole_names(credited_names, hash_title_word(ANY))


def _hash_whole_names(names: pl.DataFrame, hash_word: Callable[[str], int]) -> pl.DataFrame:
    keys = build_whole_keys(names["key"])
    return names.with_columns(hash=pl.Series(np.fromiter(map(hash_word, keys), np.uint64, len(keys))))


def _pair_whole_names(names: pl.DataFrame, other: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Pair the hash of each whole name with the word ANY, whose hash on the other side is `other`."""
    return names["hash"].to_numpy() ^ np.uint64(other), names["document"].cast(pl.UInt64).to_numpy()


def _combine_words(artist_words: pl.DataFrame, title_words: pl.DataFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    both = artist_words.select("document", "artist_hash").join(title_words.select("document", "title_hash"), on="document")
    return both["artist_hash"].to_numpy() ^ both["title_hash"].to_numpy(), both["document"].cast(pl.UInt64).to_numpy()
