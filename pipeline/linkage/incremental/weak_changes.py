"""Pairs for weak signals of a night that builds on a snapshot: those of the base, with what differs by changed atoms.

Whether a pair is worth weighing depends on its two atoms, on the blocks that they share, and on whether one of them is without a code. So
only blocks of atoms that came, went or lost their code are searched. A block may grow above the limit of searched blocks or shrink below
it; then pairs of unchanged atoms have one block fewer or more, and a pair without a block is dropped. Out of scope: which pairs
are worth weighing (weak_pairs.py); their bits, which depend on all atoms, are found again in every build (weak_edges.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, read_table
from pipeline.engine.pool import Pool
from pipeline.linkage import mapped_atoms
from pipeline.linkage.block_pairs import AtomSource, BlockChanges, Search, list_atom_blocks, read_readings
from pipeline.linkage.guards import PAIRS_AT_A_TIME
from pipeline.linkage.pair_buckets import count_all_common_blocks, find_all_weak_pairs
from pipeline.linkage.weak_pairs import WeakPairs, filter_worth_weighing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

Source = TypeVar("Source", bound=AtomSource)

ATOMS_FOR_A_POOL = 3_000_000
"""Atoms from which a night lists blocks in a pool. A million atoms take some 3 CPU seconds, starting two processes 2."""


def find_weak_pairs_tonight(
    paths: BuildPaths, atoms: MappedAtoms, night: Night, free: pl.Series, checkpoints: Checkpoints, pool: Pool
) -> WeakPairs:
    """Return what `pair_buckets.find_all_weak_pairs` returns, from the pairs of the base if their files are there."""
    known = mapped_atoms.read_mapped_weak_pairs(night.files, night.find_folder)
    if known is None:
        return find_all_weak_pairs(paths, atoms, free, checkpoints, pool)
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    gone, made = (change.filter(pl.col("change") == kind)["atom_id"] for kind in ("gone", "made"))
    # The pool would take more of a smaller night than it saves.
    own = pool if count_rows(paths.table("atom")) >= ATOMS_FOR_A_POOL else Pool(1, None)
    count_blocks = partial(count_all_common_blocks, paths, checkpoints=checkpoints, pool=own)
    return update_weak_pairs(known, night.atoms, atoms, (gone, made), free, count_blocks)


def update_weak_pairs(
    known: WeakPairs,
    before: Source,
    atoms: Source,
    changed: tuple[pl.Series, pl.Series],
    free: pl.Series,
    count_blocks: Callable[[Source, Search], pl.DataFrame],
) -> WeakPairs:
    """Return the pairs worth weighing among `atoms`.

    Args:
        known: the pairs of the atoms `before`.
        before: tables of the atoms at that time.
        atoms: tables of the atoms now.
        changed: ids of the atoms that are gone, and of those that were not there.
        free: of `Standing`, now.
        count_blocks: does what `block_pairs.count_common_blocks` does.
    """
    gone, made = changed
    freed = free.filter(~free.is_in(pl.concat([known.free, made]).implode()))
    left_blocks = list_atom_blocks(before, read_readings(before), gone.sort())
    readings = read_readings(atoms)
    found = count_blocks(atoms, Search(free, readings, BlockChanges(made.sort(), freed, left_blocks.sort())))
    # The pairs of an atom that lost its code were not known in full, so all of them are found again.
    left = pl.concat([gone, freed]).implode()
    is_free = pl.col("a").is_in(free.implode()) | pl.col("b").is_in(free.implode())
    kept = known.pairs.filter(~pl.col("a").is_in(left), ~pl.col("b").is_in(left), is_free)
    counted = kept.join(found, on=["a", "b"], how="left", suffix="_more")
    counted = counted.select("a", "b", pl.col("blocks") + pl.col("blocks_more").fill_null(0)).filter(pl.col("blocks") > 0)
    # A pair of unchanged atoms that gains a block and was not known failed the comparison, and fails it again.
    unknown = found.filter(pl.col("blocks") > 0).join(kept, on=["a", "b"], how="anti").sort("a", "b")
    new = [filter_worth_weighing(some, atoms, readings) for some in unknown.iter_slices(PAIRS_AT_A_TIME)]
    return WeakPairs(pl.concat([counted, *new]).sort("a", "b"), free)
