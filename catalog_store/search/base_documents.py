"""The base of the live snapshot's index: the documents that the next index takes over from it, and when it becomes too old.

A document counts as unchanged if its names, popularity and pairs are those of the base. Its pairs may change without it, because a name is
indexed by its rarest words. The base keeps the best BASE_CAP postings of a pair, and a query reads POSTINGS_CAP. Where too few of them are
left, unchanged documents move to the delta. layout.py specifies the base, and layer_build.py writes it. Beside the catalog, a snapshot has:

  search_digests.npy    uint64 [N]: a digest of names, popularity and pairs of each document
  search_lists.npy      uint64 [L]: the hash of each list of artists
  CUT_POSTINGS          the postings that the base leaves out
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from catalog_store.array_files import map_array, read_in_blocks, release_pages
from catalog_store.layered_order import ITEMS_PER_BLOCK, compare_orders
from catalog_store.published_files import has_published, link_or_copy
from catalog_store.ranked_ids import number_ids
from catalog_store.search.layer_build import CUT_POSTINGS, ListNumbers
from catalog_store.search.layout import BASE_CAP, BASE_FILES, FORMAT_FILE, POSTINGS_CAP
from catalog_store.snapshot import SEARCH_FOLDER, SERVING_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.layered_order import Difference

SEARCH_DIGESTS = "search_digests.npy"
"""Digests of the documents of the base."""
SEARCH_LISTS = "search_lists.npy"
"""Hashes of the lists of artists of the base, by number."""
SEARCH_BASE = (SEARCH_DIGESTS, SEARCH_LISTS, *CUT_POSTINGS)
"""Files that `build_search` writes beside the catalog with a base, for the next build."""
MERGED_AT = 0.1
"""Documents of the delta by those of the base from which all are written as a new base."""
_POSTINGS_PER_BLOCK = 8_000_000
_PAIRS_PER_BLOCK = 2_000
"""Cut pairs whose postings are compared with the documents that no longer count: 10 MB."""


@dataclass(frozen=True)
class BaseDocuments:
    """The base of a snapshot, in its folder."""

    snapshot: Path
    bits: int

    @property
    def folder(self) -> Path:
        """The folder of the index."""
        return self.snapshot / SERVING_FOLDER / SEARCH_FOLDER

    @classmethod
    def open(cls, snapshot: Path | None, version: int) -> BaseDocuments | None:
        """Open the base of a snapshot; None if it is damaged or has another format than `version`."""
        serving = f"{SERVING_FOLDER}/{SEARCH_FOLDER}"
        if snapshot is None or not has_published(snapshot, (*SEARCH_BASE, *(f"{serving}/{name}" for name in (FORMAT_FILE, *BASE_FILES)))):
            return None
        content = json.loads((snapshot / serving / FORMAT_FILE).read_text())
        return cls(snapshot, content["bucket_bits"]) if content["format_version"] == version else None

    def compare(self, ids: NDArray[np.unsignedinteger], digests: NDArray[np.uint64], bits: int) -> Difference | None:
        """Compare all documents with the base; None if a new base has to be written. Some unchanged documents may be in the delta."""
        before, known = map_array(self.folder / "ids.npy"), self.digests
        if bits != self.bits or not len(ids):
            return None
        found = compare_orders(ids, digests, before, known)
        if self.is_small(found.is_new):
            found = found.move(self._find_moved(found.dead))
        return found if self.is_small(found.is_new) else None

    def is_small(self, is_new: NDArray[np.bool_]) -> bool:
        """Return whether so many documents fit a delta."""
        return bool(np.count_nonzero(is_new) <= MERGED_AT * len(self.digests))

    def find_kept(
        self, ids: NDArray[np.unsignedinteger], names: NDArray[np.uint64], base_names: NDArray[np.uint64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
        """Return which documents of the base have the same names among `ids`, and the places of all of them there."""
        if not len(ids) or len(base_names) != len(self.digests):
            return np.zeros(len(self.digests), dtype=np.bool_), np.zeros(len(self.digests), dtype=np.uint32)
        numbers = number_ids(ids)
        kept, places = np.empty(len(base_names), dtype=np.bool_), np.empty(len(base_names), dtype=np.uint32)
        for first, before in zip(
            count(0, ITEMS_PER_BLOCK), read_in_blocks(map_array(self.folder / "ids.npy"), ITEMS_PER_BLOCK), strict=False
        ):
            block = slice(first, first + len(before))
            places[block] = now = numbers[np.minimum(before, len(numbers) - 1)]
            kept[block] = (ids[now] == before) & (names[now] == base_names[block])
            release_pages(base_names)
        return kept, places

    @property
    def digests(self) -> NDArray[np.uint64]:
        """The digest of each document of the base."""
        return map_array(self.snapshot / SEARCH_DIGESTS)

    @property
    def popularity(self) -> NDArray[np.float32]:
        """The popularity of each document of the base."""
        return map_array(self.folder / "popularity.npy")

    def link(self, folder: Path, digests: Path) -> None:
        """Share the files of the base with the index in `folder`."""
        for name in BASE_FILES:
            link_or_copy(self.folder / name, folder / name)
        for name in SEARCH_BASE:
            link_or_copy(self.snapshot / name, digests / name)

    def number_lists(self) -> ListNumbers:
        """Return the numbers of the lists of artists."""
        hashes = map_array(self.snapshot / SEARCH_LISTS)
        order = np.argsort(hashes)
        return ListNumbers(hashes[order], order.astype(np.uint32), len(hashes))

    def _find_moved(self, dead: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which documents of the base, none of them `dead`, have to be in the delta so that no pair lacks postings.

        Where too many postings of a pair are dead, the best documents that the cut left out move. Their postings in other pairs are then
        dead, too, so this goes on until no pair lacks any.
        """
        pairs, documents = self._list_cut_pairs(), map_array(self.folder / "pair_documents.npy")
        cut_places, cut_documents = (map_array(self.snapshot / name) for name in CUT_POSTINGS)
        moved = np.zeros(len(dead), dtype=np.bool_)
        is_complete = not len(pairs)
        while not is_complete:
            is_complete, gone = True, dead | moved
            for first in range(0, len(pairs), _PAIRS_PER_BLOCK):
                block = pairs[first : first + _PAIRS_PER_BLOCK]
                lost = np.count_nonzero(gone[documents[block[:, None] + np.arange(BASE_CAP)]], axis=1) - (BASE_CAP - POSTINGS_CAP)
                for begin, wanted in zip(block[lost > 0].tolist(), lost[lost > 0].tolist(), strict=True):
                    left_out = np.sort(cut_documents[slice(*np.searchsorted(cut_places, [begin, begin + 1]))])
                    # In order of popularity. Those that are dead for another reason may no longer have the pair.
                    chosen = left_out[~dead[left_out]][:wanted]
                    is_complete &= bool(moved[chosen].all())
                    moved[chosen] = True
                release_pages(documents)
        return moved

    def _list_cut_pairs(self) -> NDArray[np.int64]:
        """Return where the postings of each pair begin that has as many as the base keeps."""
        starts, tags = (map_array(self.folder / f"pair_{name}.npy") for name in ("starts", "tags"))
        found = [np.empty(0, dtype=np.int64)]
        for first in range(0, max(0, len(tags) - BASE_CAP + 1), _POSTINGS_PER_BLOCK):
            block = tags[first : first + _POSTINGS_PER_BLOCK + BASE_CAP - 1]
            begins = first + np.flatnonzero(block[: len(block) - BASE_CAP + 1] == block[BASE_CAP - 1 :])
            # Tags ascend inside a bucket, so equal ones at this distance in one bucket are a pair that was cut.
            ends = begins + BASE_CAP - 1
            found.append(begins[np.searchsorted(starts, begins, side="right") == np.searchsorted(starts, ends, side="right")])
            release_pages(tags)
        return np.concatenate(found)
