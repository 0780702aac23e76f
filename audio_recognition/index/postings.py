"""The build of posting lists: by part in memory, in runs on disk, then part by part in the files of a segment.

A part covers a range of addresses. Postings arrive by ordinal and place, and every step keeps that order for equal addresses. So they are
sorted by address only: by the part on arrival, by the rest when a part is written. Memory holds the postings of one run, or of some parts.

On disk a posting has six bytes in two columns: the rest of its address, and its *spot*: the number of its fingerprint in the run (upper
half) and its place in the fingerprint (lower half).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from audio_recognition.index.layout import ADDRESS_BITS, PLACE_BITS, SAMPLE_BITS, PostingFiles, hash_items, is_sampled
from catalog_store.array_files import ArrayWriter
from catalog_store.search.layout import choose_unsigned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from numpy.typing import NDArray

POSTINGS_AT_ONCE = 8_000_000
"""In a run, and read from the parts: 48 MB. The starts of parts in runs take 90 MB at 90 M recordings."""
POSTINGS_PER_PART = 4_000_000
FEWEST_TO_PART = 1 << 17
"""Fewer postings form one part: a thousand parts of a few cost more."""
MOST_FINGERPRINTS = 1 << 16
"""In a run, and added at once: the range of half a spot."""
_RADIX_BITS = 16
_ITEMS_AT_ONCE = 1 << 15
"""They stay in the processor's cache while they are hashed, which halves the time."""
_BYTES_AT_ONCE = 1 << 17


class _Run(NamedTuple):
    """Postings on disk: of the fingerprints from `first`; part p has numbers bounds[p] up to bounds[p + 1] of the run."""

    first: int
    bounds: NDArray[np.uint32]


class Postings:
    """The postings of one segment.

    Those waiting for the next run are (bounds, rests, spots); column[bounds[p]:bounds[p + 1]] is of part p.
    """

    def __init__(self, folder: Path, *, bits_of_ordinals: int, bits_of_parts: int, address_bits: int = ADDRESS_BITS) -> None:
        """Use `folder` for the runs; the caller deletes it. `bits_of_parts`: at most 16."""
        self._files = (folder / "rests", folder / "spots")
        self._ordinal_bits = bits_of_ordinals
        self._address_bits = address_bits
        self._rest_bits = address_bits - bits_of_parts
        self._rest_type = np.dtype(np.uint16 if self._rest_bits <= _RADIX_BITS else np.uint32)
        self._parts = 1 << bits_of_parts
        self._runs: list[_Run] = []
        self._first = 0
        self._waiting: list[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]] = [
            (np.zeros(self._parts + 1, np.int64), np.zeros(0, self._rest_type), np.zeros(0, np.uint32))
        ]
        self._room = POSTINGS_AT_ONCE
        self.count = 0

    def add(self, first_ordinal: int, lengths: NDArray[np.int64], items: NDArray[np.uint32]) -> None:
        """Add fingerprints of consecutive ordinals that follow those of the last call; at most MOST_FINGERPRINTS."""
        at, hashed = _select_sampled(items)
        starts = np.cumsum(lengths) - lengths
        numbers = np.arange(len(lengths))
        # The subtraction wraps around, and the addition of `at` wraps back: place = at - start.
        spots = np.repeat(((numbers << PLACE_BITS) - starts).astype(np.uint32), np.diff(np.searchsorted(at, starts), append=len(at)))
        spots += at.astype(np.uint32)
        spots, hashed = _drop_repeats(spots, hashed)
        self.add_addresses(first_ordinal, len(lengths), spots, hashed >> np.uint32(SAMPLE_BITS))

    def add_addresses(self, first_ordinal: int, fingerprints: int, spots: NDArray[np.uint32], addresses: NDArray[np.uint32]) -> None:
        """Add chosen postings of consecutive ordinals, as `add` does. Both arrays are taken over.

        A spot is the number of the fingerprint, from 0 at `first_ordinal`, << PLACE_BITS | place; spots ascend.
        """
        if first_ordinal + fingerprints - self._first > MOST_FINGERPRINTS:
            # A spot has 16 bits for the number of a fingerprint in its run.
            self._write_run(first_ordinal)
        spots += np.uint32((first_ordinal - self._first) << PLACE_BITS)
        parts = (addresses >> np.uint32(self._rest_bits)).astype(np.uint16)
        addresses &= np.uint32((1 << self._rest_bits) - 1)
        # NumPy sorts 16 bits by radix, and so few values stay in the processor's cache: 7 to 10 ns a posting. Whole keys took
        # 84 ns on processors that are slow to compress vectors of 512 bits (Zen 4).
        order = np.argsort(parts, kind="stable")
        bounds = np.zeros(self._parts + 1, dtype=np.int64)
        np.cumsum(np.bincount(parts, minlength=self._parts), out=bounds[1:])
        self._waiting.append((bounds, addresses.astype(self._rest_type)[order], spots[order]))
        self.count += len(order)
        self._room -= len(order)
        if self._room <= 0:
            self._write_run(first_ordinal + fingerprints)

    def _write_run(self, next_first: int) -> None:
        """Write the waiting postings to disk as one run; the next one begins at ordinal `next_first`."""
        bounds = [bounds for bounds, _, _ in self._waiting]
        for file, column in zip(self._files, list(zip(*self._waiting, strict=True))[1:], strict=True):
            with file.open("ab", buffering=_BYTES_AT_ONCE) as out:
                out.writelines(_iterate_by_part(bounds, column))
        self._runs.append(_Run(self._first, np.sum(bounds, axis=0).astype(np.uint32)))
        self._first = next_first
        self._waiting.clear()
        self._room = POSTINGS_AT_ONCE

    def write(self, folder: Path, bits_of_buckets: int, files: PostingFiles) -> None:
        """Write the three files of the postings."""
        if self._waiting:
            self._write_run(0)
        bits_of_tags = self._address_bits - bits_of_buckets
        buckets_per_part = (1 << bits_of_buckets) // self._parts
        with (
            ArrayWriter(folder / files.starts, choose_unsigned(self.count)) as starts,
            ArrayWriter(folder / files.words, np.uint32) as words,
            ArrayWriter(folder / files.places, np.uint16) as places,
        ):
            for rests, ordinals, at in self._iterate_part_columns():
                per_bucket = np.bincount(rests >> bits_of_tags, minlength=buckets_per_part)
                starts.append(words.length + np.cumsum(per_bucket) - per_bucket)
                # Stable, so that equal addresses stay in the order of ordinals and places.
                order = np.argsort(rests, kind="stable")
                tags = (rests & ((1 << bits_of_tags) - 1)).astype(np.uint32)
                words.append((tags << np.uint32(self._ordinal_bits) | ordinals)[order])
                places.append(at[order])
            starts.append(np.array([words.length]))

    def _iterate_part_columns(self) -> Iterator[tuple[NDArray[Any], NDArray[np.uint32], NDArray[np.uint16]]]:
        """Yield rests, ordinals and places of each part, by ordinal and place."""
        firsts = np.array([run.first for run in self._runs], dtype=np.uint32)
        starts = np.cumsum([0, *(int(run.bounds[-1]) for run in self._runs)]).tolist()
        with self._files[0].open("rb", buffering=0) as rests, self._files[1].open("rb", buffering=0) as spots:
            for first, last in _group_parts(np.sum([run.bounds for run in self._runs], axis=0, dtype=np.int64)):
                bounds = [run.bounds[first : last + 1].astype(np.int64) for run in self._runs]
                read_rests, read_spots = (
                    [_read(file, dtype, start + mine[0], start + mine[-1]) for start, mine in zip(starts, bounds, strict=False)]
                    for file, dtype in ((rests, self._rest_type), (spots, np.dtype(np.uint32)))
                )
                bounds = [mine - mine[0] for mine in bounds]
                counts = np.diff(bounds, axis=1).T
                for of_runs, of_rests, of_spots in zip(
                    counts, _iterate_by_part(bounds, read_rests), _iterate_by_part(bounds, read_spots), strict=True
                ):
                    here = np.frombuffer(of_spots, np.uint32)
                    ordinals = np.repeat(firsts, of_runs)
                    ordinals += here >> np.uint32(PLACE_BITS)
                    yield np.frombuffer(of_rests, self._rest_type), ordinals, here.astype(np.uint16)


def _read(file: FileIO, dtype: np.dtype[Any], start: int, end: int) -> NDArray[Any]:
    file.seek(start * dtype.itemsize)
    return np.fromfile(file, dtype=dtype, count=end - start)


def _iterate_by_part(bounds: Sequence[NDArray[np.int64]], columns: Sequence[NDArray[Any]]) -> Iterator[bytes]:
    """Yield each part's values of the columns, in their order: of column i those between bounds[i][part] and bounds[i][part + 1]."""
    pieces = []
    for places, column in zip(bounds, columns, strict=True):
        ends = places.tolist()
        # Cut lazily: a list of all sixty thousand pieces costs the garbage collector more than everything else here.
        pieces.append(map(column.data.__getitem__, map(slice, ends, ends[1:])))
    return map(b"".join, zip(*pieces, strict=True))


def _group_parts(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of parts that hold at most POSTINGS_AT_ONCE together; a larger part is a range of its own."""
    first, parts = 0, len(bounds) - 1
    while first < parts:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + POSTINGS_AT_ONCE, side="right")) - 1)
        yield first, last
        first = last


def _select_sampled(items: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the positions of the sampled items, and their codes."""
    at, hashed = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        piece = hash_items(items[start : start + _ITEMS_AT_ONCE])
        chosen = np.flatnonzero(is_sampled(piece))
        hashed.append(piece[chosen])
        chosen += start
        at.append(chosen)
    return np.concatenate(at), np.concatenate(hashed)


def _drop_repeats(spots: NDArray[np.uint32], hashed: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Drop items equal to the one before them in their fingerprint: that one is sampled because this one is."""
    equal = np.flatnonzero(hashed[1:] == hashed[:-1]) + 1
    # Place 0 follows the last item of another fingerprint, which does not count.
    follow = equal[(spots[equal] - spots[equal - 1] == 1) & (spots[equal] & ((1 << PLACE_BITS) - 1) != 0)]
    return np.delete(spots, follow), np.delete(hashed, follow)


def count_part_bits(postings: int, bits_of_buckets: int, address_bits: int = ADDRESS_BITS) -> int:
    """Return the number of parts as a power of two: POSTINGS_PER_PART on average, sorted by radix, with a bucket inside one part."""
    # Enough parts for the rest of an address to have the 16 bits of a radix sort.
    wanted = 0 if postings < FEWEST_TO_PART else max((postings // POSTINGS_PER_PART).bit_length(), address_bits - _RADIX_BITS)
    return min(bits_of_buckets, wanted)
