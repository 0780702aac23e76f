"""The index from keys to recordings: hash buckets as plain arrays, a quarter of the size of B-tree tables of the same keys.

`serving/keys/`, .npy arrays as in catalog_store/search/layout.py, K entries in 2^B buckets, one entry per key and recording:

  starts.npy   uint32 (uint64 when needed) [2^B + 1]  entries of bucket b are starts[b]..starts[b+1]; b: top B bits of the key's hash
  tags.npy     uint16 [K]                             the next 16 bits, ascending inside a bucket
  ids.npy      uint32 (uint64 when needed) [K]        recording ids; of one key the most popular first, ties by id

Two keys may share bucket and tag, so the results are candidates. The caller compares the key with the track's own data. schema.py holds the
format version. lookup_keys.py defines keys.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.array_files import ArrayWriter, map_array, write_array
from catalog_store.ranked_ids import number_ids, rank_by_popularity
from catalog_store.search.layout import choose_unsigned
from catalog_store.serving.body_file import BULK_MINIMUM
from catalog_store.serving.lookup_keys import ISRC, KEY_SPACES, hash_key
from catalog_store.tables.files import count_rows, list_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ENTRIES_PER_BUCKET = 12
"""The largest average number of entries in a bucket."""
_HASH_BITS, _TAG_BITS = 64, 16
_TAG_MASK = (1 << _TAG_BITS) - 1
# Entries sorted at once: 12 bytes each, so a spill takes 48 MB.
ROWS_PER_SPILL = 4_000_000
_ROWS_PER_BATCH = 500_000
_ENTRY = np.dtype([("hash", "<u8"), ("rank", "<u4")])


class KeyIndex:
    """The keys of one snapshot."""

    def __init__(self, folder: Path) -> None:
        """Open the arrays in `folder`."""
        self._arrays = starts, tags, ids = tuple(map_array(folder / f"{name}.npy") for name in ("starts", "tags", "ids"))
        # Memory views, because reading one number of a NumPy array takes three times as long.
        self._starts, self._tags, self._ids = starts.data, tags.data, ids.data
        # There is one start more than buckets, which the index of the last bucket's end needs.
        self._bucket_shift = _HASH_BITS - (len(self._starts) - 1).bit_length() + 1
        self._tag_shift = self._bucket_shift - _TAG_BITS

    def find_candidates(self, hashes: Sequence[int]) -> list[list[int]]:
        """Return for each hash the recording ids whose key may have it, most popular first."""
        # For a few hashes the array operations cost more than they save.
        if len(hashes) >= BULK_MINIMUM:
            self._prefetch(hashes)
        starts, tags, ids, bucket_shift, tag_shift = self._starts, self._tags, self._ids, self._bucket_shift, self._tag_shift
        every = []
        for hashed in hashes:
            bucket, tag = hashed >> bucket_shift, hashed >> tag_shift & _TAG_MASK
            end = starts[bucket + 1]
            # Tags ascend inside a bucket, so the search needs no hash comparison per entry.
            place = bisect_left(tags, tag, starts[bucket], end)
            found = []
            while place < end and tags[place] == tag:
                found.append(ids[place])
                place += 1
            every.append(found)
        return every

    def _prefetch(self, hashes: Sequence[int]) -> None:
        """Read the entries of many hashes at once, so that the waits for memory overlap. The result is not used.

        Without it, waits for memory take half the time of `find_candidates` at 10 million recordings: 167 us for a hundred hashes
        instead of 86.
        """
        starts, tags, ids = self._arrays
        if len(tags):
            firsts = starts[np.array(hashes, dtype=np.uint64) >> np.uint64(self._bucket_shift)]
            tags.take(firsts, mode="clip")
            ids.take(firsts, mode="clip")


def build_keys(tables: Mapping[str, Path], folder: Path) -> None:
    """Write the arrays into the new folder `folder`. Memory is bounded by one spill and a few id-sized columns."""
    folder.mkdir()
    ids, _ = rank_by_popularity(tables)
    ranks = number_ids(ids)
    entries = count_rows(tables["recording_isrc"]) + count_rows(tables["platform_link"])
    bits = max(1, (max(1, entries // ENTRIES_PER_BUCKET) - 1).bit_length())
    spills = [folder / f"{number:05d}.spill" for number in range(1 << max(0, (entries // ROWS_PER_SPILL).bit_length()))]
    # Spills divide the hashes by their top bits, so sorted spills one after the other are sorted as a whole.
    spill_shift = np.uint64(_HASH_BITS - (len(spills) - 1).bit_length())
    for hashes, recordings in _hash_tables(tables):
        block = np.empty(len(hashes), dtype=_ENTRY)
        block["hash"], block["rank"] = hashes, ranks[recordings]
        if len(spills) == 1:
            _append(spills[0], block)
            continue
        number = (hashes >> spill_shift).astype(np.int64)
        block = block[np.argsort(number, kind="stable")]
        ends = np.cumsum(np.bincount(number, minlength=len(spills)))
        for spill, start, end in zip(spills, [0, *ends[:-1]], ends, strict=True):
            _append(spill, block[start:end])
    _write_arrays(spills, folder, bits, ids)


def _write_arrays(spills: list[Path], folder: Path, bits: int, ids: NDArray[np.unsignedinteger]) -> None:
    sizes = np.zeros(1 << bits, dtype=np.uint32)
    with ArrayWriter(folder / "tags.npy", np.uint16) as tags, ArrayWriter(folder / "ids.npy", ids.dtype) as found:
        for spill in spills:
            if not spill.exists():
                continue
            entries = np.fromfile(spill, dtype=_ENTRY)
            spill.unlink()
            # `lexsort` sorts by its last key first: by hash, then by popularity. Entries of equal keys come most popular first.
            entries = entries[np.lexsort((entries["rank"], entries["hash"]))]
            buckets = (entries["hash"] >> np.uint64(_HASH_BITS - bits)).astype(np.int64)
            # A spill holds whole buckets, and only its range of them.
            sizes[buckets[0] : buckets[-1] + 1] += np.bincount(buckets - buckets[0]).astype(np.uint32)
            tags.append((entries["hash"] >> np.uint64(_HASH_BITS - bits - _TAG_BITS) & np.uint64(_TAG_MASK)).astype(np.uint16))
            found.append(ids[entries["rank"]])
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        write_array(folder / "starts.npy", starts.astype(choose_unsigned(found.length)))


def _append(spill: Path, entries: NDArray[np.void]) -> None:
    if len(entries):
        with spill.open("ab") as file:
            file.write(entries.data)


def _hash_tables(tables: Mapping[str, Path]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Yield (hashes, recording ids) of all keys, block by block."""
    for rows in _read_batches(tables["recording_isrc"], "isrc", "recording_id"):
        yield _hash_keys(KEY_SPACES.index(ISRC), rows["isrc"]), rows["recording_id"].to_numpy()
    for rows in _read_batches(tables["platform_link"], "source", "external_id", "recording_id"):
        for (source,), alike in rows.partition_by("source", as_dict=True).items():
            yield _hash_keys(KEY_SPACES.index(source), alike["external_id"]), alike["recording_id"].to_numpy()


def _hash_keys(space: int, keys: pl.Series) -> NDArray[np.uint64]:
    return np.fromiter((hash_key(space, key) for key in keys), np.uint64, len(keys))


def _read_batches(table: Path, *columns: str) -> Iterator[pl.DataFrame]:
    for part in list_parts(table):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=list(columns)):
                yield pl.DataFrame(batch)
