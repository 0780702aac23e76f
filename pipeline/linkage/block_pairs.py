"""Pairs of atoms that share blocks (weak_blocks.py), and the number of their blocks that are small enough to be searched.

Searched are the blocks of a few atoms at a time, so that memory does not grow with the table. A build that knows the pairs of an earlier
one searches the blocks that a change touched, and learns by how many blocks each pair differs. Out of scope: what a pair is
worth (weak_edges.py), and which atoms changed (incremental/weak_changes.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import polars as pl

from pipeline.linkage import weak_blocks
from pipeline.linkage.sorted_runs import find_run_starts, mark_known
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS, READING, REPEATED, list_blocks, list_reading_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pipeline.linkage.sorted_runs import Places

    Flags = npt.NDArray[np.bool_]
    Blocks = dict[str, pl.Series]

ATOMS_AT_A_TIME = 250_000
"""Atoms without a code whose blocks are held at a time: some six million blocks, with the atoms in them .4 to 1 GB."""
PAIRED_AT_A_TIME = 50_000
"""Atoms of these that are paired in one turn. All of them at once took 6.75 GB at 10 million recordings, a fifth 1.78 GB."""
SLOT_BITS = 21
"""Bits of a number that choose its slot. Two megabytes of slots stay near the processor, and rule out nearly all atoms of a table."""
_SHIFT = np.uint64(64 - SLOT_BITS)
_NEW, _ADDED, _TURN = 1, 2, 4
"""Marks of an atom: no earlier pair counts; it was not there before; a factor of the turn, from 1, in which it is paired with any atom."""
PAIR_SCHEMA = pl.Schema({"a": pl.Int64(), "b": pl.Int64(), "blocks": pl.Int32()})


class AtomSource(Protocol):
    """The tables of atoms, as `MappedAtoms` reads them."""

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of a table."""

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        """Return the rows of these atoms."""


class BlockChanges(NamedTuple):
    """The differences from an earlier build.

    `added`: atoms that were not there, sorted. `freed`: atoms that were there, and whose pairs were not known, sorted. `gone`: blocks of
    the atoms that left, by kind, each as often as atoms had it.
    """

    added: pl.Series
    freed: pl.Series
    gone: Blocks


def count_common_blocks(atoms: AtomSource, free: pl.Series, changes: BlockChanges | None = None) -> Iterator[pl.DataFrame]:
    """Yield PAIR_SCHEMA of the pairs a < b with one of the atoms `free` (sorted) that share a block, for some of these atoms at a time.

    With `changes`, `blocks` is the difference to the earlier build: all of a pair that it could not know, else more or fewer. A pair of two
    atoms that are free comes once or twice, with equal numbers.
    """
    readings = read_readings(atoms)
    touched = None if changes is None else _list_touched_blocks(atoms, readings, changes)
    for start in range(0, len(free), ATOMS_AT_A_TIME):
        some = free.slice(start, ATOMS_AT_A_TIME)
        wanted = list_distinct_blocks(atoms, readings, some)
        if touched is not None:
            wanted = {kind: blocks.filter(blocks.is_in(touched[kind].implode())) for kind, blocks in wanted.items() if kind in touched}
        members = _read_members(atoms, readings, wanted, some, changes)
        for turn in range(1, 1 + math.ceil(len(some) / PAIRED_AT_A_TIME)):
            pairs = [PAIR_SCHEMA.to_frame()]
            for kind, rows in members.items():
                gone = None if changes is None else changes.gone.get(kind, pl.Series([], dtype=pl.UInt64))
                pairs.append(_pair_rows(rows, turn, gone))
            yield pl.concat(pairs).group_by("a", "b").agg(pl.col("blocks").sum()).filter(pl.col("blocks") != 0)


def read_readings(atoms: AtomSource) -> pl.DataFrame:
    """Return atom_id, readings (one a row) of all mixed titles."""
    found = pl.concat([rows.drop_nulls() for rows in atoms.read_pieces("atom_member", ["atom_id", "readings"])])
    return found.explode("readings", empty_as_null=False).drop_nulls().unique()


def list_atom_blocks(atoms: AtomSource, readings: pl.DataFrame, ids: pl.Series) -> Blocks:
    """Return the blocks of these atoms by kind, each as often as atoms have it."""
    own = atoms.read_atom_rows("atom", ids, BLOCK_COLUMNS).with_columns(mark=pl.lit(0, pl.UInt8))
    read = readings.filter(pl.col("atom_id").is_in(ids.implode())).with_columns(mark=pl.lit(0, pl.UInt8))
    found: dict[str, list[pl.DataFrame]] = {}
    for kind, rows in (*list_blocks(own), (READING, list_reading_blocks(read))):
        found.setdefault(kind, []).append(rows)
    # A block counts an atom once, although two readings may be one.
    return {kind: (pl.concat(rows).unique() if kind in REPEATED else rows[0])["block"] for kind, rows in found.items()}


def list_distinct_blocks(atoms: AtomSource, readings: pl.DataFrame, ids: pl.Series) -> Blocks:
    """Return the blocks of these atoms by kind, each once."""
    return {kind: blocks.unique() for kind, blocks in list_atom_blocks(atoms, readings, ids).items()}


def _list_touched_blocks(atoms: AtomSource, readings: pl.DataFrame, changes: BlockChanges) -> Blocks:
    """Return the blocks in which a pair can differ, by kind."""
    own = list_distinct_blocks(atoms, readings, pl.concat([changes.added, changes.freed]))
    none = pl.Series([], dtype=pl.UInt64)
    return {kind: pl.concat([own.get(kind, none), changes.gone.get(kind, none)]) for kind in own.keys() | changes.gone.keys()}


def _read_members(
    atoms: AtomSource, readings: pl.DataFrame, wanted: Blocks, free: pl.Series, changes: BlockChanges | None
) -> dict[str, pl.DataFrame]:
    """Return block, atom_id, mark of all atoms in the wanted blocks, by kind, in order of blocks."""
    searched = {kind: _WantedBlocks(blocks, is_repeated=kind in REPEATED) for kind, blocks in wanted.items() if len(blocks)}
    for piece in atoms.read_pieces("atom", BLOCK_COLUMNS):
        for kind, rows in list_blocks(_mark_atoms(piece, free, changes)):
            if kind in searched:
                searched[kind].take(rows)
    if READING in searched:
        searched[READING].take(list_reading_blocks(_mark_atoms(readings, free, changes)))
    return {kind: blocks.list_members() for kind, blocks in searched.items()}


class _WantedBlocks:
    """The atoms of some blocks of one kind, collected piece by piece.

    Blocks that are too large to be searched, now and before, are left out as soon as that shows. In a large table they have most of the
    rows.
    """

    def __init__(self, blocks: pl.Series, *, is_repeated: bool) -> None:
        """Take the distinct blocks. `is_repeated`: an atom may have one twice, so their sizes show at the end and all rows are kept."""
        self._blocks = np.sort(blocks.to_numpy())
        self._slots = np.zeros(1 << SLOT_BITS, dtype=bool)
        self._slots[(self._blocks >> _SHIFT).astype(np.intp)] = True
        self._sizes = np.zeros(len(self._blocks), dtype=np.int64)
        self._is_repeated = is_repeated
        self._found: list[pl.DataFrame] = []

    def take(self, rows: pl.DataFrame) -> None:
        """Take those of some rows (block, atom_id, mark) that are in the blocks."""
        # Most atoms share no block with the few: one look at a slot rules them out.
        rows = rows.filter(pl.Series(self._slots[(rows["block"].to_numpy() >> _SHIFT).astype(np.intp)]))
        rows = rows.filter(pl.Series(mark_known(rows["block"], self._blocks)))
        if not self._is_repeated:
            places = self._find_places(rows)
            # Only atoms that were there before count: with fewer of them, a block may have been searched then.
            was_there = (rows["mark"].to_numpy() & _ADDED) == 0
            self._sizes += np.bincount(places[was_there], minlength=len(self._sizes))
            rows = self._drop_large(rows, places)
        self._found.append(rows)

    def list_members(self) -> pl.DataFrame:
        """Return the rows of all blocks but those left out, each once, in order of blocks."""
        if self._is_repeated:
            rows = pl.concat(self._found).unique()
        else:
            rows = pl.concat([self._drop_large(rows, self._find_places(rows)) for rows in self._found])
        self._found = []
        return rows[rows["block"].arg_sort()]

    def _find_places(self, rows: pl.DataFrame) -> Places:
        return np.searchsorted(self._blocks, rows["block"].to_numpy())

    def _drop_large(self, rows: pl.DataFrame, places: Places) -> pl.DataFrame:
        return rows.filter(pl.Series(self._sizes[places] <= weak_blocks.LARGEST_BLOCK))


def _mark_atoms(rows: pl.DataFrame, free: pl.Series, changes: BlockChanges | None) -> pl.DataFrame:
    """Add `mark`. `free` and the atoms of `changes` are sorted."""
    ids, free_ids = rows["atom_id"].to_numpy(), free.to_numpy()
    is_free = mark_known(rows["atom_id"], free_ids)
    mark = np.zeros(len(ids), dtype=np.uint8)
    mark[is_free] = (1 + np.searchsorted(free_ids, ids[is_free]) // PAIRED_AT_A_TIME) * _TURN
    if changes is not None:
        mark += mark_known(rows["atom_id"], changes.added.to_numpy()) * np.uint8(_NEW | _ADDED)
        mark += mark_known(rows["atom_id"], changes.freed.to_numpy()) * np.uint8(_NEW)
    return rows.with_columns(mark=pl.Series(mark))


def _pair_rows(rows: pl.DataFrame, turn: int, gone: pl.Series | None) -> pl.DataFrame:
    """Return PAIR_SCHEMA of one kind of block, of the atoms of a turn: 1 for each block that pairs share, or the difference to before.

    `rows`: block, atom_id, mark of all atoms in some blocks, in order of blocks. `gone`: blocks of the atoms that left; None: nothing was
    known before.
    """
    blocks, ids, marks = (rows[name].to_numpy() for name in ("block", "atom_id", "mark"))
    is_free = marks // _TURN == turn
    starts = find_run_starts(blocks)
    if not len(starts):
        return PAIR_SCHEMA.to_frame()
    sizes = np.diff(starts, append=len(blocks))
    is_searched = sizes <= weak_blocks.LARGEST_BLOCK
    if gone is None:
        was_searched, is_new = np.zeros(len(starts), dtype=bool), np.ones(len(blocks), dtype=bool)
    else:
        added = np.add.reduceat((marks & _ADDED > 0).astype(np.int64), starts)
        left = np.sort(gone.to_numpy())
        left_count = np.searchsorted(left, blocks[starts], side="right") - np.searchsorted(left, blocks[starts])
        was_searched, is_new = sizes - added + left_count <= weak_blocks.LARGEST_BLOCK, marks & _NEW > 0
    has_free, has_new = (np.logical_or.reduceat(held, starts) for held in (is_free, is_new))
    # A block that was searched and still is differs for pairs with a new atom only, one that is no longer searched for pairs without.
    differs = has_free & (sizes > 1) & ((is_searched ^ was_searched) | (is_searched & has_new))
    if not differs.any():
        return PAIR_SCHEMA.to_frame()
    kept = np.repeat(differs, sizes) & ~(np.repeat(~is_searched, sizes) & is_new)
    change = np.repeat(is_searched.astype(np.int32) - was_searched, sizes)[kept]
    blocks, ids, is_free, is_new = blocks[kept], ids[kept], is_free[kept], is_new[kept]
    one, other = _find_run_pairs(blocks, is_free)
    value = np.where(is_new[one] | is_new[other], 1, change[one])
    a, b = np.minimum(ids[one], ids[other]), np.maximum(ids[one], ids[other])
    return pl.DataFrame({"a": a, "b": b, "blocks": value}, schema=PAIR_SCHEMA).filter(pl.col("blocks") != 0)


def _find_run_pairs(runs: npt.NDArray[np.uint64], is_free: Flags) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places of all pairs within runs of equal numbers of which one is free."""
    place, step, found = np.arange(len(runs)), 1, [np.empty((2, 0), dtype=np.int64)]
    # Each round compares the rows `step` apart, and the rows whose run has ended leave for good.
    while len(place):
        place = place[: np.searchsorted(place, len(runs) - step)]
        place = place[runs[place] == runs[place + step]]
        worth = place[is_free[place] | is_free[place + step]]
        found.append(np.stack([worth, worth + step]))
        step += 1
    one, other = np.concatenate(found, axis=1)
    return one, other
