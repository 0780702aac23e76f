"""The index opened: arrays by memory map (shared by all processes that open it), documents of word pairs, names of documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.errors import SnapshotInvalidError
from catalog_store.search.arrays import mapped, mapped_bytes, numbers
from catalog_store.search.layout import FORMAT_FILE, FORMAT_VERSION, HASH_BITS
from catalog_store.search.vocabulary import Vocabulary
from catalog_store.search.walks import Credits, Postings, Titles

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


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
        credit_starts, credit_artists, name_starts = (
            mapped(folder / f"{name}.npy") for name in ("credit_starts", "credit_artists", "artist_starts")
        )
        self.credits = Credits(credit_starts, credit_artists, name_starts, mapped_bytes(folder / "artist.bin"))
        self.vocabulary = Vocabulary(folder)
        self._title_starts, units, ranked = (mapped(folder / f"title_{part}.npy") for part in ("starts", "units", "ranked"))
        word_starts, words = mapped(folder / "vocabulary_starts.npy"), mapped_bytes(folder / "vocabulary.bin")
        self.titles = Titles(self._title_starts, units, ranked, word_starts, words)
        pair_starts, tags, posted = (mapped(folder / f"pair_{part}.npy") for part in ("starts", "tags", "documents"))
        self.postings = Postings(pair_starts, tags, posted, HASH_BITS - int(content["bucket_bits"]))

    def title_sizes(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Units of several documents' titles: about a word each, a variant among them."""
        sizes: NDArray[np.int64] = self._title_starts[documents + 1].astype(np.int64) - self._title_starts[documents].astype(np.int64)
        return sizes
