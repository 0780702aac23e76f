"""The format of `serving/search/`: the contents of each array, and the two hash functions that address them.

The index is a base, shared by snapshot after snapshot as hard links, and a delta in `delta/`, which holds every recording that the base
lacks or in which it differs. A *document* is a recording. The N documents of the base are numbered by popularity descending, then recording
id ascending, and so are the M of the delta. A program knows a document by one number that orders all of them so: of the base, its number
above PLACE_BITS bits that are all set; of the delta, its place above its number (layered_order.py). The place is the number of documents of
the base that rank before it. A posting list in this order is in order of popularity, and cutting it keeps the popular part.

Base and delta have these files. E entries, W words of titles, L lists of artists, A artist names. All arrays are .npy, little endian, one
dimension, opened by memory map:

  ids.npy                 uint32 (uint64 when needed) [N]  recording id
  popularity.npy          float32 [N]                      descending
  credit_of.npy           uint32 [N]                       number of the document's list of artists; lists of the delta follow those of
                              the base, and a list that the base has is not in the delta
  credit_starts.npy       uint32 or uint64 [L+1]           list i is credit_artists[starts[i]..starts[i+1]]
  credit_artists.npy      uint32                           four times the number of an artist's name, plus its role: 0 for a main artist, 1
                              for a featured one, 2 for another name of a main artist; in that order
  artist_starts.npy       uint32 or uint64 [A+1]           name i is bytes starts[i]..starts[i+1] of artist.bin
  artist.bin              UTF-8: keys of artists
  title_starts.npy        uint32 or uint64 [N+1]           title of document i is units starts[i]..starts[i+1] of title_units.npy
  title_units.npy         uint16                           ranks of the title's words: one unit below SHORT_RANKS, else two units a, b
                              with rank = SHORT_RANKS + (a - SHORT_RANKS) * 65536 + b. The words are those of the
                              core title's key, then, if there is a variant, TAB and the variant as one word, then
                              two TABs and another title as one word, for each of those
  title_word_starts.npy   uint32 or uint64 [W+1]           the word of rank i is bytes starts[i]..starts[i+1] of title_word.bin; rank 0 is
  title_word.bin                                           the most frequent
  pair_starts.npy         uint32 or uint64 [2^B + 1]       entries of hash bucket b are pair_starts[b]..pair_starts[b+1]
  pair_tags.npy           uint16 [E]                       next 16 bits of the pair's hash, ascending inside a bucket; in the delta, whose
                              buckets are larger, uint32: the last 32 of the base's bits of bucket and tag
  pair_documents.npy      uint32 [E]                       ascending per tag, at most BASE_CAP of them, in the delta POSTINGS_CAP

These files are written by each publish, for base and delta together, V words:

  format.json             {"format_version", "documents": those that count, "bucket_bits": B, "delta_bucket_bits"}
  dead.npy                uint8 [N / 8]                    bit i % 8 of byte i / 8 is set if document i of the base no longer counts; empty
                              if all do
  delta/places.npy        uint32 [M]                       ascending
  vocabulary.bin                                           all words of titles and pairs in UTF-8 between newlines, by number of
                              characters (255 for more), then bytes
  vocabulary_starts.npy   uint32 or uint64 [V/64 + 1]      where every 64th word begins, and the size
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

FORMAT_VERSION = 10
READ_VERSIONS = frozenset({9, 10})
"""Versions that this program reads (catalog_store/format_versions.py). Format 9 has no other titles, and other names of a main artist are
featured artists there: its lists have two roles."""
ROLE_BITS, WITH_ALIASES = 2, 10
"""Bits of a role below the number of a name, and the version from which on lists have them; one bit before."""
ROLES = ("primary", "featured", "alias")
FORMAT_FILE = "format.json"
DELTA_FOLDER = "delta"
BASE_FILES = (
    "ids.npy", "popularity.npy", "credit_of.npy", "credit_starts.npy", "credit_artists.npy", "artist_starts.npy", "artist.bin",
    "title_starts.npy", "title_units.npy", "title_word_starts.npy", "title_word.bin", "pair_starts.npy", "pair_tags.npy",
    "pair_documents.npy",
)  # fmt: skip
"""Files that snapshots share."""

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
"""Documents read per pair. The cap bounds the work of a query whatever the size of the catalog."""
BASE_CAP = 640
"""Documents kept per pair in the base. So many more than are read may be replaced before a new base is written."""
DELTA_TAG_BITS = 32
_PAIRS_PER_DOCUMENT = 16
"""Pairs of most catalogs are fewer. An estimate, so that changes of a few documents keep the buckets."""

NAME_SEPARATOR = "|"
FIELD_SEPARATOR = "\t"
OTHER_TITLE = 2 * FIELD_SEPARATOR
"""Before another title among the words of a title."""

_TITLE_SEED = 1
"""A seed other than the artists': with one seed, a word paired with itself would hash to 0, and (a, b) would hash like (b, a)."""


def hash_artist_word(word: str) -> int:
    """Return 64 bits of an artist's word: its XXH3."""
    # XXH3 takes .04 us a key; a mixing function in plain Python took .7.
    return xxh3_64_intdigest(word.encode())


def hash_title_word(word: str) -> int:
    """Return 64 bits of a title's word. They differ from those of the same word of an artist."""
    return xxh3_64_intdigest(word.encode(), _TITLE_SEED)


def choose_bucket_bits(documents: int) -> int:
    """Return B, the bits of a bucket number, for so many documents."""
    # Rounded up to a power of two, so the average hardly exceeds ENTRIES_PER_BUCKET. One bit is the least that pair_starts.npy can address.
    return max(1, (max(1, documents * _PAIRS_PER_DOCUMENT // ENTRIES_PER_BUCKET) - 1).bit_length())


def choose_unsigned(largest: int) -> np.dtype[np.uint32] | np.dtype[np.uint64]:
    """Return the narrower of uint32 and uint64 that holds `largest`."""
    return np.dtype(np.uint32) if largest < 1 << 32 else np.dtype(np.uint64)
