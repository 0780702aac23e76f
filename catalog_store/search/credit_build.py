"""The build of the lists of artists: documents -> numbers of lists -> numbers of names, in order of first appearance.

Texts are hashed, and only hashes are compared: 16 bytes a distinct list and a distinct name. A dictionary of the texts took 200 and more.
Two texts share a hash once in 2^64; a document would then show the artists of another list. credits.py specifies the text of a list,
layout.py the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, TextWriter
from catalog_store.folder_listing import list_folder
from catalog_store.search.credits import split_artists
from catalog_store.search.layout import ROLE_BITS, choose_unsigned
from catalog_store.sorted_search import search_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray


class FirstAppearances:
    """The distinct values of a long sequence of hashes, numbered in order of their first appearance."""

    def __init__(self) -> None:
        """Begin with an empty sequence."""
        self.length = 0
        self._hashes = np.empty(0, dtype=np.uint64)
        self._places = np.empty(0, dtype=np.uint32)
        self._waiting: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = []

    def extend(self, hashes: NDArray[np.uint64]) -> None:
        """Append the next hashes of the sequence."""
        distinct, places = np.unique(hashes, return_index=True)
        self._waiting.append((distinct, (places + self.length).astype(np.uint32)))
        self.length += len(hashes)
        # Merged only when as many wait as are known: after each block it would take blocks times values.
        if sum(len(values) for values, _ in self._waiting) > len(self._hashes):
            self._merge()

    def _merge(self) -> None:
        hashes, places = (np.concatenate(columns) for columns in zip((self._hashes, self._places), *self._waiting, strict=True))
        self._waiting.clear()
        # A stable sort keeps the order of places inside a value: the known one first, then block by block.
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        is_first = np.concatenate([[True], hashes[1:] != hashes[:-1]]) if len(hashes) else np.empty(0, dtype=np.bool_)
        self._hashes, self._places = hashes[is_first], places[order][is_first]

    def build_numbers(self) -> Numbers:
        """Return the numbers of all values."""
        self._merge()
        return Numbers(self._hashes, self._places)


class Numbers:
    """A number for each value: 0 for the value that appeared first."""

    def __init__(self, hashes: NDArray[np.uint64], places: NDArray[np.uint32]) -> None:
        """Number `hashes`, which ascend, by the places of their first appearance."""
        order = np.argsort(places)
        self._hashes = hashes
        self.hashes: NDArray[np.uint64] = hashes[order]
        """The value of each number."""
        self._numbers = np.empty(len(places), dtype=np.uint32)
        self._numbers[order] = np.arange(len(places), dtype=np.uint32)
        self.first_places = places[order]
        """The first place of each value, by number."""

    def look(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the number of each value; all of them are known."""
        found: NDArray[np.uint32] = self._numbers[search_many(self._hashes, hashes)]
        return found

    def find_first(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the places from `begin` to `end` at which a value appeared first, counted from `begin`."""
        low, high = np.searchsorted(self.first_places, [begin, end])
        places: NDArray[np.int64] = self.first_places[low:high].astype(np.int64) - begin
        return places


def write_credits(folder: Path, work: Path, read: Callable[[], Iterator[pl.Series]]) -> NDArray[np.uint64]:
    """Write the files of lists and artists. Return the hash of each list, by number.

    `read` yields the lists' texts of all documents, block by block in document order, and is called twice. `work` is an existing folder for
    scratch files.
    """
    found, size_at_most = FirstAppearances(), 0
    for block in read():
        found.extend(hash_texts(block))
        # Names are only known at the end. The bytes of all lists bound theirs, and choose the width of the starts.
        size_at_most += int(block.str.len_bytes().sum())
    lists = found.build_numbers()
    names, entries = _write_lists_of_documents(folder, work, read, lists)
    with (
        ArrayWriter(folder / "credit_starts.npy", choose_unsigned(entries)) as starts,
        ArrayWriter(folder / "credit_artists.npy", np.uint32) as artists,
        TextWriter(folder, "artist", choose_unsigned(size_at_most)) as keys_of_artists,
    ):
        place = 0
        for file in list_folder(work, "credits-*"):
            rows = pl.read_ipc(file)
            keys = rows.drop_nulls("key")
            numbers = names.look(hash_texts(keys["key"]))
            # A list without artists has one row without a key.
            sizes = np.bincount(keys["list"].to_numpy(), minlength=rows["list"][-1] + 1)
            starts.append(artists.length + np.cumsum(sizes) - sizes)
            artists.append((numbers << np.uint32(ROLE_BITS)) + keys["role"].to_numpy())
            keys_of_artists.extend(keys["key"].gather(names.find_first(place, place + keys.height)))
            place += keys.height
            file.unlink()
        starts.append(np.array([artists.length]))
    return lists.hashes


def _write_lists_of_documents(folder: Path, work: Path, read: Callable[[], Iterator[pl.Series]], lists: Numbers) -> tuple[Numbers, int]:
    """Write credit_of.npy, and the artists of each list into `work`. Return the numbers of names and the entries of all lists."""
    names, document = FirstAppearances(), 0
    with ArrayWriter(folder / "credit_of.npy", np.uint32) as credit_of:
        for block, texts in enumerate(read()):
            credit_of.append(lists.look(hash_texts(texts)))
            new = texts.gather(lists.find_first(document, document + len(texts)))
            document += len(texts)
            if not len(new):
                continue
            numbered = new.alias("text").to_frame().with_row_index("list")
            split = split_artists(numbered, "text")
            names.extend(hash_texts(split["key"]))
            numbered.select("list").join(split, on="list", how="left", maintain_order="left").write_ipc(work / f"credits-{block:06d}.arrow")
    return names.build_numbers(), names.length


def hash_texts(texts: pl.Series) -> NDArray[np.uint64]:
    """Return the hash of each text."""
    return texts.hash().to_numpy()
