"""The index opened: arrays by memory map (shared by all processes that open it), candidates for word pairs, texts of documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog_store.errors import SnapshotInvalidError
from catalog_store.search.arrays import mapped, mapped_bytes
from catalog_store.search.credits import CreditPool
from catalog_store.search.layout import FORMAT_FILE, FORMAT_VERSION, HASH_BITS, TAG_BITS
from catalog_store.search.titles import TitlePool
from catalog_store.search.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_TAG_MASK = np.uint64((1 << TAG_BITS) - 1)


class TextPool:
    """Numbered texts in one file."""

    def __init__(self, folder: Path, name: str) -> None:
        """`<name>.bin` and `<name>_starts.npy` in `folder`."""
        self._starts = mapped(folder / f"{name}_starts.npy")
        self._bytes = mapped_bytes(folder / f"{name}.bin")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> bytes:
        return self._bytes[self._starts[number] : self._starts[number + 1]]


class DocumentNames:
    """Names of one document as keys."""

    __slots__ = ("artists", "featured", "title", "variant")

    def __init__(self, artists: Sequence[str], featured: Sequence[str], title: str, variant: str) -> None:
        """`artists` are the primary ones."""
        self.artists = artists
        self.featured = featured
        self.title = title
        self.variant = variant


class SearchIndex:
    """One snapshot's index."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the files of layout.py; SnapshotInvalidError when they are of another format."""
        content = json.loads((folder / FORMAT_FILE).read_text())
        if content["format_version"] != FORMAT_VERSION:
            raise SnapshotInvalidError(f"{folder} has search format {content['format_version']}, this program reads {FORMAT_VERSION}")
        self.documents: int = content["documents"]
        self._bits = int(content["bucket_bits"])
        self.ids = mapped(folder / "ids.npy")
        self.popularity = mapped(folder / "popularity.npy")
        self._credit_of = mapped(folder / "credit_of.npy")
        credit_starts, credit_artists = (mapped(folder / f"credit_{part}.npy") for part in ("starts", "artists"))
        self._credits = CreditPool(credit_starts, credit_artists, TextPool(folder, "artist"))
        self._starts = mapped(folder / "pair_starts.npy")
        self._tags = mapped(folder / "pair_tags.npy")
        self._posted = mapped(folder / "pair_documents.npy")
        self.vocabulary = Vocabulary(folder)
        units, starts, ranked = (mapped(folder / f"title_{part}.npy") for part in ("units", "starts", "ranked"))
        self._titles = TitlePool(units, starts, ranked, self.vocabulary)

    def postings(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """(documents, which): for every posting of every pair the document, and the position in `hashes` of its pair."""
        buckets = hashes >> np.uint64(HASH_BITS - self._bits)
        tags = ((hashes >> np.uint64(HASH_BITS - self._bits - TAG_BITS)) & _TAG_MASK).astype(np.uint16)
        starts = self._starts[buckets].astype(np.int64)
        lengths = self._starts[buckets + np.uint64(1)].astype(np.int64) - starts
        which = np.repeat(np.arange(len(hashes)), lengths)
        ends = np.cumsum(lengths)
        entries = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)
        found = self._tags[entries] == tags[which]
        return self._posted[entries[found]], which[found]

    def title_sizes(self, documents: NDArray[Any]) -> NDArray[np.int64]:
        """Words of the documents' titles, about; a variant is one."""
        return self._titles.sizes(documents)

    def names(self, documents: NDArray[Any]) -> list[DocumentNames]:
        """Names of the documents, in their order."""
        artists = self._credits.artists(self._credit_of[documents])
        return [DocumentNames(*names, *title) for names, title in zip(artists, self._titles.texts(documents), strict=True)]
