"""The build of `serving/lists/` from the tables of a snapshot. Only id-sized columns are held whole; posting_lists.py sorts the lists.

list_layers.py lays them down as a base and a delta, in the format of list_format.py. serving/serving_build.py writes their lengths into
`serving.sqlite`.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from catalog_store.lists.dates import LEAST_HEARD, encode_stamp_expr, encode_unheard_expr
from catalog_store.lists.list_format import DELTA_FOLDER, FORMAT_FILE, FORMAT_VERSION
from catalog_store.lists.list_layers import find_base, has_outgrown, write_order, write_owned_lists
from catalog_store.ranked_ids import sort_blocks
from catalog_store.snapshot import SCRATCH_FOLDER
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, list_parts, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from catalog_store.lists.list_layers import LayeredOrder

    Tables = Mapping[str, Path]
    Lengths = dict[str, NDArray[np.uint32]]
    Pairs = Iterator[tuple[NDArray[np.int64], NDArray[np.uint32]]]

ROWS_PER_BATCH = 1_000_000
_DATED = ("release_date", "release_date_precision")
_UNDATED = 2**32 - 1
"""Larger than every stamp."""


def build_lists(tables: Tables, folder: Path, previous: Path | None = None) -> Lengths:
    """Write all files into the new folder `folder`. Return the lengths of the lists of each kind, by id.

    The base of the snapshot `previous` is shared as long as little differs from it.
    """
    base = find_base(previous)
    lengths = _write_all(tables, folder, base)
    if base and has_outgrown(folder):
        shutil.rmtree(folder)
        lengths = _write_all(tables, folder, None)
    return lengths


def _write_all(tables: Tables, folder: Path, base: Path | None) -> Lengths:
    folder.mkdir()
    (folder / DELTA_FOLDER).mkdir()
    scratch = folder / SCRATCH_FOLDER
    scratch.mkdir()
    (folder / FORMAT_FILE).write_text(json.dumps({"format_version": FORMAT_VERSION}))
    lengths = {}

    def write(name: str, pairs: Callable[[NDArray[np.uint32]], Pairs], order: LayeredOrder) -> None:
        owners = find_largest_id(tables, name.partition("_")[0]) + 1
        lengths[name] = write_owned_lists(folder, base, name, lambda: pairs(order.numbers), owners, order, scratch)

    tracks = write_order(folder, base, "track", *_sort_tracks(tables))
    labels = _read_release_column(tables, "label_id")
    write("genre_tracks", partial(_read_genre_pairs, tables), tracks)
    write("label_tracks", partial(_read_label_pairs, tables, labels), tracks)
    write("artist_tracks", partial(_read_artist_pairs, tables), tracks)
    # Four bytes per id, no longer needed while releases are sorted.
    del tracks
    releases = write_order(folder, base, "release", *_sort_releases(tables))
    write("label_releases", partial(_read_release_pairs, labels), releases)
    write("artist_releases", partial(_read_release_pairs, _read_release_column(tables, "artist_id")), releases)
    shutil.rmtree(scratch)
    return lengths


def _sort_tracks(tables: Tables) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint32]]:
    """Return the recording ids, the newest first, and their stamps."""
    shown, found = _find_earliest_stamps(tables), list_parts(tables["recording"])
    return sort_blocks(lambda: (_read_stamps(part, shown) for part in found), count_rows(tables["recording"]))


def _read_stamps(part: Path, shown: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return (recording ids, their stamps) of a part; `shown` are the earliest stamps of their releases, by id."""
    # Part by part: the dates of all recordings as texts would take 40 bytes each.
    rows = pl.read_parquet(part, columns=["recording_id", *_DATED]).select("recording_id", stamp=encode_stamp_expr(*_DATED))
    ids = rows["recording_id"].to_numpy()
    # A track shows its releases. A position by any date but the earliest of theirs looks wrong to a reader.
    return ids, np.where(shown[ids] < _UNDATED, shown[ids], rows["stamp"].to_numpy())


def _find_earliest_stamps(tables: Tables) -> NDArray[np.uint32]:
    """Return by recording id the earliest stamp of its releases, _UNDATED where none has a date."""
    stamps = np.full(find_largest_id(tables, "release") + 1, _UNDATED, dtype=np.uint32)
    for part in list_parts(tables["release"]):
        rows = pl.read_parquet(part, columns=["release_id", *_DATED]).select("release_id", stamp=encode_stamp_expr(*_DATED))
        # Stamp 0 means no date. It would win every minimum, so it becomes the largest value.
        stamps[rows["release_id"].to_numpy()] = rows["stamp"].replace(0, _UNDATED).to_numpy()
    earliest = np.full(find_largest_id(tables, "recording") + 1, _UNDATED, dtype=np.uint32)
    for recordings, on in _read_batches(tables, "recording_release", "recording_id", "release_id"):
        # `minimum.at` takes each pair in turn; a plain assignment by index would keep only one of several releases of a recording.
        np.minimum.at(earliest, recordings, stamps[on])
    return earliest


def _sort_releases(tables: Tables) -> tuple[NDArray[np.integer], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the release ids, the newest first, their stamps, and `unheard` of their artists."""
    # The last entry belongs to no artist: it stands for the artists that the table lacks, which the invariants report.
    unheard_by_artist = np.full(find_largest_id(tables, "artist") + 2, LEAST_HEARD, dtype=np.uint32)
    for part in list_parts(tables["artist"]):
        artists = pl.read_parquet(part, columns=["artist_id", "popularity"]).select("artist_id", unheard=encode_unheard_expr("popularity"))
        unheard_by_artist[artists["artist_id"].to_numpy()] = artists["unheard"].to_numpy()
    rows = count_rows(tables["release"])
    ids, keys, filled = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.uint64), 0
    for part in list_parts(tables["release"]):
        read = pl.read_parquet(part, columns=["release_id", "artist_id", *_DATED])
        block = slice(filled, filled := filled + read.height)
        ids[block] = read["release_id"].to_numpy()
        # One number sorts by stamp descending, then by `unheard` ascending.
        keys[block] = ~read.select(encode_stamp_expr(*_DATED)).to_series().to_numpy()
        keys[block] <<= np.uint64(32)
        keys[block] |= unheard_by_artist.take(read["artist_id"].to_numpy(), mode="clip")
    order = np.lexsort((ids, keys))
    ids, keys = ids[order], keys[order]
    unheard = keys.astype(np.uint32)
    keys >>= np.uint64(32)
    return ids, ~keys.astype(np.uint32), unheard


def _read_genre_pairs(tables: Tables, track_numbers: NDArray[np.uint32]) -> Pairs:
    parents = dict(read_table(TABLES["genre"], tables["genre"]).select("genre_id", "parent_id").iter_rows())
    # Id 0 is not a genre, so it marks the end of the climb.
    above = np.array([parents.get(genre) or 0 for genre in range(max(parents, default=0) + 1)], dtype=np.int64)
    for recordings, genres in _read_batches(tables, "recording_genre", "recording_id", "genre_id"):
        numbers, nodes = track_numbers[recordings], genres
        # A track counts for its genre and for all genres above it, so the pairs climb the tree level by level.
        while len(nodes):
            yield nodes, numbers
            nodes, numbers = above[nodes], numbers[above[nodes] != 0]
            nodes = nodes[nodes != 0]


def _read_artist_pairs(tables: Tables, track_numbers: NDArray[np.uint32]) -> Pairs:
    for recordings, artists in _read_batches(tables, "recording_artist", "recording_id", "artist_id"):
        yield artists, track_numbers[recordings]


def _read_label_pairs(tables: Tables, labels: NDArray[np.uint32], track_numbers: NDArray[np.uint32]) -> Pairs:
    for recordings, releases in _read_batches(tables, "recording_release", "recording_id", "release_id"):
        owners = labels[releases].astype(np.int64)
        yield owners[owners != 0], track_numbers[recordings[owners != 0]]


def _read_release_pairs(owners: NDArray[np.uint32], release_numbers: NDArray[np.uint32]) -> Pairs:
    releases = np.flatnonzero(owners)
    yield owners[releases].astype(np.int64), release_numbers[releases]


def _read_release_column(tables: Tables, column: str) -> NDArray[np.uint32]:
    """Return an id column of `release` by release id, 0 for none."""
    values = np.zeros(find_largest_id(tables, "release") + 1, dtype=np.uint32)
    for part in list_parts(tables["release"]):
        rows = pl.read_parquet(part, columns=["release_id", column]).with_columns(pl.col(column).fill_null(0))
        values[rows["release_id"].to_numpy()] = rows[column].to_numpy()
    return values


def find_largest_id(tables: Tables, entity: str) -> int:
    """Return the largest id of a table; 0 when it is empty."""
    largest = (pl.read_parquet(part, columns=[f"{entity}_id"]).to_series().max() for part in list_parts(tables[entity]))
    return max((found for found in largest if isinstance(found, int)), default=0)


def _read_batches(tables: Tables, table: str, *columns: str) -> Iterator[tuple[NDArray[np.int64], ...]]:
    for part in list_parts(tables[table]):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(ROWS_PER_BATCH, columns=list(columns)):
                yield tuple(batch.column(name).to_numpy().astype(np.int64) for name in columns)
