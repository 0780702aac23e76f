"""The format of `serving/search/`: the contents of each array, and the two hash functions that address them.

A *document* is a recording, numbered by popularity descending, then recording id ascending: document 0 is the most popular one. A posting
list in document order is therefore in popularity order, and cutting it keeps the popular part. N documents, E entries, V words, W of them
in titles, L lists of artists, A artist names. All arrays are .npy, little endian, one dimension, opened by memory map:

  format.json             {"format_version", "documents": N, "bucket_bits": B}
  ids.npy                 uint32 (uint64 when needed) [N]  recording id
  popularity.npy          float32 [N]                      descending
  credit_of.npy           uint32 [N]                       number of the document's list of artists
  credit_starts.npy       uint32 or uint64 [L+1]           list i is credit_artists[starts[i]..starts[i+1]]
  credit_artists.npy      uint32                           twice the number of an artist's name, plus 1 for a featured one; primary first
  artist_starts.npy       uint32 or uint64 [A+1]           name i is bytes starts[i]..starts[i+1] of artist.bin
  artist.bin              UTF-8: keys of artists
  title_starts.npy        uint32 or uint64 [N+1]           title of document i is units starts[i]..starts[i+1] of title_units.npy
  title_units.npy         uint16                           ranks of the title's words: one unit below SHORT_RANKS, else two units a, b
                              with rank = SHORT_RANKS + (a - SHORT_RANKS) * 65536 + b. The words are those of the
                              core title's key, then, if there is a variant, TAB and the variant as one word
  title_ranked.npy        uint32 [W]                       number in the vocabulary of the word of each rank; rank 0 is the most frequent
  pair_starts.npy         uint32 or uint64 [2^B + 1]       entries of hash bucket b are pair_starts[b]..pair_starts[b+1]
  pair_tags.npy           uint16 [E]                       next 16 bits of the pair's hash, ascending inside a bucket
  pair_documents.npy      uint32 [E]                       ascending per tag, at most POSTINGS_CAP of them
  vocabulary.bin                                           all words of titles and pairs in UTF-8 between newlines, by number of
                              characters (255 for more), then bytes
  vocabulary_starts.npy   uint32 or uint64 [V+1]           word i begins at byte starts[i]; the last entry is the size
  vocabulary_counts.npy   uint8 [V]                        8 log2(1 + documents that pair the word), rounded up
  vocabulary_marks.npy    uint8 [2^M / 8]                  a Bloom filter with one hash: bit i % 8 of byte i / 8 is set for every word
                              whose `hash_title_word` has i as its top M bits. A text whose bit is not set is not a word
  reversed.bin                                             the words but those led by TAB, each backwards, in the same order
  reversed_starts.npy     uint32 or uint64                 where every 64th word of reversed.bin begins, and the size

A pair is (word of an artist, word of the title). The key of each whole name is paired with one word for all (whole_names.py), and is in no
vocabulary. The hash of a pair is `hash_artist_word` of the one XOR `hash_title_word` of the other. The top B bits are the bucket. Two pairs
share bucket and tag once in 2^16 buckets: this only adds candidates, which the reranker drops. Change anything here together with
FORMAT_VERSION.
"""

from __future__ import annotations

import numpy as np
from xxhash import xxh3_64_intdigest

FORMAT_VERSION = 7
READ_VERSIONS = frozenset({6, 7})
"""Versions that this program reads (catalog_store/format_versions.py). Format 6 has no pairs of whole names; a look-up finds none there."""
FORMAT_FILE = "format.json"

# Three quarters of the 2^16 values of a unit are ranks. The other 2^14 values lead a second unit: 2^14 * 2^16 long ranks.
SHORT_RANKS = 49_152
"""Ranks stored in one unit. Two units hold ranks up to 1,073,790,975."""

# Two pairs share bucket and tag once in 2^16 buckets. The reranker drops such candidates.
TAG_BITS = 16
HASH_BITS = 64
# A reader walks the tags of a bucket one by one, so a bucket must stay short.
ENTRIES_PER_BUCKET = 32
"""The largest average number of entries in a bucket. Half as many cost another byte a recording."""
POSTINGS_CAP = 512
"""Documents kept per pair. The cap bounds the work of a query whatever the size of the catalog."""

NAME_SEPARATOR = "|"
FIELD_SEPARATOR = "\t"

_TITLE_SEED = 1
"""A seed other than the artists': with one seed, a word paired with itself would hash to 0, and (a, b) would hash like (b, a)."""


def hash_artist_word(word: str) -> int:
    """Return 64 bits of an artist's word: its XXH3."""
    # XXH3 takes .04 us a key; a mixing function in plain Python took .7.
    return xxh3_64_intdigest(word.encode())


def hash_title_word(word: str) -> int:
    """Return 64 bits of a title's word. They differ from those of the same word of an artist."""
    return xxh3_64_intdigest(word.encode(), _TITLE_SEED)


def choose_bucket_bits(entries: int) -> int:
    """Return B, the bits of a bucket number, for an index of about `entries` entries."""
    # Rounded up to a power of two, so the average never exceeds ENTRIES_PER_BUCKET. One bit is the least that pair_starts.npy can address.
    return max(1, (max(1, entries // ENTRIES_PER_BUCKET) - 1).bit_length())


def choose_unsigned(largest: int) -> np.dtype[np.uint32] | np.dtype[np.uint64]:
    """Return the narrower of uint32 and uint64 that holds `largest`."""
    return np.dtype(np.uint32) if largest < 1 << 32 else np.dtype(np.uint64)
