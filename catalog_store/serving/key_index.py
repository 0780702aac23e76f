"""The index from keys to recordings: hash buckets as plain arrays, a quarter of the size of B-tree tables of the same keys.

`serving/keys/`, .npy arrays as in catalog_store/search/layout.py, K entries in 2^B buckets, one entry per key and recording:

  starts.npy   uint32 (uint64 when needed) [2^B + 1]  entries of bucket b are starts[b]..starts[b+1]; b: top B bits of the key's hash
  tags.npy     uint16 [K]                             the next 16 bits, ascending inside a bucket
  ids.npy      uint32 (uint64 when needed) [K]        recording ids; of one key the most popular first, ties by id
  delta_starts.npy, delta_tags.npy, delta_ids.npy     the same, in fewer buckets, of the keys whose recordings or their order differ; id 0
                              for a key that none has any more. Tags are uint32: the last 32 of the B + 16 bits of bucket and tag

The first three are shared by snapshot after snapshot, as hard links, until the delta has MERGED_AT of their entries. Two keys may share
bucket and tag, so the results are candidates. The caller compares the key with the track's own data. schema.py holds the format version.
lookup_keys.py defines keys.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.array_files import ArrayWriter, map_array, release_pages, write_array
from catalog_store.published_files import has_published, link_or_copy
from catalog_store.ranked_ids import number_ids, rank_by_popularity
from catalog_store.record_keys.numbers import mix_bits
from catalog_store.search.layout import choose_unsigned
from catalog_store.serving.body_file import BULK_MINIMUM
from catalog_store.serving.lookup_keys import ISRC, hash_keys, number_key_space
from catalog_store.serving.schema import KEYS_FOLDER
from catalog_store.snapshot import SERVING_FOLDER
from catalog_store.tables.files import count_rows, list_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    _Entries = tuple[NDArray[np.uint64], NDArray[np.unsignedinteger]]
    """Bucket and tag, as one number, and the recording of each entry."""

ENTRIES_PER_BUCKET = 12
"""The largest average number of entries in a bucket."""
_DELTA_ENTRIES_PER_BUCKET = 2
MERGED_AT = 0.1
"""Entries of the delta by those of the base from which all are written as a new base."""
NOBODY = 0
_HASH_BITS, _TAG_BITS, _DELTA_TAG_BITS = 64, 16, 32
_TAG_MASK, _DELTA_MASK = (1 << _TAG_BITS) - 1, (1 << _DELTA_TAG_BITS) - 1
_BUCKETS_PER_BLOCK = 1 << 16
_BASE_FILES = ("starts.npy", "tags.npy", "ids.npy")
_FOLDER = f"{SERVING_FOLDER}/{KEYS_FOLDER}"
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
        self._delta = tuple(map_array(folder / f"delta_{name}.npy") for name in ("starts", "tags", "ids"))
        self._delta_views = tuple(array.data for array in self._delta)
        self._delta_shift = _HASH_BITS - _count_bits(len(self._delta[0]))
        self._bucket_shift = _HASH_BITS - _count_bits(len(starts))
        self._tag_shift = self._bucket_shift - _TAG_BITS

    def find_candidates(self, hashes: Sequence[int]) -> list[list[int]]:
        """Return for each hash the recording ids whose key may have it, most popular first."""
        # For a few hashes the array operations cost more than they save.
        if len(hashes) >= BULK_MINIMUM:
            self._prefetch(hashes)
        starts, tags, ids, bucket_shift, tag_shift = self._starts, self._tags, self._ids, self._bucket_shift, self._tag_shift
        (delta_starts, delta_tags, delta_ids), delta_shift = self._delta_views, self._delta_shift
        has_delta = len(delta_ids) > 0
        every = []
        for hashed in hashes:
            if has_delta:
                bucket = hashed >> delta_shift
                place, end = delta_starts[bucket], delta_starts[bucket + 1]
                # Most buckets of the delta are empty.
                if place < end:
                    tag = hashed >> tag_shift & _DELTA_MASK
                    place = bisect_left(delta_tags, tag, place, end)
                    if place < end and delta_tags[place] == tag:
                        found = []
                        while place < end and delta_tags[place] == tag:
                            found.append(delta_ids[place])
                            place += 1
                        every.append(found if found != [NOBODY] else [])
                        continue
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

    @property
    def delta_ids(self) -> NDArray[np.unsignedinteger]:
        """The recordings of the keys that differ from the base."""
        return self._delta[2]

    def check(self) -> None:
        """Raise ValueError where the arrays do not belong together."""
        for starts, tags, ids in (self._arrays, self._delta):
            if not len(tags) == len(ids) == int(starts[-1]):
                raise ValueError(f"{len(tags)} tags and {len(ids)} ids of keys, and the last bucket ends at {starts[-1]}")

    def iterate_ids(self) -> Iterator[NDArray[np.unsignedinteger]]:
        """Yield the recording of each entry that counts, block by block."""
        bits, replaced = _HASH_BITS - self._bucket_shift, np.unique(_read_groups(self._delta, self._delta_shift, self._tag_shift))
        for first in range(0, 1 << bits, _BUCKETS_PER_BLOCK):
            groups, ids = _read_buckets(self._arrays, first, min(first + _BUCKETS_PER_BLOCK, 1 << bits))
            yield ids[~np.isin(groups, replaced)]
            for array in self._arrays:
                release_pages(array)
        ids = self._delta[2]
        yield ids[ids != NOBODY]

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


def build_keys(tables: Mapping[str, Path], folder: Path, previous: Path | None = None) -> None:
    """Write the arrays into the new folder `folder`. Memory: one spill, and 16 bytes a recording.

    The arrays of the snapshot `previous` are shared as long as few keys differ from it.
    """
    folder.mkdir()
    ids = rank_by_popularity(tables)[0]
    ranks = number_ids(ids)
    entries = count_rows(tables["recording_isrc"]) + count_rows(tables["platform_link"])
    bits = choose_bits(entries, ENTRIES_PER_BUCKET)
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
    base = _open_base(previous, bits)
    delta = _find_differences(base, spills, bits, ids) if base else None
    if base and delta is not None and previous is not None:
        for name in _BASE_FILES:
            link_or_copy(previous / _FOLDER / name, folder / name)
    else:
        _write_arrays(folder, "", bits, bits, ids.dtype, (_read_spill(spill, bits, ids) for spill in spills))
        delta = np.empty(0, dtype=np.uint64), np.empty(0, dtype=ids.dtype)
    # The tags of the delta must reach as far as those of the base.
    delta_bits = max(choose_bits(len(delta[0]), _DELTA_ENTRIES_PER_BUCKET), bits + _TAG_BITS - _DELTA_TAG_BITS)
    _write_arrays(folder, "delta_", bits, delta_bits, ids.dtype, [delta])
    for spill in spills:
        spill.unlink(missing_ok=True)


def choose_bits(entries: int, per_bucket: int) -> int:
    """Return the bits of a bucket's number."""
    return max(1, (max(1, entries // per_bucket) - 1).bit_length())


def _count_bits(starts: int) -> int:
    """Return the bits of a bucket's number. There is one start more than buckets, which the end of the last bucket needs."""
    return (starts - 1).bit_length() - 1


def _open_base(previous: Path | None, bits: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Return starts, tags and ids of the base of a snapshot; None if it is damaged or has other buckets."""
    if previous is None or not has_published(previous, [f"{_FOLDER}/{name}" for name in _BASE_FILES]):
        return None
    starts, tags, ids = (map_array(previous / _FOLDER / name) for name in _BASE_FILES)
    return (starts, tags, ids) if _count_bits(len(starts)) == bits else None


def _find_differences(
    base: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], spills: list[Path], bits: int, ids: NDArray[np.unsignedinteger]
) -> _Entries | None:
    """Return the entries of all keys that the base has otherwise; None if they are too many for a delta."""
    at_most, found = MERGED_AT * len(base[1]), 0
    groups, recordings = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=ids.dtype)]
    buckets = (1 << bits) // len(spills)
    for number, spill in enumerate(spills):
        now, now_ids = _read_spill(spill, bits, ids)
        before, before_ids = _read_buckets(base, number * buckets, (number + 1) * buckets)
        one, other = _Groups.read(now, now_ids), _Groups.read(before, before_ids)
        is_chosen = np.repeat(~one.find_equal(other), one.sizes)
        gone = other.groups[~other.find_known(one)]
        chosen = np.concatenate([now[is_chosen], gone])
        order = np.argsort(chosen, kind="stable")
        groups.append(chosen[order])
        recordings.append(np.concatenate([now_ids[is_chosen], np.full(len(gone), NOBODY, dtype=ids.dtype)])[order])
        found += len(chosen)
        if found > at_most:
            return None
    return np.concatenate(groups), np.concatenate(recordings)


class _Groups(NamedTuple):
    """The distinct pairs of bucket and tag, ascending."""

    groups: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    digests: NDArray[np.uint64]
    """A digest of the recordings of each pair in their order."""

    @classmethod
    def read(cls, groups: NDArray[np.uint64], ids: NDArray[Any]) -> _Groups:
        """Group entries, which are in order."""
        firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(groups)), dtype=np.bool_), groups[1:] != groups[:-1]]))
        sizes = _measure_buckets(np.append(firsts, len(groups)))
        places = np.arange(len(groups)) - np.repeat(firsts, sizes)
        # Places count: the most popular recording of a key comes first.
        hashed = mix_bits(ids.astype(np.uint64) + (places.astype(np.uint64) << np.uint64(40)))
        return cls(groups[firsts], sizes, np.add.reduceat(hashed, firsts) if len(firsts) else hashed)

    def find_known(self, other: _Groups) -> NDArray[np.bool_]:
        """Return which groups the other has, too."""
        found: NDArray[np.bool_] = other.groups[self._find_places(other)] == self.groups if len(other.groups) else self.groups < 0
        return found

    def find_equal(self, other: _Groups) -> NDArray[np.bool_]:
        """Return which groups have the same recordings in the other."""
        known = self.find_known(other)
        known[known] = other.digests[self._find_places(other)[known]] == self.digests[known]
        return known

    def _find_places(self, other: _Groups) -> NDArray[np.int64]:
        places: NDArray[np.int64] = np.searchsorted(other.groups, self.groups).clip(max=len(other.groups) - 1)
        return places


def _read_spill(spill: Path, bits: int, ids: NDArray[np.unsignedinteger]) -> _Entries:
    """Return (bucket and tag, recording) of a spill, in order."""
    if not spill.exists():
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=ids.dtype)
    entries = np.fromfile(spill, dtype=_ENTRY)
    # `lexsort` sorts by its last key first: by hash, then by popularity. Entries of equal keys come most popular first.
    groups = entries["hash"] >> np.uint64(_HASH_BITS - bits - _TAG_BITS)
    order = np.lexsort((entries["rank"], entries["hash"]))
    return groups[order], ids[entries["rank"][order]]


def _read_buckets(arrays: tuple[NDArray[Any], ...], first: int, last: int) -> _Entries:
    """Return (bucket and tag, recording) of the entries of a range of buckets."""
    starts, tags, ids = arrays
    places = slice(int(starts[first]), int(starts[last]))
    buckets = np.repeat(np.arange(first, last, dtype=np.uint64), _measure_buckets(starts[first : last + 1]))
    return buckets << np.uint64(_TAG_BITS) | tags[places], ids[places]


def _read_groups(delta: tuple[NDArray[Any], ...], shift: int, tag_shift: int) -> NDArray[np.uint64]:
    """Return the bits of bucket and tag in the base of each entry of the delta."""
    starts, tags, _ = delta
    buckets = np.repeat(np.arange(len(starts) - 1, dtype=np.uint64), _measure_buckets(starts))
    # The bucket of the delta has the bits above the tag, and overlaps with it.
    groups: NDArray[np.uint64] = buckets << np.uint64(shift - tag_shift) & ~np.uint64(_DELTA_MASK) | tags
    return groups


def _measure_buckets(starts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of entries of each bucket."""
    wide = starts.astype(np.int64)
    return wide[1:] - wide[:-1]


def _write_arrays(folder: Path, name: str, bits: int, layer_bits: int, dtype: np.dtype[Any], blocks: Iterable[_Entries]) -> None:
    """Write entries in order. `bits` are those of the base's buckets, and `layer_bits` those of the buckets that are written."""
    sizes = np.zeros(1 << layer_bits, dtype=np.uint32)
    is_base = bits == layer_bits and not name
    with (
        ArrayWriter(folder / f"{name}tags.npy", np.uint16 if is_base else np.uint32) as tags,
        ArrayWriter(folder / f"{name}ids.npy", dtype) as found,
    ):
        for groups, recordings in blocks:
            if len(groups):
                buckets = (groups >> np.uint64(bits + _TAG_BITS - layer_bits)).astype(np.int64)
                sizes[buckets[0] : buckets[-1] + 1] += np.bincount(buckets - buckets[0]).astype(np.uint32)
                tags.append((groups & np.uint64(_TAG_MASK if is_base else _DELTA_MASK)).astype(tags.dtype))
                found.append(recordings)
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        write_array(folder / f"{name}starts.npy", starts.astype(choose_unsigned(found.length)))


def _append(spill: Path, entries: NDArray[np.void]) -> None:
    if len(entries):
        with spill.open("ab") as file:
            file.write(entries.data)


def _hash_tables(tables: Mapping[str, Path]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Yield (hashes, recording ids) of all keys, block by block."""
    for rows in _read_batches(tables["recording_isrc"], "isrc", "recording_id"):
        yield hash_keys(number_key_space(ISRC), rows["isrc"]), rows["recording_id"].to_numpy()
    for rows in _read_batches(tables["platform_link"], "source", "external_id", "recording_id"):
        for (source,), alike in rows.partition_by("source", as_dict=True).items():
            yield hash_keys(number_key_space(str(source)), alike["external_id"]), alike["recording_id"].to_numpy()


def _read_batches(table: Path, *columns: str) -> Iterator[pl.DataFrame]:
    for part in list_parts(table):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=list(columns)):
                yield pl.DataFrame(batch)
