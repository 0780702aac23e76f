"""The names of documents in scratch files, by range of documents: those of all documents, or at night of those that may have changed.

Tables are read by blocks of ids, because they are stored in that order; the index needs names in document order. So a shuffle brings the
names of blocks (document, artists, title, sounds) to ranges of documents. documents.py builds names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.ranked_ids import number_ids
from catalog_store.record_keys.row_digests import DIGEST
from catalog_store.remembered_texts import read_anew
from catalog_store.row_shuffle import write_run
from catalog_store.search.documents import build_names, digest_rows_of_names, read_rows
from catalog_store.search.layer_build import NAMES, read_names_of_range
from catalog_store.search.other_names import OtherNames, write_other_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.job_runner import JobRunner
    from catalog_store.remembered_texts import TextMemory

    Digests = NDArray[np.uint64]

_TITLES = "search-titles"
_MOST_BLOCKS = 1_000_000
"""More than there are blocks: the runs of a turn are numbered behind those of earlier turns."""


class _Block(NamedTuple):
    """The recordings of a range of ids, and their documents, by id from `first` on."""

    number: int
    first: int
    last: int
    documents: NDArray[np.uint32]
    chosen: NDArray[np.integer] | None = None
    """Ids of the recordings whose names are wanted; None for all."""

    def select_rows(self) -> pl.Expr:
        recording = pl.col("recording_id")
        is_inside = recording.is_between(self.first, self.last)
        return is_inside if self.chosen is None else is_inside & recording.is_in(pl.Series(self.chosen, dtype=pl.Int64).implode())


class NameFiles:
    """The names in the scratch folder `work`."""

    def __init__(
        self,
        tables: Mapping[str, Path],
        ranked: NDArray[np.unsignedinteger],
        work: Path,
        size: int,
        run: JobRunner,
        texts: TextMemory | None,
    ) -> None:
        """Prepare to build names of the documents whose ids are `ranked`, in ranges of `size`."""
        self.work, self.size = work, size
        self.ranges = max(1, -(-len(ranked) // size))
        self._tables, self._ranked, self._run, self._texts = tables, ranked, run, texts
        self._made = np.zeros(len(ranked), dtype=np.bool_)
        self._turn = 0
        write_other_names(tables, work, texts)

    def build_all(self, seed: int) -> Digests:
        """Build the names of all documents that have none yet. Return the digests of all, as `digest` does."""
        build = partial(_build_block, self._tables, self.work, self.size, self._texts, self._turn, seed)
        blocks = self._list_blocks(None if not self._made.any() else ~self._made)
        found = self._collect(self._run(build, blocks))
        self._made[:] = True
        if self._texts:
            self._texts.keep_only(_TITLES, [_name_titles(number) for number in range(self.ranges)])
        return found

    def build(self, chosen: NDArray[np.bool_]) -> None:
        """Build the names of the `chosen` documents that have none yet."""
        wanted = chosen & ~self._made
        # Remembering these few texts would forget those of all other documents.
        build = partial(_build_block, self._tables, self.work, self.size, None, self._turn, 0)
        for _ in self._run(build, self._list_blocks(wanted) if wanted.any() else []):
            pass
        self._made |= chosen
        self._turn += 1

    def digest(self, seed: int) -> Digests:
        """Return by document the digest of all rows that its names are built from, without building them; never 0."""
        return self._collect(self._run(partial(_digest_block, self._tables, self.work, seed), self._list_blocks(None)))

    def read(self, chosen: NDArray[np.bool_] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the names of all documents that were built, or of the `chosen` ones, range by range in document order."""
        for part in range(self.ranges):
            names = read_names_of_range(self.work, part)
            yield names if chosen is None else names.filter(pl.Series(chosen[names["document"].to_numpy()]))

    def _collect(self, found: Iterator[tuple[NDArray[np.uint32], Digests]]) -> Digests:
        digests = np.zeros(len(self._ranked), dtype=np.uint64)
        for documents, values in found:
            digests[documents] = values
        return digests

    def _list_blocks(self, chosen: NDArray[np.bool_] | None) -> Iterator[_Block]:
        ids = np.sort(self._ranked)
        # The first and the last id of each block.
        bounds = [(int(ids[begin]), int(ids[min(begin + self.size, len(ids)) - 1])) for begin in range(0, len(ids), self.size)]
        del ids
        numbers = number_ids(self._ranked)
        wanted = None if chosen is None else np.sort(self._ranked[chosen])
        for number, (first, last) in enumerate(bounds):
            inside = None if wanted is None else wanted[slice(*np.searchsorted(wanted, [first, last + 1]))]
            if inside is None or len(inside):
                yield _Block(number, first, last, numbers[first : last + 1], inside)


def _name_titles(number: int) -> str:
    """Return the name under which the titles of a block are remembered."""
    return f"{_TITLES}-{number:06d}"


def _digest_block(tables: Mapping[str, Path], work: Path, seed: int, block: _Block) -> tuple[NDArray[np.uint32], Digests]:
    """Return the documents of a block and their digests."""
    rows = read_rows(tables, block.select_rows())
    digests = digest_rows_of_names(rows, OtherNames.read(work, rows.credits_), seed)
    return block.documents[digests["recording_id"].to_numpy() - block.first], digests[DIGEST].to_numpy()


def _build_block(
    tables: Mapping[str, Path], work: Path, size: int, texts: TextMemory | None, turn: int, seed: int, block: _Block
) -> tuple[NDArray[np.uint32], Digests]:
    """Write the names of a block. Return its documents and their digests."""
    recall = partial(texts.recall, _name_titles(block.number)) if texts else read_anew
    rows = read_rows(tables, block.select_rows())
    other = OtherNames.read(work, rows.credits_)
    found = build_names(rows, other, recall)
    documents = block.documents[found["recording_id"].to_numpy() - block.first]
    names = found.select(pl.Series("document", documents), "artists", "title", "sounds")
    write_run(work / NAMES, turn * _MOST_BLOCKS + block.number, names, pl.col("document") // size)
    digests = digest_rows_of_names(rows, other, seed)
    return block.documents[digests["recording_id"].to_numpy() - block.first], digests[DIGEST].to_numpy()
