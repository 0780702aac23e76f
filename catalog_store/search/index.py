"""The index opened: arrays by memory map (shared by all processes that open it), documents of word pairs, names of documents.

A query looks at a few dozen values here and there: plain numbers and loops, for an array's call costs as much as ten of them.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.errors import SnapshotInvalidError
from catalog_store.search.arrays import mapped, mapped_bytes, numbers
from catalog_store.search.credits import CreditPool
from catalog_store.search.layout import FORMAT_FILE, FORMAT_VERSION, HASH_BITS, TAG_BITS, pair_hash, word_hash
from catalog_store.search.titles import TitlePool
from catalog_store.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TAG_MASK = (1 << TAG_BITS) - 1


class TextPool:
    """Numbered texts in one file."""

    def __init__(self, folder: Path, name: str) -> None:
        """`<name>.bin` and `<name>_starts.npy` in `folder`."""
        self._starts = numbers(folder / f"{name}_starts.npy")
        self._bytes = mapped_bytes(folder / f"{name}.bin")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._starts[number] : self._starts[number + 1]].decode()


class Posting(NamedTuple):
    """A pair of words and the documents that hold it, ascending."""

    artist_word: str
    title_word: str
    documents: list[int]


class SearchIndex:
    """One snapshot's index."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the files of layout.py; SnapshotInvalidError when they are of another format."""
        content = json.loads((folder / FORMAT_FILE).read_text())
        if content["format_version"] != FORMAT_VERSION:
            raise SnapshotInvalidError(f"{folder} has search format {content['format_version']}, this program reads {FORMAT_VERSION}")
        self.documents: int = content["documents"]
        self.ids = numbers(folder / "ids.npy")
        self.popularity = numbers(folder / "popularity.npy")
        self.credit_of = numbers(folder / "credit_of.npy")
        credit_starts, credit_artists = (numbers(folder / f"credit_{part}.npy") for part in ("starts", "artists"))
        self.credits = CreditPool(credit_starts, credit_artists, TextPool(folder, "artist"))
        self.vocabulary = Vocabulary(folder)
        units, starts, ranked = (mapped(folder / f"title_{part}.npy") for part in ("units", "starts", "ranked"))
        self.titles = TitlePool(units, starts, ranked, self.vocabulary)
        self._bucket_shift = HASH_BITS - int(content["bucket_bits"])
        self._starts, self._tags, self._posted = (numbers(folder / f"pair_{part}.npy") for part in ("starts", "tags", "documents"))

    def postings(self, artist_words: Sequence[str], title_words: Sequence[str]) -> list[Posting]:
        """Every pair of these words that is in some document."""
        starts, tags, bucket_shift, tag_shift = self._starts, self._tags, self._bucket_shift, self._bucket_shift - TAG_BITS
        right = [(word, word_hash(word)) for word in title_words]
        found = []
        for artist_word in artist_words:
            left_hash = word_hash(artist_word)
            for title_word, right_hash in right:
                pair = pair_hash(left_hash, right_hash)
                bucket, tag = pair >> bucket_shift, pair >> tag_shift & _TAG_MASK
                end = starts[bucket + 1]
                first = bisect_left(tags, tag, starts[bucket], end)
                if first < end and tags[first] == tag:
                    documents = self._posted[first : bisect_right(tags, tag, first, end)]
                    found.append(Posting(artist_word, title_word, documents.tolist()))
        return found
