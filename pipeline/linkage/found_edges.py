"""The edges that a stage has found so far, in files.

The evidence of an edge is a text for people, and no search reads it. So memory holds only which atoms are joined: .4 GB less at 30 million
recordings. Out of scope: which edges there are.
"""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.row_shuffle import read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter
from pipeline.linkage.atoms import BUCKET_BITS, HASH_BITS

if TYPE_CHECKING:
    from pathlib import Path

_EDGE = TABLES["edge"]
_ENDS = ("atom_id_a", "atom_id_b")
_ATOM_IDS = 1 << (BUCKET_BITS + HASH_BITS)
"""Ids of atoms are hashes from 0 to below this number."""
EDGES_PER_RUN = 500_000
"""Edges that are sent to their ranges at a time. Meanwhile they are in memory three times."""


class FoundEdges:
    """Edges in files, in ranges of their smaller atom. `ends` holds 16 bytes of each in memory."""

    def __init__(self, folder: Path, buckets: int) -> None:
        """Begin without an edge. `folder` is emptied: a killed stage may have left edges there. `buckets`: ranges that are sorted alone."""
        shutil.rmtree(folder, ignore_errors=True)
        self._folder = folder
        self._range = -(-_ATOM_IDS // buckets)
        self._buckets = buckets
        self._runs = 0
        self.ends = _EDGE.build_empty().select(_ENDS)
        """The atoms that each edge joins: atom_id_a, atom_id_b."""

    def add(self, *found: pl.DataFrame) -> None:
        """Add rows of table `edge`."""
        for edges in found:
            for some in edges.iter_slices(EDGES_PER_RUN):
                write_run(self._folder, self._runs, some, pl.col("atom_id_a") // self._range)
                self._runs += 1
        self.ends = pl.concat([self.ends, *(edges.select(_ENDS) for edges in found)], rechunk=True)

    def write(self, folder: Path) -> Counter[str]:
        """Write table `edge` in its order, and return the number of edges of each kind."""
        kinds: Counter[str] = Counter()
        with EvenTableWriter(_EDGE, folder) as writer:
            for bucket in range(self._buckets):
                edges = read_bucket(self._folder, bucket)
                if not edges.is_empty():
                    writer.append(edges.sort(_EDGE.order))
                    kinds.update(dict(edges.group_by("kind").len().iter_rows()))
        return kinds
