"""Postings in the making: parted into files by address, then sorted and written part by part.

A part covers a range of buckets. Memory holds one block's postings, or one part's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.layout import ADDRESS_BITS, HASHED_MASK, PLACE_BITS, SAMPLE_BITS, codes, is_sampled
from catalog_store.search.arrays import ArrayWriter
from catalog_store.search.layout import smallest_unsigned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

POSTINGS_PER_PART = 8_000_000
"""Sorted at once: 64 MB of keys."""
_KEY_BITS = 64
_ITEMS_AT_ONCE = 1 << 15
"""Stay in the processor's cache while they are hashed: half the time."""


class Postings:
    """Postings of one segment."""

    def __init__(self, folder: Path, *, bits_of_ordinals: int, bits_of_parts: int) -> None:
        """`folder` is for the parts and must exist; `bits_of_parts` at least `fewest_part_bits`."""
        self._folder = folder
        self._ordinal_bits = bits_of_ordinals
        self._rest_bits = ADDRESS_BITS - bits_of_parts
        self._parts = 1 << bits_of_parts
        self.count = 0

    def add(self, first_ordinal: int, lengths: NDArray[np.int64], items: NDArray[np.uint32]) -> None:
        """Post fingerprints of consecutive ordinals."""
        at, hashed = _sampled(items)
        starts = np.cumsum(lengths) - lengths
        row = np.repeat(np.arange(len(lengths)), np.diff(np.searchsorted(at, starts), append=len(at)))
        places = at - starts[row]
        is_new = (places == 0) | ((items[at] ^ items[at - 1]) & HASHED_MASK != 0)
        hashed, row, places = hashed[is_new], row[is_new], places[is_new]
        addresses = hashed >> np.uint32(SAMPLE_BITS)
        keys = (addresses & np.uint32((1 << self._rest_bits) - 1)).astype(np.uint64)
        keys <<= np.uint64(self._ordinal_bits)
        keys |= (row + first_ordinal).astype(np.uint64)
        keys <<= np.uint64(PLACE_BITS)
        keys |= places.astype(np.uint64)
        self._part(addresses >> np.uint32(self._rest_bits), keys)
        self.count += len(keys)

    def _part(self, parts: NDArray[np.uint32], keys: NDArray[np.uint64]) -> None:
        # 16 bits are sorted by radix, five times as fast.
        keys = keys[np.argsort(parts.astype(np.uint16), kind="stable")]
        ends = np.cumsum(np.bincount(parts, minlength=self._parts))
        for part in np.flatnonzero(np.diff(ends, prepend=0)):
            with (self._folder / f"{part:05d}").open("ab") as file:
                file.write(keys[ends[part - 1] if part else 0 : ends[part]].data)

    def write(self, folder: Path, bits_of_buckets: int) -> None:
        """Write bucket_starts, posting_words and posting_places; the parts are deleted on the way."""
        tag_and_ordinal = ADDRESS_BITS - bits_of_buckets + self._ordinal_bits
        with (
            ArrayWriter(folder / "bucket_starts.npy", smallest_unsigned(self.count)) as starts,
            ArrayWriter(folder / "posting_words.npy", np.uint32) as words,
            ArrayWriter(folder / "posting_places.npy", np.uint16) as places,
        ):
            for keys in self._sorted_parts():
                per_bucket = np.bincount(
                    (keys >> np.uint64(tag_and_ordinal + PLACE_BITS)).astype(np.int64), minlength=(1 << bits_of_buckets) // self._parts
                )
                starts.append(words.length + np.cumsum(per_bucket) - per_bucket)
                places.append(keys & np.uint64((1 << PLACE_BITS) - 1))
                words.append((keys >> np.uint64(PLACE_BITS)) & np.uint64((1 << tag_and_ordinal) - 1))
            starts.append(np.array([words.length]))

    def _sorted_parts(self) -> Iterator[NDArray[np.uint64]]:
        for part in range(self._parts):
            file = self._folder / f"{part:05d}"
            keys = np.fromfile(file, dtype="<u8") if file.exists() else np.zeros(0, np.uint64)
            keys.sort()
            yield keys
            file.unlink(missing_ok=True)


def _sampled(items: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Where the sampled items stand, and their codes."""
    at, hashed = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        piece = codes(items[start : start + _ITEMS_AT_ONCE])
        chosen = np.flatnonzero(is_sampled(piece))
        at.append(chosen + start)
        hashed.append(piece[chosen])
    return np.concatenate(at), np.concatenate(hashed)


def part_bits(items: int, bits_of_ordinals: int, bits_of_buckets: int) -> int:
    """How many parts, as a power of two: POSTINGS_PER_PART each, keys fit, a bucket lies in one part."""
    wanted = ((items >> SAMPLE_BITS) // POSTINGS_PER_PART).bit_length()
    return min(bits_of_buckets, max(wanted, fewest_part_bits(bits_of_ordinals)))


def fewest_part_bits(bits_of_ordinals: int) -> int:
    """What a key has no room for must be told by its part."""
    return max(0, ADDRESS_BITS + bits_of_ordinals + PLACE_BITS - _KEY_BITS)
