"""Pairs of atoms that share blocks (weak_blocks.py), and the number of their blocks that are small enough to be searched.

`select_rows` lists the blocks of some atoms, `pair_rows` pairs the atoms of some blocks, `sum_pairs` adds the blocks of some pairs. A build
that knows the pairs of an earlier one searches the blocks that a change touched, and learns by how many blocks each pair differs.
Out of scope: the same by buckets of a large table (pair_buckets.py), what a pair is worth (weak_edges.py), and which atoms
changed (incremental/weak_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
import polars as pl

from pipeline.linkage import weak_blocks
from pipeline.linkage.sorted_runs import find_run_starts, mark_known
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS, list_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Slots = npt.NDArray[np.uint8]

ATOMS_AT_A_TIME = 100_000
"""Atoms whose blocks, some thirty each, are listed at a time to mark slots: some 60 MB."""
SLOTS_PER_BLOCK = 16
"""Least number of slots for a block that is searched: one in sixteen other blocks passes at most."""
LEAST_SLOT_BITS, MOST_SLOT_BITS = 16, 31
"""Bits of a block that choose its slot. All slots take 8 KB to 256 MB."""
_BITS = 3
"""Bits of a slot's number that choose the bit in a byte."""
_NEW, _ADDED, _FREE = 1, 2, 4
"""Marks of an atom: no earlier pair counts; it was not there before; one of `Search.free`."""
PAIR_SCHEMA = pl.Schema({"a": pl.Int64(), "b": pl.Int64(), "blocks": pl.Int32()})
RAW_SCHEMA = pl.Schema({"a": pl.Int64(), "b": pl.Int64(), "blocks": pl.Int8(), "is_a_free": pl.Boolean()})
ROW_SCHEMA = pl.Schema({"atom_id": pl.Int64(), "mark": pl.UInt8(), "block": pl.UInt64()})


class AtomSource(Protocol):
    """The tables of atoms, as `MappedAtoms` reads them."""

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of a table."""

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        """Return the rows of these atoms."""


class BlockChanges(NamedTuple):
    """The differences from an earlier build.

    `added`: atoms that were not there, sorted. `freed`: atoms that were there, and whose pairs were not known, sorted. `gone`: blocks of
    the atoms that left, each as often as atoms had it, sorted.
    """

    added: pl.Series
    freed: pl.Series
    gone: pl.Series


class Search(NamedTuple):
    """A search for pairs.

    `free`: atoms, sorted; each pair has one of them. `readings`: as `read_readings` returns. `changes`: None when no pair is known.
    """

    free: pl.Series
    readings: pl.DataFrame
    changes: BlockChanges | None = None

    def cut(self, first: int, last: int) -> Self:
        """Return what concerns the atoms of a range of ids."""
        free, readings = _cut_ids(self.free, first, last), select_readings(self.readings, first, last)
        if self.changes is None:
            return self._replace(free=free, readings=readings)
        added, freed = (_cut_ids(ids, first, last) for ids in (self.changes.added, self.changes.freed))
        return self._replace(free=free, readings=readings, changes=BlockChanges(added, freed, self.changes.gone.clear()))


def _cut_ids(ids: pl.Series, first: int, last: int) -> pl.Series:
    return ids[ids.search_sorted(first, "left") : ids.search_sorted(last, "right")]


def read_readings(atoms: AtomSource) -> pl.DataFrame:
    """Return atom_id, readings (one a row) of all mixed titles, in order of atoms."""
    found = pl.concat([rows.drop_nulls() for rows in atoms.read_pieces("atom_member", ["atom_id", "readings"])])
    return found.explode("readings", empty_as_null=False).drop_nulls().unique().sort("atom_id")


def select_readings(readings: pl.DataFrame, first: int, last: int) -> pl.DataFrame:
    """Return those of `read_readings` of a range of atoms."""
    ids = readings["atom_id"]
    return readings[ids.search_sorted(first, "left") : ids.search_sorted(last, "right")]


def list_atom_blocks(atoms: AtomSource, readings: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """Return the blocks of these atoms (sorted), each as often as atoms have it."""
    if ids.is_empty():
        return pl.Series("block", [], dtype=pl.UInt64)
    no_mark = pl.lit(0, pl.UInt8).alias("mark")
    read = select_readings(readings, ids[0], ids[-1]).filter(pl.col("atom_id").is_in(ids.implode())).with_columns(no_mark)
    own = atoms.read_atom_rows("atom", ids, BLOCK_COLUMNS).with_columns(no_mark)
    return pl.concat([rows["block"] for rows in list_blocks(own, read)])


def count_searched_blocks(search: Search) -> int:
    """Return about how many blocks can hold pairs, each counted for each atom that makes the search look at it."""
    if search.changes is None:
        return len(search.free) * weak_blocks.BLOCKS_PER_ATOM
    changed = len(search.changes.added) + len(search.changes.freed)
    return changed * weak_blocks.BLOCKS_PER_ATOM + len(search.changes.gone)


def mark_slots(atoms: AtomSource, search: Search) -> Slots:
    """Return a set of bits: of a slot for each value of the upper bits of a block, whether a block in which pairs can be found has it.

    These are the blocks of all free atoms or, with changes, those that a change touched.
    """
    bits = (SLOTS_PER_BLOCK * count_searched_blocks(search)).bit_length()
    slots = np.zeros(1 << min(max(bits, LEAST_SLOT_BITS), MOST_SLOT_BITS) - _BITS, dtype=np.uint8)
    changes = search.changes
    searched = search.free if changes is None else pl.concat([changes.added, changes.freed]).sort()
    for start in range(0, len(searched), ATOMS_AT_A_TIME):
        _set_slots(slots, list_atom_blocks(atoms, search.readings, searched.slice(start, ATOMS_AT_A_TIME)))
    if changes is not None:
        _set_slots(slots, changes.gone)
    return slots


def _set_slots(slots: Slots, blocks: pl.Series) -> None:
    places, bits = _find_slots(slots, blocks)
    np.bitwise_or.at(slots, places, bits)


def _find_slots(slots: Slots, blocks: pl.Series) -> tuple[npt.NDArray[np.intp], Slots]:
    """Return the byte and the bit in it of each block."""
    found = blocks.to_numpy() >> np.uint64(64 - _BITS - (len(slots) - 1).bit_length())
    bits = np.left_shift(np.uint8(1), (found & np.uint64((1 << _BITS) - 1)).astype(np.uint8))
    return (found >> np.uint64(_BITS)).astype(np.intp), bits


def select_rows(atoms: pl.DataFrame, search: Search, slots: Slots) -> pl.DataFrame:
    """Return ROW_SCHEMA: the blocks with a marked slot of some atoms (BLOCK_COLUMNS), each once for an atom."""
    read = search.readings.join(atoms, on="atom_id", how="semi")
    found = [ROW_SCHEMA.to_frame()]
    for rows in list_blocks(_mark_atoms(atoms, search), _mark_atoms(read, search)):
        places, bits = _find_slots(slots, rows["block"])
        found.append(rows.select(ROW_SCHEMA.names()).filter(pl.Series(slots[places] & bits > 0)))
    return pl.concat(found)


def _mark_atoms(rows: pl.DataFrame, search: Search) -> pl.DataFrame:
    """Add `mark`."""
    ids, changes = rows["atom_id"], search.changes
    mark = mark_known(ids, search.free.to_numpy()) * np.uint8(_FREE)
    if changes is not None:
        mark += mark_known(ids, changes.added.to_numpy()) * np.uint8(_NEW | _ADDED)
        mark += mark_known(ids, changes.freed.to_numpy()) * np.uint8(_NEW)
    return rows.with_columns(mark=pl.Series(mark))


def pair_rows(rows: pl.DataFrame, gone: pl.Series | None) -> pl.DataFrame:
    """Return RAW_SCHEMA of all pairs in some blocks: 1 for each block that a pair shares, or the difference to before.

    `rows`: ROW_SCHEMA of all atoms in these blocks. `gone`: as of `BlockChanges`, of these blocks at least; None: nothing was known before.
    """
    rows = rows[rows["block"].arg_sort()]
    blocks, ids, marks = (rows[name].to_numpy() for name in ("block", "atom_id", "mark"))
    is_free = marks & _FREE > 0
    starts = find_run_starts(blocks)
    if not len(starts):
        return RAW_SCHEMA.to_frame()
    sizes = np.diff(starts, append=len(blocks))
    is_searched = sizes <= weak_blocks.LARGEST_BLOCK
    if gone is None:
        was_searched, is_new = np.zeros(len(starts), dtype=bool), np.ones(len(blocks), dtype=bool)
    else:
        added = np.add.reduceat((marks & _ADDED > 0).astype(np.int64), starts)
        left = gone.to_numpy()
        left_count = np.searchsorted(left, blocks[starts], side="right") - np.searchsorted(left, blocks[starts])
        was_searched, is_new = sizes - added + left_count <= weak_blocks.LARGEST_BLOCK, marks & _NEW > 0
    has_free, has_new = (np.logical_or.reduceat(held, starts) for held in (is_free, is_new))
    # A block that was searched and still is differs for pairs with a new atom only, one that is no longer searched for pairs without.
    differs = has_free & (sizes > 1) & ((is_searched ^ was_searched) | (is_searched & has_new))
    if not differs.any():
        return RAW_SCHEMA.to_frame()
    kept = np.repeat(differs, sizes) & ~(np.repeat(~is_searched, sizes) & is_new)
    change = np.repeat(is_searched.astype(np.int8) - was_searched, sizes)[kept]
    blocks, ids, is_free, is_new = blocks[kept], ids[kept], is_free[kept], is_new[kept]
    one, other = _find_run_pairs(blocks, is_free)
    value = np.where(is_new[one] | is_new[other], np.int8(1), change[one])
    swapped = ids[one] > ids[other]
    one, other = np.where(swapped, other, one), np.where(swapped, one, other)
    found = pl.DataFrame({"a": ids[one], "b": ids[other], "blocks": value, "is_a_free": is_free[one]}, schema=RAW_SCHEMA)
    return found.filter(pl.col("blocks") != 0)


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


def sum_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return PAIR_SCHEMA of all rows (a, b, blocks) of some pairs: each pair once, without those whose blocks add up to none."""
    return pairs.group_by("a", "b").agg(pl.col("blocks").cast(pl.Int32).sum()).filter(pl.col("blocks") != 0)


def count_common_blocks(atoms: AtomSource, search: Search) -> pl.DataFrame:
    """Return PAIR_SCHEMA of the pairs a < b with one of the free atoms that share a block.

    With changes, `blocks` is the difference to the earlier build: all of a pair that it could not know, else more or fewer.
    """
    slots, found = mark_slots(atoms, search), [ROW_SCHEMA.to_frame()]
    found += (select_rows(piece, search, slots) for piece in atoms.read_pieces("atom", BLOCK_COLUMNS))
    return sum_pairs(pair_rows(pl.concat(found), None if search.changes is None else search.changes.gone))
