"""Pairs of atoms that share blocks, of tables that exceed memory: what block_pairs.py finds, in buckets and by a pool of processes.

Three turns, each over inputs that need nothing of each other:

    send_rows           each part of `atom` sends its rows of the searched blocks to ranges of blocks
    send_pairs          each range pairs the atoms of its blocks, and sends the pairs to ranges of free atoms
    find_worthy_pairs   each range of free atoms adds up the blocks of its pairs, and rules out those that names contradict

So every atom is read once, whatever their number. The folder of the step also has `slots.npy` and `readings.arrow`
(block_pairs.py). Out of scope: what a pair is worth (weak_edges.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.array_files import map_array, write_array
from catalog_store.memory_budget import get_budget
from catalog_store.row_shuffle import read_bucket, write_run
from pipeline.linkage.block_pairs import (
    PAIR_SCHEMA,
    Search,
    count_searched_blocks,
    mark_slots,
    pair_rows,
    read_readings,
    select_rows,
    sum_pairs,
)
from pipeline.linkage.mapped_atoms import open_tonight
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS
from pipeline.linkage.weak_pairs import WeakPairs, filter_worth_weighing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.engine.pool import Pool
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

BLOCKS_PER_RANGE = 1_500_000
"""Most searched blocks of a range: those of 50,000 atoms without a code."""
BYTES_PER_BLOCK = 900
"""Memory that the pairs of one searched block take at the widest point, at 10 million recordings: 1.4 GB for 50,000 atoms."""


class _Place(NamedTuple):
    """A search on disk: its build, the folder of its step, the number of ranges of blocks, and the first free atom of each range."""

    paths: BuildPaths
    folder: Path
    ranges: int
    firsts: pl.Series


def find_all_weak_pairs(paths: BuildPaths, atoms: MappedAtoms, free: pl.Series, checkpoints: Checkpoints, pool: Pool) -> WeakPairs:
    """Return what `weak_pairs.find_weak_pairs` returns."""
    pairs = _search(paths, atoms, Search(free, read_readings(atoms)), _find_worthy_pairs, checkpoints, pool)
    return WeakPairs(pairs.sort("a", "b"), free)


def count_all_common_blocks(paths: BuildPaths, atoms: MappedAtoms, search: Search, checkpoints: Checkpoints, pool: Pool) -> pl.DataFrame:
    """Return what `block_pairs.count_common_blocks` returns."""
    return _search(paths, atoms, search, _sum_pairs, checkpoints, pool)


def _search(
    paths: BuildPaths,
    atoms: MappedAtoms,
    search: Search,
    finish: Callable[[_Place, int], pl.DataFrame],
    checkpoints: Checkpoints,
    pool: Pool,
) -> pl.DataFrame:
    """Return what `finish` returns of all ranges of free atoms."""
    ranges = 1 + count_searched_blocks(search) // get_budget().fit_rows(BYTES_PER_BLOCK, BLOCKS_PER_RANGE)
    step = max(1, -(-len(search.free) // ranges))
    gone = None if search.changes is None else search.changes.gone
    folder = checkpoints.folder
    write_array(folder / "slots.npy", mark_slots(atoms, search))
    search.readings.write_ipc(folder / "readings.arrow", compression="uncompressed")
    place = _Place(paths, folder, ranges, search.free.gather_every(step))
    parts = [(number, part, search.cut(first, last)) for number, (part, first, last) in enumerate(atoms.list_parts("atom"))]
    blocks = checkpoints.shuffle("send_rows", partial(_send_rows, place), parts, pool)
    found = checkpoints.shuffle("send_pairs", partial(_send_pairs, place, gone), blocks, pool)
    checkpoints.remove_shuffle("send_rows")
    worthy = checkpoints.run("find_worthy_pairs", partial(finish, place), found, pool)
    checkpoints.remove_shuffle("send_pairs")
    return pl.concat([PAIR_SCHEMA.to_frame(), *worthy])


def _send_rows(place: _Place, runs: Path, job: tuple[int, Path, Search]) -> None:
    number, part, search = job
    slots, pieces = map_array(place.folder / "slots.npy"), open_tonight(place.paths).read_pieces("atom", BLOCK_COLUMNS, part=part)
    rows = pl.concat([select_rows(piece, search, slots) for piece in pieces])
    # Ranges of the lower half: the upper bits have chosen the slot, so that some of their ranges would be empty.
    bits = np.uint64(32)
    lower = rows["block"].to_numpy() & np.uint64((1 << 32) - 1)
    write_run(runs, number, rows, pl.Series((lower * np.uint64(place.ranges)) >> bits))


def _send_pairs(place: _Place, gone: pl.Series | None, runs: Path, number: int) -> None:
    pairs = pair_rows(read_bucket(place.folder / "send_rows", number), gone)
    free = pairs.select(pl.when("is_a_free").then("a").otherwise("b")).to_series()
    ranges = np.searchsorted(place.firsts.to_numpy(), free.to_numpy(), side="right") - 1
    write_run(runs, number, pairs.drop("is_a_free"), pl.Series(ranges))


def _sum_pairs(place: _Place, number: int) -> pl.DataFrame:
    return sum_pairs(read_bucket(place.folder / "send_pairs", number))


def _find_worthy_pairs(place: _Place, number: int) -> pl.DataFrame:
    readings = pl.read_ipc(place.folder / "readings.arrow")
    return filter_worth_weighing(_sum_pairs(place, number), open_tonight(place.paths), readings)
