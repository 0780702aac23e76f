"""Reads of staged fingerprints and landmarks by their keys, a row group at a time.

Fingerprints are wide (5 kB) and staged day by day. Out of scope: which fingerprints count.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.platforms import FINGERPRINT_SOURCES
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.paths import BuildPaths


def has_fingerprints(paths: BuildPaths) -> bool:
    """Return whether any source of fingerprints is staged."""
    return bool(paths.staged("source_fingerprint", FINGERPRINT_SOURCES))


def iterate_fingerprints(paths: BuildPaths, wanted: NDArray[np.int64]) -> Iterator[pl.DataFrame]:
    """Yield fingerprint_key, duration_seconds, items of these keys (ascending), in the order of staging."""
    return _iterate_rows(paths, "source_fingerprint", ["fingerprint_key", "duration_seconds", "items"], wanted)


def iterate_landmarks(paths: BuildPaths, wanted: NDArray[np.int64]) -> Iterator[pl.DataFrame]:
    """Yield fingerprint_key, peaks of those of these keys (ascending) that have landmarks, in the order of staging."""
    return _iterate_rows(paths, "source_landmark", ["fingerprint_key", "peaks"], wanted)


def _iterate_rows(paths: BuildPaths, table: str, columns: list[str], wanted: NDArray[np.int64]) -> Iterator[pl.DataFrame]:
    """Yield these columns of rows with a wanted key. Only row groups that hold some of them are read in full."""
    # A day may deliver a fingerprint again. The first staged copy is taken, and `open_ones` marks the keys that have none yet.
    open_ones = np.ones(len(wanted), dtype=np.bool_)
    staged = paths.staged(table, FINGERPRINT_SOURCES)
    for part in chain.from_iterable(map(list_parts, staged)):
        if not open_ones.any():
            return
        with pq.ParquetFile(part) as file:
            keys = file.read(["fingerprint_key"]).column(0).to_numpy()
            hits = find_known(keys, wanted)
            hits[hits] = open_ones[np.searchsorted(wanted, keys[hits])]
            open_ones[np.searchsorted(wanted, keys[hits])] = False
            start = 0
            for group in range(file.num_row_groups):
                end = start + file.metadata.row_group(group).num_rows
                if hits[start:end].any():
                    rows = pl.DataFrame(file.read_row_group(group, columns))
                    yield rows.filter(pl.Series(hits[start:end]))
                start = end


def find_known(wanted: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask over `wanted` of the keys that are in `known`, which is ascending."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == wanted
    return found
