"""Tests that pairs found in buckets on disk are those found in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store import row_shuffle
from pipeline.engine.checkpoints import Checkpoints
from pipeline.engine.pool import Pool
from pipeline.linkage import block_pairs, pair_buckets, stages, weak_blocks
from pipeline.linkage.block_pairs import BlockChanges, Search, count_common_blocks, list_atom_blocks, read_readings
from pipeline.linkage.mapped_atoms import MappedAtoms, open_tonight
from pipeline.linkage.pair_buckets import count_all_common_blocks, find_all_weak_pairs
from pipeline.linkage.weak_pairs import find_weak_pairs
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.test_stages import stage
from tests.pipeline.linkage.worlds import made_up_world

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuildPaths:
    """Return a build of which the atoms are in three parts."""
    paths = stage(BuildPaths(tmp_path_factory.mktemp("catalog")), made_up_world(seed=5, songs=60)[0])
    stages.write_atoms(paths, buckets=3)
    return paths


@pytest.fixture
def atoms(built: BuildPaths) -> MappedAtoms:
    return open_tonight(built)


@pytest.fixture
def free(atoms: MappedAtoms) -> pl.Series:
    return atoms.read_rows("atom", ["atom_id"])["atom_id"].sort().gather_every(3)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints.open(tmp_path / "edges.spill")


@pytest.fixture
def bucket_rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """Cut searches into small ranges, and return the buckets that each kind of rows goes to."""
    monkeypatch.setattr(pair_buckets, "BLOCKS_PER_RANGE", 200)
    sent: dict[str, set[int]] = {}
    write_run = row_shuffle.write_run

    def note_buckets(folder: Path, number: int, rows: pl.DataFrame, bucket: pl.Series) -> None:
        sent.setdefault(folder.name, set()).update(bucket)
        write_run(folder, number, rows, bucket)

    monkeypatch.setattr(pair_buckets, "write_run", note_buckets)
    return sent


def test_pairs_by_buckets_equal_those_in_memory(
    built: BuildPaths, atoms: MappedAtoms, free: pl.Series, checkpoints: Checkpoints, bucket_rows: dict[str, set[int]]
) -> None:
    found = find_all_weak_pairs(built, atoms, free, checkpoints, Pool(1, None))
    assert found.pairs.height > 10
    assert found.pairs.equals(find_weak_pairs(atoms, free).pairs)
    assert min(map(len, bucket_rows.values())) > 2
    # Nothing of the shuffles is left.
    assert not [path for path in checkpoints.folder.iterdir() if path.is_dir()]


def test_differences_by_buckets_equal_those_in_memory(
    built: BuildPaths,
    atoms: MappedAtoms,
    free: pl.Series,
    checkpoints: Checkpoints,
    bucket_rows: dict[str, set[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Blocks of new atoms exceed it, and pairs of the others lose them.
    monkeypatch.setattr(weak_blocks, "LARGEST_BLOCK", 3)
    readings, every = read_readings(atoms), atoms.read_rows("atom", ["atom_id"])["atom_id"].sort()
    gone = list_atom_blocks(atoms, readings, every.gather_every(7)).sort()
    search = Search(free, readings, BlockChanges(every.gather_every(5), free.gather_every(4), gone))
    found = count_all_common_blocks(built, atoms, search, checkpoints, Pool(1, None)).sort("a", "b")
    assert {-1, 1} <= set(found["blocks"].sign())
    assert found.equals(count_common_blocks(atoms, search).sort("a", "b"))
    assert min(map(len, bucket_rows.values())) > 2


def test_rows_of_blocks_that_are_not_searched_are_left_out(atoms: MappedAtoms, free: pl.Series) -> None:
    search = Search(free.head(1), read_readings(atoms))
    slots = block_pairs.mark_slots(atoms, search)
    (rows,) = [block_pairs.select_rows(atoms.read_rows("atom", block_pairs.BLOCK_COLUMNS), search, slots)]
    own = set(list_atom_blocks(atoms, search.readings, search.free))
    assert own <= set(rows["block"])
    # A block that is not searched shares a slot with one that is by chance.
    assert len(set(rows["block"]) - own) <= 3
