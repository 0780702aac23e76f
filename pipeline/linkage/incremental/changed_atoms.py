"""The atoms in which a night differs from its base, read bucket by bucket with the atoms around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, read_table
from pipeline.linkage.atoms import HASH_BITS, compute_bucket_range
from pipeline.linkage.mapped_atoms import open_tonight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

ATOM_COLUMNS = TABLES["atom"].column_names
"""Columns of an atom without the numbers for searches, which are half of its bytes."""


class ChangedAtoms(NamedTuple):
    """The atoms of the base and of tonight, and the ids that only one of them holds, sorted.

    `all_rows`: rows of tonight's table `atom`, those of `atom_gone` included. `buckets`: so many that a bucket of all atoms fits into
    memory.
    """

    before: MappedAtoms
    atoms: MappedAtoms
    gone: pl.Series
    made: pl.Series
    all_rows: int
    buckets: int

    @classmethod
    def read(cls, paths: BuildPaths, night: Night, buckets: int) -> ChangedAtoms:
        """Read what `write_atoms` has found."""
        change = read_table(TABLES["atom_change"], paths.table("atom_change"))
        gone, made = (change.filter(pl.col("change") == kind)["atom_id"].sort() for kind in ("gone", "made"))
        return cls(night.atoms, open_tonight(paths), gone, made, count_rows(paths.table("atom")), buckets)

    def read_columns(self, table: str, columns: list[str]) -> pl.DataFrame:
        """Return some columns of `table` for all atoms that differ."""
        return pl.concat([where.read_atom_rows(table, ids, columns) for where, ids in ((self.before, self.gone), (self.atoms, self.made))])

    def count_buckets(self, atoms: int) -> int:
        """Return in how many buckets to take this number of atoms."""
        return min(self.buckets, 1 + self.buckets * atoms // max(1, self.all_rows))

    def read_artists(self, near: pl.Series) -> Iterator[Surroundings]:
        """Yield the rows of the atoms `near` (ids), and of those that differ, some artists at a time."""
        near, buckets = near.sort(), self.count_buckets(len(near))
        for bucket in range(buckets):
            # Atoms of one artist have the same upper bits.
            first, last = compute_bucket_range(bucket, buckets)
            yield self._read(*(ids.filter(ids.is_between(first, last)) for ids in (near, self.gone, self.made)))

    def read_titles(self) -> Iterator[Surroundings]:
        """Yield the rows of all atoms that share a title with one that differs, some titles at a time."""
        columns = ["atom_id", "title"]
        gone, made = self.before.read_atom_rows("atom", self.gone, columns), self.atoms.read_atom_rows("atom", self.made, columns)
        titles = pl.concat([gone["title"], made["title"]]).unique()
        near = self.atoms.read_rows("atom", columns, pl.col("title").is_in(titles.implode()))
        buckets = self.count_buckets(near.height)
        for bucket in range(buckets):
            yield self._read(*(rows.filter(pl.col("title") % buckets == bucket)["atom_id"] for rows in (near, gone, made)))

    def read_bucket_mates(self, of: pl.DataFrame) -> pl.DataFrame:
        """Return all atoms of the artists of some atoms, and of the few artists whose hashes begin with the same BUCKET_BITS."""
        bucket = pl.col("atom_id") // (1 << HASH_BITS)
        ids = self.atoms.read_rows("atom", ["atom_id"], bucket.is_in(of.select(bucket.unique()).to_series().implode()))
        return self.atoms.read_atom_rows("atom", ids["atom_id"], ATOM_COLUMNS)

    def _read(self, near: pl.Series, gone: pl.Series, made: pl.Series) -> Surroundings:
        return Surroundings(
            self.atoms.read_atom_rows("atom", near, ATOM_COLUMNS), self.before.read_atom_rows("atom", gone, ATOM_COLUMNS), made
        )


class Surroundings(NamedTuple):
    """Atoms that share blocks with some of those that differ.

    `atoms`: rows of tonight; `gone`: rows of the base that tonight lacks; `made`: ids among `atoms` that the base lacks.
    """

    atoms: pl.DataFrame
    gone: pl.DataFrame
    made: pl.Series

    @property
    def before(self) -> pl.DataFrame:
        """The rows of `atoms` as they were in the base."""
        return pl.concat([self.atoms.filter(~pl.col("atom_id").is_in(self.made.implode())), self.gone])
