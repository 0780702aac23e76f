"""The format of an index of fingerprints, and the hash function that addresses it.

    index.json              {"format": "fingerprint-index", "format_version", "segments": [names, oldest first]}
    <segment>/              `base`, then `delta-0001` ...: each a whole index of some fingerprints, never changed but for its ids

An *ordinal* is the number of a fingerprint in its segment: by the id it was built under ascending, then by items. N fingerprints, I items
stored, P postings, B bucket bits. Arrays are .npy, little endian, one dimension, opened by memory map; other files are left alone:

    <segment>/segment.json  {"recordings": N, "items": items given, "stored": I, "postings": P, "bucket_bits": B, "ordinal_bits": O,
                            "landmarks": L, "landmark_bucket_bits": K}
    ids.npy                 int64 [N]       recording id of each ordinal; VOID for a fingerprint that no longer counts. It stands apart
                                            from all else: merged, split and withdrawn recordings change this column alone
    seconds.npy             uint16 [N]      how long the audio lasts of which the fingerprint is (the beginning); 0 for unknown
    store_starts.npy        uint32 or uint64 [N+1]  stored items of ordinal i are store[starts[i]:starts[i + 1]]
    store.npy               uint32 [I]      items 0, STORE_STRIDE, 2 STORE_STRIDE ... of each fingerprint: what a candidate is compared with
    bucket_starts.npy       uint32 or uint64 [2^B + 1]  postings of bucket b are those from starts[b] up to starts[b + 1]
    posting_words.npy       uint32 [P]      (tag << O) | ordinal, ascending inside a bucket
    posting_places.npy      uint16 [P]      position of the item in its fingerprint, ascending per word
    landmark_starts.npy, landmark_words.npy, landmark_places.npy
                                            postings of pairs of peaks, likewise: uint [2^K + 1], uint32 [L], uint16 [L]; the place is the
                                            frame of the first peak. Not there when L is 0, as for fingerprints without their audio

An item has 32 bits; its HASHED_BITS are hashed by `hash_items`, a permutation, so equal codes are equal bits. An item is posted when the
lowest SAMPLE_BITS of its code are zero: chosen by content, so a query chooses the same ones wherever it begins. The other ADDRESS_BITS
are the address: the upper B the bucket, the rest the tag. Not posted: the code of silence, and an item equal (in those bits) to the one
before it. Fingerprints longer than MAXIMUM_ITEMS are cut. audio_recognition/landmarks defines the codes of pairs. All CODE_BITS of them are
the address, because only a sample of the pairs is formed. Change anything here and FORMAT_VERSION together; version 1 had no landmarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from audio_recognition.chromaprint import SILENCE_ITEM

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "fingerprint-index"
FORMAT_VERSION = 2
READ_VERSIONS = frozenset({1, 2})
"""Versions that this program reads (catalog_store/format_versions.py)."""
INDEX_FILE = "index.json"
SEGMENT_FILE = "segment.json"
BASE = "base"


class PostingFiles(NamedTuple):
    """The names of the three files of postings."""

    starts: str
    words: str
    places: str


ITEM_POSTINGS = PostingFiles("bucket_starts.npy", "posting_words.npy", "posting_places.npy")
LANDMARK_POSTINGS = PostingFiles("landmark_starts.npy", "landmark_words.npy", "landmark_places.npy")

VOID = -1
"""In place of a recording id."""

HASHED_BITS = (*range(1, 4), *range(5, 16), *range(17, 24), *range(25, 32))
"""Bits of an item, counted from the lowest. The four omitted ones, lower bits of classifiers 4, 8, 14 and 16, are those that codecs, noise
and pace flip most often. 42 % of the items of an unaligned clip keep all others, against 37 % that keep all but the lowest four bits
(which AcoustID omits)."""
HASH_BITS = len(HASHED_BITS)
HASHED_MASK = np.uint32(sum(1 << bit for bit in HASHED_BITS))
SAMPLE_BITS = 2
"""Bits that select postings: one item in four is posted."""
ADDRESS_BITS = HASH_BITS - SAMPLE_BITS
POSTINGS_PER_BUCKET = 32
WORD_BITS = 32
PLACE_BITS = 16
MAXIMUM_ITEMS = 1 << PLACE_BITS
"""Two and a quarter hours."""
STORE_STRIDE = 2


_LEFT_OUT = [bit for bit in range(32) if bit not in HASHED_BITS]
_BELOW = [np.uint32((1 << (bit + moved)) - 1) for moved, bit in enumerate(reversed(_LEFT_OUT))]
_MASK = np.uint32((1 << HASH_BITS) - 1)
_HALF = np.uint32(HASH_BITS // 2)
_MIX = np.uint32(0x2545F49)
_MIX_AGAIN = np.uint32(0x6C8E94D)


def hash_items(items: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Hash HASHED_BITS of each item; no two values share a code."""
    mixed = items & HASHED_MASK
    for below in _BELOW:
        # Moves all bits below the omitted one up by one. Cutting out and shifting each run took five more operations, of 22.
        mixed += mixed & below
    mixed >>= np.uint32(len(_BELOW))
    # Each step can be undone (the factors are odd), so no two values share a code.
    mixed ^= mixed >> _HALF
    mixed *= _MIX
    mixed &= _MASK
    mixed ^= mixed >> _HALF
    mixed *= _MIX_AGAIN
    mixed &= _MASK
    mixed ^= mixed >> _HALF
    return mixed


def is_sampled(codes_of_items: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which codes are posted."""
    chosen: NDArray[np.bool_] = (codes_of_items & np.uint32((1 << SAMPLE_BITS) - 1)) == 0
    chosen &= codes_of_items != SILENCE_CODE
    return chosen


SILENCE_CODE = hash_items(np.array([SILENCE_ITEM], dtype=np.uint32))[0]


def count_ordinal_bits(fingerprints: int) -> int:
    """Return O for a segment of this many fingerprints."""
    return max(1, (max(1, fingerprints) - 1).bit_length())


def count_bucket_bits(items: int, bits_of_ordinals: int) -> int:
    """Return B for a segment of this many items."""
    return divide_into_buckets(items >> SAMPLE_BITS, bits_of_ordinals, ADDRESS_BITS)


def divide_into_buckets(postings: int, bits_of_ordinals: int, address_bits: int) -> int:
    """Return the bits of a bucket's number for this many postings.

    A bucket has at most POSTINGS_PER_BUCKET postings on average, and tags fit beside ordinals.
    """
    wanted = (postings // POSTINGS_PER_BUCKET).bit_length()
    # A word holds tag and ordinal: the bits beside the ordinal bound the tag, and so the number of buckets.
    return min(address_bits, max(wanted, bits_of_ordinals + address_bits - WORD_BITS, 1))
