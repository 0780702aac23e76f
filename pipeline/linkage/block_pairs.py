"""Pairs of atoms that share blocks (weak_blocks.py), and the number of their blocks that are small enough to be searched.

Searched are the blocks of a few atoms at a time, so that memory does not grow with the table. A build that knows the pairs of an earlier
one searches the blocks that a change touched, and learns by how many blocks each pair differs. Out of scope: what a pair is
worth (weak_edges.py), and which atoms changed (incremental/weak_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import polars as pl

from pipeline.linkage import weak_blocks
from pipeline.linkage.sorted_runs import find_run_starts
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS, READING, REPEATED, list_blocks, list_reading_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Blocks = dict[str, pl.Series]

ATOMS_AT_A_TIME = 250_000
"""Atoms without a code whose blocks are held at a time: some six million blocks, with the atoms of all others in them 400 MB."""
SLOT_BITS = 21
"""Bits of a number that choose its slot. Two megabytes of slots stay near the processor, and rule out nearly all atoms of a table."""
_SHIFT = np.uint64(64 - SLOT_BITS)
_FREE, _NEW, _ADDED = 1, 2, 4
"""Marks: may be paired with any atom; no earlier pair counts; was not there before."""
PAIR_SCHEMA = pl.Schema({"a": pl.Int64(), "b": pl.Int64(), "blocks": pl.Int32()})


class AtomSource(Protocol):
    """The tables of atoms, as `MappedAtoms` reads them."""

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of a table."""

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        """Return the rows of these atoms."""


class BlockChanges(NamedTuple):
    """The differences from an earlier build.

    `added`: atoms that were not there. `freed`: atoms that were there, and whose pairs were not known. `gone`: blocks of the atoms that
    left, by kind, each as often as atoms had it.
    """

    added: pl.Series
    freed: pl.Series
    gone: Blocks


def count_common_blocks(atoms: AtomSource, free: pl.Series, changes: BlockChanges | None = None) -> Iterator[pl.DataFrame]:
    """Yield PAIR_SCHEMA of the pairs a < b with one of the atoms `free` that share a block, for some of these atoms at a time.

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
        pairs = [PAIR_SCHEMA.to_frame()]
        for kind, rows in _read_members(atoms, readings, wanted, some, changes).items():
            gone = None if changes is None else changes.gone.get(kind, pl.Series([], dtype=pl.UInt64))
            pairs.append(_pair_rows(rows.unique() if kind in REPEATED else rows, gone))
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
    """Return block, atom_id, mark of all atoms in the wanted blocks, by kind."""
    slots = {kind: _fill_slots(blocks) for kind, blocks in wanted.items() if len(blocks)}
    found: dict[str, list[pl.DataFrame]] = {}
    for piece in atoms.read_pieces("atom", BLOCK_COLUMNS):
        for kind, rows in list_blocks(_mark_atoms(piece, free, changes)):
            if kind in slots:
                # Most atoms share no block with the few: one look at a slot rules them out.
                held = slots[kind][(rows["block"].to_numpy() >> _SHIFT).astype(np.intp)]
                found.setdefault(kind, []).append(rows.filter(pl.Series(held)))
    if READING in slots:
        found.setdefault(READING, []).append(list_reading_blocks(_mark_atoms(readings, free, changes)))
    return {kind: pl.concat(rows).filter(pl.col("block").is_in(wanted[kind].implode())) for kind, rows in found.items()}


def _fill_slots(blocks: pl.Series) -> Flags:
    slots = np.zeros(1 << SLOT_BITS, dtype=bool)
    slots[(blocks.to_numpy() >> _SHIFT).astype(np.intp)] = True
    return slots


def _mark_atoms(rows: pl.DataFrame, free: pl.Series, changes: BlockChanges | None) -> pl.DataFrame:
    ids = pl.col("atom_id")
    mark = ids.is_in(free.implode()).cast(pl.UInt8) * _FREE
    if changes is not None:
        mark += ids.is_in(changes.added.implode()).cast(pl.UInt8) * (_NEW | _ADDED)
        mark += ids.is_in(changes.freed.implode()).cast(pl.UInt8) * _NEW
    return rows.with_columns(mark=mark)


def _pair_rows(rows: pl.DataFrame, gone: pl.Series | None) -> pl.DataFrame:
    """Return PAIR_SCHEMA of one kind of block: 1 for each block that pairs share, or by how much it differs from before.

    `rows`: block, atom_id, mark of all atoms in some blocks. `gone`: blocks of the atoms that left; None: nothing was known before.
    """
    rows = rows[rows["block"].arg_sort()]
    blocks, ids, marks = (rows[name].to_numpy() for name in ("block", "atom_id", "mark"))
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
    has_free, has_new = (np.logical_or.reduceat(held, starts) for held in (marks & _FREE > 0, is_new))
    # A block that was searched and still is differs for pairs with a new atom only, one that is no longer searched for pairs without.
    differs = has_free & (sizes > 1) & ((is_searched ^ was_searched) | (is_searched & has_new))
    if not differs.any():
        return PAIR_SCHEMA.to_frame()
    kept = np.repeat(differs, sizes) & ~(np.repeat(~is_searched, sizes) & is_new)
    change = np.repeat(is_searched.astype(np.int32) - was_searched, sizes)[kept]
    blocks, ids, is_free, is_new = blocks[kept], ids[kept], (marks & _FREE > 0)[kept], is_new[kept]
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
