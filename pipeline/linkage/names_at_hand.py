"""Tables `credit_name` and `artist_name`, and the few rows of both that a slice of records needs.

What a name means depends on all names of the build, so the tables are made, and held, whole. Who normalises a slice is given the names of
its records and artists only: its memory does not grow with the catalog, and nobody looks through the tables once for each slice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from catalog_store.record_keys.numbers import hashed
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.engine.local import map_ordered
from pipeline.linkage import staged
from pipeline.linkage.credits import name_table
from pipeline.linkage.normalise import names_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from pipeline.engine.local import Pool
    from pipeline.paths import BuildPaths

_ARTIST = ("platform", "artist_id")


def write_names(paths: BuildPaths, artists: pl.DataFrame, names: pl.DataFrame) -> None:
    """Write `artist_name` and `credit_name`."""
    write_table(TABLES["credit_name"], paths.table("credit_name"), [names])
    write_table(TABLES["artist_name"], paths.table("artist_name"), [artists])


def hand_out_names(paths: BuildPaths, folder: Path, slices: list[tuple[int, staged.Slice]], pool: Pool) -> None:
    """Write both tables, and into `folder` what each slice needs of them, by its number (see `names_at_hand`)."""
    folder.mkdir(parents=True)
    found = [pl.DataFrame(schema={"name": pl.String, "has_id": pl.Boolean})]
    found += map_ordered(partial(_names_in, folder), slices, pool=pool)
    artists = staged.artist_names(paths).sort(TABLES["artist_name"].order)
    names = name_table(pl.concat([*found, artists.select("name", has_id=pl.lit(value=True))]))
    write_names(paths, artists, names)
    artist_index, name_index = _Index.of(artists, _ARTIST), _Index.of(names, ("name",))
    for (number, _), credited in zip(slices, found[1:], strict=True):
        own = artists[artist_index.places(pl.read_ipc(_file(folder, number, "ids")))]
        own.write_ipc(_file(folder, number, "artists"))
        wanted = pl.concat([credited["name"], own["name"]]).unique().to_frame()
        names[name_index.places(wanted)].write_ipc(_file(folder, number, "names"))


def names_at_hand(folder: Path, number: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `credit_name` and of `artist_name` for a slice: all that its records credit."""
    return pl.read_ipc(_file(folder, number, "names")), pl.read_ipc(_file(folder, number, "artists"))


def _file(folder: Path, number: int, what: str) -> Path:
    return folder / f"{number:06d}.{what}.arrow"


def _names_in(folder: Path, job: tuple[int, staged.Slice]) -> pl.DataFrame:
    """The names on a slice: name, has_id; the ids of its artists are laid down."""
    number, records = job
    rows = records.columns("platform", "artists", "artist_credit")
    ids = rows.select("platform", artist="artists").explode("artist", empty_as_null=False).drop_nulls().unnest("artist")
    ids.select(_ARTIST).drop_nulls().unique().write_ipc(_file(folder, number, "ids"))
    return names_of(rows)


class _Index:
    """Where in a table the row of a key stands. A key that is taken for another (1 in 2^64) would be read under the other's name."""

    def __init__(self, hashes: npt.NDArray[np.uint64], columns: tuple[str, ...]) -> None:
        self._order = hashes.argsort()
        self._hashes = hashes[self._order]
        self._columns = columns

    @classmethod
    def of(cls, table: pl.DataFrame, columns: tuple[str, ...]) -> Self:
        """By these columns, which are unique in the table."""
        return cls(table.select(hashed(columns)).to_series().to_numpy(), columns)

    def places(self, keys: pl.DataFrame) -> npt.NDArray[np.int64]:
        """Of the keys that stand in the table, in ascending order."""
        wanted = keys.select(hashed(self._columns)).to_series().to_numpy()
        near = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        found: npt.NDArray[np.int64] = np.sort(self._order[near[self._hashes[near] == wanted]]) if len(self._hashes) else near[:0]
        return found
