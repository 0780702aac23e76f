"""The index opened: arrays by memory map (shared by all processes that open it), documents of word pairs, names of documents.

A query looks at a few dozen values here and there: plain numbers and loops, for an array's call costs as much as ten of them.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.errors import SnapshotInvalidError
from catalog_store.search.arrays import mapped, mapped_bytes, numbers
from catalog_store.search.credits import CreditPool
from catalog_store.search.layout import FORMAT_FILE, FORMAT_VERSION, HASH_BITS, TAG_BITS
from catalog_store.search.titles import TitlePool
from catalog_store.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

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
        self._tag_shift = self._bucket_shift - TAG_BITS
        self._starts, self._tags, self._posted = (numbers(folder / f"pair_{part}.npy") for part in ("starts", "tags", "documents"))

    def holders(self, pairs: Iterable[int]) -> list[list[int]]:
        """For each pair of words the documents that hold it, ascending; none as a rule."""
        starts, tags, posted, bucket_shift, tag_shift = self._starts, self._tags, self._posted, self._bucket_shift, self._tag_shift
        every: list[list[int]] = []
        for pair in pairs:
            bucket, tag = pair >> bucket_shift, pair >> tag_shift & _TAG_MASK
            end = starts[bucket + 1]
            first = bisect_left(tags, tag, starts[bucket], end)
            is_held = first < end and tags[first] == tag
            every.append(posted[first : bisect_right(tags, tag, first, end)].tolist() if is_held else [])
        return every

    def held(self, pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Those of many pairs that have holders, in their order; in a third of the time of `holders`."""
        all_starts, all_tags = np.asarray(self._starts), np.asarray(self._tags)
        buckets, tags = pairs >> self._bucket_shift, pairs >> self._tag_shift & _TAG_MASK
        starts = all_starts[buckets].astype(np.int64)
        lengths = all_starts[buckets + 1].astype(np.int64) - starts
        which = np.repeat(np.arange(len(pairs)), lengths)
        entries = np.arange(len(which)) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        held: NDArray[np.uint64] = pairs[np.unique(which[all_tags[entries] == tags[which]])]
        return held
