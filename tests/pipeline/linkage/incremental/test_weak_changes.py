"""Tests that the pairs for weak signals of a night on a snapshot equal those of a full search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import block_pairs, weak_blocks
from pipeline.linkage.block_pairs import Search, count_common_blocks
from pipeline.linkage.incremental import weak_changes
from pipeline.linkage.incremental.weak_changes import update_weak_pairs
from pipeline.linkage.mixed_fields import number_reading
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS, NAME_NUMBERS
from pipeline.linkage.weak_pairs import WeakPairs, find_weak_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

ARTISTS = ("", "abba", "theabba", "chermusic", "chermusik", "didoarmstrong", "didoarmstong", "dido", "周杰倫", "kirovorchestra")
TITLES = (
    "takeonme",
    "takeonmee",
    "anotherday",
    "anotherdayinparadise",
    "feverfever",
    "neverfever",
    "abba",
    "晴天",
    "allegro",
    "missaallegro",
)
VARIANTS = ("", "", "", "live", "radio")
LENGTHS = (None, 200_000, 201_500, 204_000, 216_000)
MIXED = 3
"""Atoms whose id divides by it have mixed titles: their readings are their own names and two others."""


class Table:
    """Tables of atoms with few names, so that each shares blocks with many; `rows` by atom id."""

    def __init__(self, rows: dict[int, dict[str, object]]) -> None:
        atoms = TABLES["atom"].conform(pl.DataFrame(list(rows.values()), schema_overrides={"duration_ms": pl.Int32}))
        numbered = atoms.with_columns(title=pl.col("title_key").hash(), **NAME_NUMBERS)
        # The readings of an atom never change, so they follow from the id.
        names = pl.DataFrame({"artist_key": ARTISTS, "title_key": TITLES, "variant": ""}).select(number_reading()).to_series()
        places = [(pl.col("atom_id") + step) % len(names) for step in (0, 4)]
        readings = pl.concat_list("reading", *(pl.lit(names).gather(place) for place in places))
        member = numbered.select("atom_id", readings=pl.when(pl.col("atom_id") % MIXED == 0).then(readings))
        self.tables = {"atom": numbered, "atom_member": member}

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        rows = self.tables[name].select(columns)
        yield rows.head(7)
        yield rows.slice(7)

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        return self.tables[name].filter(pl.col("atom_id").is_in(atom_ids.implode())).select(columns)


class World:
    """Atoms that come, go, change their names, and gain and lose codes."""

    def __init__(self, seed: int, atoms: int = 120) -> None:
        self.rng = np.random.default_rng(seed)
        self.next, self.rows = 1, dict[int, dict[str, object]]()
        for _ in range(atoms):
            self.add()
        self.coded = {atom for atom in self.rows if self.rng.random() < 0.6}

    def pick(self, values: tuple[object, ...]) -> object:
        return values[int(self.rng.integers(len(values)))]

    def add(self) -> None:
        artist, title = str(self.pick(ARTISTS)), str(self.pick(TITLES))
        self.rows[self.next] = {
            "atom_id": self.next,
            "artist_key": artist,
            "title_key": title,
            "stem_key": title,
            "number_key": "",
            "variant": self.pick(VARIANTS),
            "names": sorted({artist, str(self.pick(ARTISTS))} - {""}),
            "duration_ms": self.pick(LENGTHS),
            "record_count": 1,
            "platform_count": 1,
        }
        self.next += 1

    def pass_by(self, share: float) -> tuple[pl.Series, pl.Series]:
        """Change this share of the atoms and of the codes; return the atoms that are gone, and those that are new."""
        first = self.next
        gone = [atom for atom in self.rows if self.rng.random() < share]
        for atom in gone:
            del self.rows[atom]
        # An atom with another name is another atom.
        for _ in range(int(self.rng.integers(2 * len(gone) + 2))):
            self.add()
        self.coded = {atom for atom in self.rows if (atom in self.coded) ^ (self.rng.random() < share)}
        new = [atom for atom in self.rows if atom >= first]
        return pl.Series(gone, dtype=pl.Int64), pl.Series(new, dtype=pl.Int64)

    def table(self) -> Table:
        return Table(self.rows)

    def free(self) -> pl.Series:
        return pl.Series("atom_id", sorted(self.rows.keys() - self.coded), dtype=pl.Int64)


def are_equal(one: WeakPairs, other: WeakPairs) -> bool:
    return one.pairs.equals(other.pairs) and one.free.equals(other.free)


@pytest.mark.parametrize(
    ("seed", "limit"),
    [
        (0, 2),
        pytest.param(1, 5, marks=pytest.mark.slow),
        (2, 5),
        (3, 24),
        *(pytest.param(seed, 3, marks=pytest.mark.long) for seed in (4, 5)),
    ],
)
def test_pairs_of_a_night_equal_those_of_a_full_search(seed: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak_blocks, "LARGEST_BLOCK", limit)
    monkeypatch.setattr(block_pairs, "ATOMS_AT_A_TIME", (1000, 17)[seed % 2])
    monkeypatch.setattr(weak_changes, "PAIRS_AT_A_TIME", 13)
    world = World(seed)
    before, known = world.table(), find_weak_pairs(world.table(), world.free())
    met = known.pairs.height
    for share in (0.02, 0.3, 0.0, 0.1, 0.05):
        changed = world.pass_by(share)
        after = world.table()
        known = update_weak_pairs(known, before, after, changed, world.free(), count_common_blocks)
        assert are_equal(known, find_weak_pairs(after, world.free()))
        before, met = after, met + known.pairs.height
    assert met > 0


def test_block_that_grows_above_the_limit_takes_its_pairs_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak_blocks, "LARGEST_BLOCK", 3)
    world = World(0, atoms=0)
    for number in range(6):
        world.add()
        world.rows[number + 1] |= {"artist_key": "abba", "title_key": "takeonme", "names": ["abba"], "variant": "", "duration_ms": 200_000}
    few = Table({atom: world.rows[atom] for atom in (1, 2)})
    free = pl.Series("atom_id", [1, 2])
    known = find_weak_pairs(few, free)
    assert known.pairs.select("a", "b").rows() == [(1, 2)]
    many, all_ids = world.table(), pl.Series("atom_id", [1, 2, 3, 4, 5, 6])
    grown = update_weak_pairs(known, few, many, (all_ids.head(0), all_ids.tail(4)), all_ids, count_common_blocks)
    assert grown.pairs.is_empty()
    shrunk = update_weak_pairs(grown, many, few, (all_ids.tail(4), all_ids.head(0)), free, count_common_blocks)
    assert are_equal(shrunk, known)


def test_number_of_common_blocks_counts_each_kind_once() -> None:
    world = World(0, atoms=2)
    for row in world.rows.values():
        row |= {"artist_key": "dido", "title_key": "dido", "names": ["dido"], "variant": "", "duration_ms": 1000}
    table, none = world.table(), pl.DataFrame(schema={"atom_id": pl.Int64, "readings": pl.UInt64, "mark": pl.UInt8})
    found = count_common_blocks(table, Search(pl.Series([1]), none.drop("mark")))
    atoms = table.tables["atom"].select(BLOCK_COLUMNS).with_columns(mark=pl.lit(0, pl.UInt8))
    kinds = [rows for rows in weak_blocks.list_blocks(atoms, none) if rows.height]
    # Title and artist are one text, so the swapped fields are no block of their own.
    assert found["blocks"].to_list() == [len(kinds)] == [weak_blocks.BLOCKS_PER_ATOM - 1]
