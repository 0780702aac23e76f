"""Postings in the making: by part in memory, in runs on disk, then part by part in the files of a segment.

A part covers a range of addresses. Postings come by ordinal and place, and every step keeps that order where addresses are equal. So they
are sorted by address only: by the part when they come, by the rest when a part is written. Both are sorts of 16 bits, which NumPy does by
radix, and both of few enough to stay in the processor's cache: 7 to 10 ns a posting. Sorting whole keys took 84 ns on processors that are
slow to compress vectors of 512 bits (Zen 4). Memory holds the postings of one run, or of some parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from audio_recognition.index.layout import ADDRESS_BITS, PLACE_BITS, SAMPLE_BITS, codes, is_sampled
from catalog_store.search.arrays import ArrayWriter
from catalog_store.search.layout import smallest_unsigned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Run = tuple[NDArray[np.int64], NDArray[np.uint64]]

POSTINGS_AT_ONCE = 8_000_000
"""In a run, and read of the parts: 64 MB, twice while a run is put together. Where parts begin in runs takes 90 MB at 90 M recordings."""
POSTINGS_PER_PART = 4_000_000
FEWEST_TO_PART = 1 << 17
"""Fewer postings are one part: a thousand parts of a few cost more."""
_KEY_BITS = 64
_RADIX_BITS = 16
_ITEMS_AT_ONCE = 1 << 15
"""Stay in the processor's cache while they are hashed: half the time."""


class Postings:
    """Postings of one segment. A run of them is (bounds, keys): the keys of part p are keys[bounds[p]:bounds[p + 1]]."""

    def __init__(self, file: Path, *, bits_of_ordinals: int, bits_of_parts: int) -> None:
        """`file` is for the runs: whoever made this deletes it. `bits_of_parts`: at least `fewest_part_bits`, at most 16."""
        self._file = file
        self._ordinal_bits = bits_of_ordinals
        self._rest_bits = ADDRESS_BITS - bits_of_parts
        self._parts = 1 << bits_of_parts
        self._waiting: list[Run] = [(np.zeros(self._parts + 1, np.int64), np.zeros(0, np.uint64))]
        self._written: list[NDArray[np.uint32]] = []
        self._room = POSTINGS_AT_ONCE
        self.count = 0

    def add(self, first_ordinal: int, lengths: NDArray[np.int64], items: NDArray[np.uint32]) -> None:
        """Post fingerprints of consecutive ordinals, which follow those of the call before."""
        at, hashed = _sampled(items)
        starts = np.cumsum(lengths) - lengths
        sampled = np.diff(np.searchsorted(at, starts), append=len(at))
        places = at - np.repeat(starts, sampled)
        is_new = np.ones(len(at), dtype=np.bool_)
        # An item equal to the one before it is sampled because that one is.
        is_new[1:] = (hashed[1:] != hashed[:-1]) | (np.diff(at) != 1) | (places[1:] == 0)
        keys = np.repeat(np.arange(first_ordinal, first_ordinal + len(lengths), dtype=np.uint64) << np.uint64(PLACE_BITS), sampled)
        keys |= places.astype(np.uint64)
        keys, addresses = keys[is_new], hashed[is_new] >> np.uint32(SAMPLE_BITS)
        keys |= (addresses & np.uint32((1 << self._rest_bits) - 1)).astype(np.uint64) << np.uint64(self._ordinal_bits + PLACE_BITS)
        parts = (addresses >> np.uint32(self._rest_bits)).astype(np.uint16)
        bounds = np.zeros(self._parts + 1, dtype=np.int64)
        np.cumsum(np.bincount(parts, minlength=self._parts), out=bounds[1:])
        self._waiting.append((bounds, keys[np.argsort(parts, kind="stable")]))
        self.count += len(keys)
        self._room -= len(keys)
        if self._room <= 0:
            self._write_run()

    def _write_run(self) -> None:
        """Put what waits on disk, as one run."""
        keys = np.concatenate([piece for pieces in _by_part(self._waiting) for piece in pieces])
        with self._file.open("ab") as file:
            file.write(keys.data)
        self._written.append(np.sum([bounds for bounds, _ in self._waiting], axis=0).astype(np.uint32))
        self._waiting.clear()
        self._room = POSTINGS_AT_ONCE

    def write(self, folder: Path, bits_of_buckets: int) -> None:
        """Write bucket_starts, posting_words and posting_places."""
        if self._waiting:
            self._write_run()
        tag_and_ordinal = ADDRESS_BITS - bits_of_buckets + self._ordinal_bits
        buckets_per_part = (1 << bits_of_buckets) // self._parts
        with (
            ArrayWriter(folder / "bucket_starts.npy", smallest_unsigned(self.count)) as starts,
            ArrayWriter(folder / "posting_words.npy", np.uint32) as words,
            ArrayWriter(folder / "posting_places.npy", np.uint16) as places,
        ):
            for keys in self._sorted_parts():
                per_bucket = np.bincount((keys >> np.uint64(tag_and_ordinal + PLACE_BITS)).astype(np.int64), minlength=buckets_per_part)
                starts.append(words.length + np.cumsum(per_bucket) - per_bucket)
                places.append(keys & np.uint64((1 << PLACE_BITS) - 1))
                words.append((keys >> np.uint64(PLACE_BITS)) & np.uint64((1 << tag_and_ordinal) - 1))
            starts.append(np.array([words.length]))

    def _sorted_parts(self) -> Iterator[NDArray[np.uint64]]:
        shift = np.uint64(self._ordinal_bits + PLACE_BITS)
        narrowest = np.uint16 if self._rest_bits <= _RADIX_BITS else np.uint32
        with self._file.open("rb") as file:
            for first, last in _groups(np.sum(self._written, axis=0, dtype=np.int64)):
                for pieces in _by_part(self._runs(file, first, last)):
                    keys = np.concatenate(pieces)
                    yield keys[np.argsort((keys >> shift).astype(narrowest), kind="stable")]

    def _runs(self, file: BinaryIO, first: int, last: int) -> list[Run]:
        """What the runs on disk hold of the parts from `first` up to `last`."""
        runs, run_start = [], 0
        for bounds in self._written:
            mine = bounds[first : last + 1].astype(np.int64)
            file.seek((run_start + int(mine[0])) * np.dtype(np.uint64).itemsize)
            runs.append((mine - mine[0], np.fromfile(file, dtype="<u8", count=int(mine[-1] - mine[0]))))
            run_start += int(bounds[-1])
        return runs


def _by_part(runs: Sequence[Run]) -> Iterator[list[NDArray[np.uint64]]]:
    """For each part what the runs hold of it, in their order."""
    bounds = [bounds.tolist() for bounds, _ in runs]
    for part in range(len(bounds[0]) - 1):
        yield [keys[mine[part] : mine[part + 1]] for mine, (_, keys) in zip(bounds, runs, strict=True)]


def _groups(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of parts that hold at most POSTINGS_AT_ONCE together; a part that holds more is a range of its own."""
    first, parts = 0, len(bounds) - 1
    while first < parts:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + POSTINGS_AT_ONCE, side="right")) - 1)
        yield first, last
        first = last


def _sampled(items: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Where the sampled items stand, and their codes."""
    at, hashed = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        piece = codes(items[start : start + _ITEMS_AT_ONCE])
        chosen = np.flatnonzero(is_sampled(piece))
        hashed.append(piece[chosen])
        chosen += start
        at.append(chosen)
    return np.concatenate(at), np.concatenate(hashed)


def part_bits(items: int, bits_of_ordinals: int, bits_of_buckets: int) -> int:
    """How many parts, as a power of two: POSTINGS_PER_PART on average, sorted by radix, keys fit, a bucket lies in one part."""
    postings = items >> SAMPLE_BITS
    wanted = 0 if postings < FEWEST_TO_PART else max((postings // POSTINGS_PER_PART).bit_length(), ADDRESS_BITS - _RADIX_BITS)
    return min(bits_of_buckets, max(wanted, fewest_part_bits(bits_of_ordinals)))


def fewest_part_bits(bits_of_ordinals: int) -> int:
    """What a key has no room for must be told by its part."""
    return max(0, ADDRESS_BITS + bits_of_ordinals + PLACE_BITS - _KEY_BITS)
