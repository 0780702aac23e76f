"""Tables `credit_name` and `artist_name`, and a cache with the rows of both that each slice of records needs.

The meaning of a name depends on all names of the build, so full linkage holds `credit_name` whole, and of `artist_name` one platform at a
time. A worker gets only the names of the records and artists of its slice: its memory does not grow with the catalog, and no worker
searches the whole tables.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.sorted_search import search_many
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, write_table
from pipeline.engine.pool import map_ordered
from pipeline.linkage import staged_records
from pipeline.linkage.alias_owners import add_owner_keys
from pipeline.linkage.credits import build_name_table, merge_names
from pipeline.linkage.normal_forms import collect_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from pipeline.engine.pool import Pool
    from pipeline.paths import BuildPaths

_ARTIST = ("platform", "artist_id")
NAMES_PER_MERGE = 1_000_000
"""Names that are merged at a time at least: some 40 MB."""


def write_artist_names(paths: BuildPaths, pieces: Iterable[pl.DataFrame]) -> None:
    """Write `artist_name` from its rows in order, in pieces of any size."""
    with EvenTableWriter(TABLES["artist_name"], paths.table("artist_name")) as writer:
        for piece in pieces:
            writer.append(piece)


def write_name_cache(paths: BuildPaths, folder: Path, slices: list[tuple[int, staged_records.Slice]], pool: Pool) -> None:
    """Write both tables, and into `folder` the rows that each slice needs, by its number (see `read_cached_names`)."""
    folder.mkdir(parents=True)
    credited = map_ordered(partial(_collect_names, folder), slices, pool=pool)
    with_id = pl.lit(value=True)
    parts = staged_records.list_artist_parts(paths)
    listed = (piece.select("name", has_id=with_id) for piece in staged_records.read_artist_pieces(parts))
    # Without copies, each step would keep the texts of those before it: 1.2 GB for the 80 MB of the names of 30 million recordings.
    names = copy_texts(build_name_table(_merge_names(chain(map(pl.read_ipc, credited), listed))))
    names = copy_texts(add_owner_keys(names, staged_records.scan_artist_names(paths), staged_records.read_aliases(paths)))
    write_table(TABLES["credit_name"], paths.table("credit_name"), [names])
    write_artist_names(paths, _write_slices(paths, folder, slices, names))


def _write_slices(
    paths: BuildPaths, folder: Path, slices: list[tuple[int, staged_records.Slice]], names: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """Write the rows that each slice needs, and yield the rows of `artist_name` in order, those of one platform at a time."""
    name_index = _Index.of(names, ("name",))
    # A slice credits artists of its platform only. All artists of 30 million recordings took 3.8 GB.
    for platform in sorted(CATALOG_PLATFORMS):
        artists = staged_records.scan_artist_names(paths, (platform,)).sort(TABLES["artist_name"].order).collect()
        artist_index = _Index.of(artists, _ARTIST)
        for number in (number for number, records in slices if records.part.is_relative_to(paths.staging(platform))):
            own = artists[artist_index.find_places(pl.read_ipc(_build_file_path(folder, number, "ids")))]
            own.write_ipc(_build_file_path(folder, number, "artists"))
            # The name that a platform keeps for an artist can differ from the credited one, so its meaning is needed, too.
            credited = pl.read_ipc(_build_file_path(folder, number, "credited"))["name"]
            wanted = pl.concat([credited, own["name"]]).unique().to_frame()
            names[name_index.find_places(wanted)].write_ipc(_build_file_path(folder, number, "names"))
        yield artists


def _merge_names(pieces: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return `credits.merge_names` of all pieces, without holding the names that pieces repeat."""
    merged = [pl.DataFrame(schema={"name": pl.String, "has_id": pl.Boolean})]
    for piece in pieces:
        merged.append(piece)
        # Each merge costs as much as it holds, so there are as many new rows as merged ones.
        if sum(frame.height for frame in merged[1:]) > max(merged[0].height, NAMES_PER_MERGE):
            merged = [copy_texts(merge_names(pl.concat(merged)))]
    return copy_texts(merge_names(pl.concat(merged)))


def read_cached_names(folder: Path, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of `credit_name` and of `artist_name` that the records of a slice credit."""
    return pl.read_ipc(_build_file_path(folder, number, "names")), pl.read_ipc(_build_file_path(folder, number, "artists"))


def _build_file_path(folder: Path, number: int, what: str) -> Path:
    return folder / f"{number:06d}.{what}.arrow"


def _collect_names(folder: Path, job: tuple[int, staged_records.Slice]) -> Path:
    """Write the names on a slice (name, has_id) and the ids of its artists to the cache, and return the file of the names."""
    number, records = job
    rows = records.read_columns("platform", "artists", "artist_credit")
    ids = rows.select("platform", artist="artists").explode("artist", empty_as_null=False).drop_nulls().unnest("artist")
    with write_aside(_build_file_path(folder, number, "ids")) as pending:
        ids.select(_ARTIST).drop_nulls().unique().write_ipc(pending)
    credited = _build_file_path(folder, number, "credited")
    with write_aside(credited) as pending:
        collect_names(rows).write_ipc(pending)
    return credited


class _Index:
    """Places of the rows of a table by key. Two keys share a hash once in 2^64; the name of one would then be read for the other."""

    def __init__(self, hashes: npt.NDArray[np.uint64], columns: tuple[str, ...]) -> None:
        self._order = hashes.argsort()
        self._hashes = hashes[self._order]
        self._columns = columns

    @classmethod
    def of(cls, table: pl.DataFrame, columns: tuple[str, ...]) -> Self:
        """Index a table by these columns, which are unique in it."""
        return cls(table.select(hash_columns(columns)).to_series().to_numpy(), columns)

    def find_places(self, keys: pl.DataFrame) -> npt.NDArray[np.int64]:
        """Return the places of the keys that the table has, in ascending order."""
        wanted = keys.select(hash_columns(self._columns)).to_series().to_numpy()
        # A key after the last hash has no place; any place will do, because the comparison then fails.
        near = np.minimum(search_many(self._hashes, wanted), len(self._hashes) - 1)
        found: npt.NDArray[np.int64] = np.sort(self._order[near[self._hashes[near] == wanted]]) if len(self._hashes) else near[:0]
        return found
