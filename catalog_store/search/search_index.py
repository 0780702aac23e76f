"""The open index: arrays mapped into memory, shared by all processes that open it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog_store.array_files import map_array, map_bytes, map_numbers
from catalog_store.format_versions import require_readable
from catalog_store.name_keys.romanisation import load_letters
from catalog_store.search.layout import DELTA_FOLDER, FORMAT_FILE, READ_VERSIONS, ROLE_BITS, WITH_ALIASES
from catalog_store.search.vocabulary import Vocabulary
from catalog_store.search.walks import Column, Credits, Postings, Titles

if TYPE_CHECKING:
    from mmap import mmap
    from pathlib import Path

    from numpy.typing import NDArray


class SearchIndex:
    """The token-pair index of one snapshot: posting lists, titles, credits and the vocabulary."""

    def __init__(self, folder: Path) -> None:
        """Open the files that layout.py specifies in `folder`; SnapshotInvalidError when they have another format."""
        load_letters()
        content = json.loads((folder / FORMAT_FILE).read_text())
        require_readable(folder, "search", content["format_version"], READ_VERSIONS)
        self.documents: int = content["documents"]
        base, delta = layers = folder, folder / DELTA_FOLDER
        self.ids, self.popularity, self.credit_of = (
            Column(*(map_numbers(layer / f"{name}.npy") for layer in layers)) for name in ("ids", "popularity", "credit_of")
        )
        listed = [(*_map_arrays(layer, "credit_starts", "credit_artists"), *_map_texts(layer, "artist")) for layer in layers]
        self.credits = Credits(listed[0], listed[1], ROLE_BITS if content["format_version"] >= WITH_ALIASES else 1)
        self.titles = Titles(*((*_map_arrays(layer, "title_starts", "title_units"), *_map_texts(layer, "title_word")) for layer in layers))
        self.vocabulary = Vocabulary(folder)
        self.postings = Postings(
            _map_pairs(base),
            _map_pairs(delta),
            content["bucket_bits"],
            content["delta_bucket_bits"],
            map_array(folder / "dead.npy"),
            map_array(delta / "places.npy"),
        )

    def count_title_words(self, documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of words of each document's title; a variant counts as one."""
        counts = np.empty(len(documents), dtype=np.int64)
        self.titles.count_words(documents, counts)
        return counts


def _map_arrays(layer: Path, *names: str) -> tuple[NDArray[Any], NDArray[Any]]:
    one, other = (map_array(layer / f"{name}.npy") for name in names)
    return one, other


def _map_texts(layer: Path, name: str) -> tuple[NDArray[Any], bytes | mmap]:
    return map_array(layer / f"{name}_starts.npy"), map_bytes(layer / f"{name}.bin")


def _map_pairs(layer: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    starts, tags, documents = (map_array(layer / f"pair_{name}.npy") for name in ("starts", "tags", "documents"))
    return starts, tags, documents
