"""Tests that typing errors of a night, searched around the atoms that differ, are those of a search of all atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import typo_edges
from pipeline.linkage.atoms import HASH_BITS
from pipeline.linkage.incremental.changed_atoms import ChangedAtoms
from pipeline.linkage.incremental.typo_changes import search_artists, search_titles
from pipeline.linkage.typo_edges import BLOCKS, find_same_artist_edges, find_same_title_edges

if TYPE_CHECKING:
    from pipeline.linkage.mapped_atoms import MappedAtoms

ARTISTS = ("", "cherilyn", "cherylin", "didoarmstrong", "didoarmstrng", "kirovorchestra")
TITLES = ("takeonme", "takeonmee", "anotherday", "anothrday", "feverfever")
LENGTHS = (None, 200_000, 201_500, 204_000, 207_000, 240_000, 241_500, 244_000)
"""Two groups far apart, so that an artist has atoms that share no block with the one that changed."""


class Table:
    """Table `atom` in memory, with the numbers of blocks."""

    def __init__(self, rows: dict[int, dict[str, object]]) -> None:
        table = TABLES["atom"].conform(pl.DataFrame(list(rows.values()), schema_overrides={"duration_ms": pl.Int32}))
        self.rows = table.with_columns(**BLOCKS)

    def read_rows(self, _name: str, columns: list[str], where: pl.Expr) -> pl.DataFrame:
        return self.rows.filter(where).select(columns)

    def read_atom_rows(self, _name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        return self.rows.filter(pl.col("atom_id").is_in(atom_ids.implode())).select(columns)

    def find_pairs(self) -> set[tuple[object, ...]]:
        return set(pl.concat([find_same_artist_edges(self.rows), find_same_title_edges(self.rows)]).iter_rows())


class World:
    """Atoms with few names, so that each shares blocks with many. Atoms of one artist have the same upper bits."""

    def __init__(self, seed: int, atoms: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.next, self.rows = 1, dict[int, dict[str, object]]()
        for _ in range(atoms):
            self.add()

    def add(self) -> None:
        artist, title, length = (int(self.rng.integers(len(values))) for values in (ARTISTS, TITLES, LENGTHS))
        atom_id = ((artist * 9973) << HASH_BITS) + self.next
        self.rows[atom_id] = {
            "atom_id": atom_id,
            "artist_key": ARTISTS[artist],
            "title_key": TITLES[title],
            "stem_key": TITLES[title],
            "number_key": "",
            "variant": "",
            "names": sorted({ARTISTS[artist], ARTISTS[int(self.rng.integers(len(ARTISTS)))]} - {""}),
            "duration_ms": LENGTHS[length],
            "record_count": 1,
            "platform_count": 1,
        }
        self.next += 1

    def pass_by(self, share: float) -> None:
        gone = [atom for atom in self.rows if self.rng.random() < share]
        for atom in gone:
            del self.rows[atom]
        for _ in range(int(self.rng.integers(2 * len(gone) + 2))):
            self.add()


def find_pairs_tonight(known: set[tuple[object, ...]], before: Table, after: Table, buckets: int) -> set[tuple[object, ...]]:
    """Return the pairs of `after`: those `known` of `before` that no change reaches, and those around the atoms that differ."""
    was, is_ = (set(table.rows["atom_id"]) for table in (before, after))
    gone, made = (pl.Series("atom_id", sorted(ids), dtype=pl.Int64) for ids in (was - is_, is_ - was))
    one, other = (cast("MappedAtoms", table) for table in (before, after))
    changed = ChangedAtoms(one, other, gone, made, after.rows.height, buckets)
    touched = {*gone, *made}
    kept = [row for row in known if row[0] not in touched and row[1] not in touched]
    schema = {"atom_id_a": pl.Int64, "atom_id_b": pl.Int64, "score": pl.Float64, "evidence": pl.String}
    typos = pl.DataFrame(kept, schema=schema, orient="row")
    searches = (search_artists(changed), search_titles(changed))
    for search in searches:
        typos = search.drop_searched(typos)
    return {*typos.iter_rows(), *(row for search in searches for found in search.candidates for row in found.iter_rows())}


@pytest.mark.parametrize(("seed", "largest", "buckets"), [(0, 3, 5), (1, 3, 5), (0, 400, 5), (1, 4, 1)])
def test_pairs_of_a_night_equal_those_of_a_full_search(seed: int, largest: int, buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typo_edges, "LARGEST_BLOCK", largest)
    world = World(seed, atoms=150)
    before = Table(world.rows)
    known, met = before.find_pairs(), 0
    for share in (0.02, 0.3, 0.0, 0.1, 0.05):
        world.pass_by(share)
        after = Table(world.rows)
        known = find_pairs_tonight(known, before, after, buckets)
        assert known == after.find_pairs()
        before, met = after, met + len(known)
    assert met > 0


def test_night_takes_as_many_buckets_as_its_atoms_need() -> None:
    table, none = cast("MappedAtoms", Table(World(0, atoms=10).rows)), pl.Series(dtype=pl.Int64)
    changed = ChangedAtoms(table, table, none, none, all_rows=1000, buckets=20)
    assert [changed.count_buckets(atoms) for atoms in (0, 49, 50, 500, 1000)] == [1, 1, 2, 11, 20]
