"""The open index: arrays mapped into memory, shared by all processes that open it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import map_array, map_bytes, map_numbers
from catalog_store.format_versions import require_readable
from catalog_store.search.layout import FORMAT_FILE, HASH_BITS, READ_VERSIONS
from catalog_store.search.vocabulary import Vocabulary
from catalog_store.search.walks import Credits, Postings, Titles

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class SearchIndex:
    """The token-pair index of one snapshot: posting lists, titles, credits and the vocabulary."""

    def __init__(self, folder: Path) -> None:
        """Open the files that layout.py specifies in `folder`; SnapshotInvalidError when they have another format."""
        content = json.loads((folder / FORMAT_FILE).read_text())
        require_readable(folder, "search", content["format_version"], READ_VERSIONS)
        self.documents: int = content["documents"]
        # Arrays of which a query reads single values are memory views: half the time of a NumPy access.
        self.ids = map_numbers(folder / "ids.npy")
        self.popularity = map_numbers(folder / "popularity.npy")
        self.credit_of = map_numbers(folder / "credit_of.npy")
        credit_starts, credit_artists, name_starts = (
            map_array(folder / f"{name}.npy") for name in ("credit_starts", "credit_artists", "artist_starts")
        )
        self.credits = Credits(credit_starts, credit_artists, name_starts, map_bytes(folder / "artist.bin"))
        self.vocabulary = Vocabulary(folder)
        # `_title_starts` stays a NumPy array: the sizes of many titles are read in one operation.
        self._title_starts, units, ranked = (map_array(folder / f"title_{part}.npy") for part in ("starts", "units", "ranked"))
        word_starts, words = map_array(folder / "vocabulary_starts.npy"), map_bytes(folder / "vocabulary.bin")
        self.titles = Titles(self._title_starts, units, ranked, word_starts, words)
        pair_starts, tags, posted = (map_array(folder / f"pair_{part}.npy") for part in ("starts", "tags", "documents"))
        self.postings = Postings(pair_starts, tags, posted, HASH_BITS - int(content["bucket_bits"]))

    def count_title_units(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of units of each document's title: about one per word, the variant counts as one."""
        sizes: NDArray[np.int64] = self._title_starts[documents + 1].astype(np.int64) - self._title_starts[documents].astype(np.int64)
        return sizes
