"""Pairs of atoms that weak signals may join: they share a block, one of them has no code, and their names can be those of one recording.

All of this depends on the two atoms and their blocks alone, so a night takes over the pairs of its base (incremental/weak_changes.py).
Out of scope: which parts make a block (weak_blocks.py), and what a pair is worth (weak_edges.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage import match_weights
from pipeline.linkage.block_pairs import Search, count_common_blocks, read_readings
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_generic_title, is_movement_title
from pipeline.linkage.guards import Letters, add_compared_columns
from pipeline.linkage.sorted_runs import mark_known, sort_distinct
from pipeline.linkage.weak_blocks import NO_NAME, TITLE_END
from pipeline.linkage.weak_names import are_titles_alike, filter_possible_pairs, mark_movements

if TYPE_CHECKING:
    from pipeline.linkage.block_pairs import AtomSource

_NUMBERS = ("title", "artist", "reading", "title_front", "title_back")


class Standing(NamedTuple):
    """The standing of the atoms by all other evidence.

    `anchored`: atoms whose component has a code, sorted. `free`: the others whose title says something, sorted. `atom_count`: of all atoms.
    """

    anchored: pl.Series
    free: pl.Series
    atom_count: int


class WeakPairs(NamedTuple):
    """Pairs that are worth weighing, for the next night.

    `pairs`: a < b, and the number of blocks that both have and that are searched; sorted. `free`: as of `Standing`.
    """

    pairs: pl.DataFrame
    free: pl.Series


def find_standing(atoms: AtomSource, components: pl.DataFrame) -> Standing:
    """Return which atoms have no code by all evidence of `components` (atom_id, cluster_id; an atom that is not among them has none)."""
    # Sorted numbers and no sets: sets of 30 million atoms took 1 GB each.
    coded = sort_distinct(rows["atom_id"].to_numpy() for rows in atoms.read_pieces("atom_isrc", ["atom_id"]))
    held = components.filter(pl.Series(mark_known(components["atom_id"], coded), dtype=pl.Boolean))["cluster_id"].unique()
    # The components of coded atoms have a code, and so have the other atoms in them.
    joined = components.filter(pl.col("cluster_id").is_in(held.implode()))["atom_id"].to_numpy()
    anchored = pl.Series("atom_id", sort_distinct([coded, joined]))
    free, count = [pl.Series("atom_id", [], dtype=pl.Int64)], 0
    for rows in atoms.read_pieces("atom", ["atom_id", "title_key"]):
        count += rows.height
        alone = rows.filter(pl.Series(~mark_known(rows["atom_id"], anchored.to_numpy())))
        # A generic title says nothing, whatever else agrees: an artist has many an `Intro`. A movement may have its work elsewhere.
        free.append(alone.filter(~is_generic_title(pl.col("title_key")) | is_movement_title(pl.col("title_key")))["atom_id"])
    return Standing(anchored, pl.concat(free).sort(), count)


def find_weak_pairs(atoms: AtomSource, free: pl.Series) -> WeakPairs:
    """Return the pairs worth weighing, at least one of them among `free` (of `Standing`)."""
    readings = read_readings(atoms)
    pairs = count_common_blocks(atoms, Search(free, readings))
    return WeakPairs(filter_worth_weighing(pairs, atoms, readings).sort("a", "b"), free)


def filter_worth_weighing(pairs: pl.DataFrame, atoms: AtomSource, readings: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs (a, b, and any other columns) whose names can be those of one recording; FailingRowsError names a faulty pair.

    `readings`: as `block_pairs.read_readings` returns.
    """
    rows = read_sides(atoms, pairs, ["atom_id", *_NUMBERS, "title_key"])
    marked = _filter_alike_titles(mark_shared_readings(pairs, rows, readings), rows)
    rows = read_sides(atoms, marked, TABLES["atom"].column_names)
    possible = run_on_rows(marked, lambda some: filter_possible_pairs(add_compared_columns(some, rows)).select("a", "b"), ("a", "b"))
    return pairs.join(possible, on=["a", "b"], how="semi")


def read_sides(atoms: AtomSource, pairs: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the rows of `atom` of both sides of pairs."""
    return atoms.read_atom_rows("atom", pl.concat([pairs["a"], pairs["b"]]).unique(), columns)


def mark_shared_readings(pairs: pl.DataFrame, rows: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Add `shares_reading`, and `read_title`: the title of the side whose own names are the reading; null when both sides are mixed.

    Args:
        pairs: a, b.
        rows: atom_id, artist, reading (numbers) and title_key of both sides.
        readings: as `block_pairs.read_readings` returns.
    """
    read = readings.filter(pl.col("atom_id").is_in(rows["atom_id"].implode()))
    if read.is_empty():
        return pairs.with_columns(shares_reading=pl.lit(value=False), read_title=pl.lit(None, pl.String))
    named = rows.filter(pl.col("artist") != NO_NAME).select("atom_id", "reading", read_title="title_key")
    known = pl.concat([read.select("atom_id", reading="readings", read_title=pl.lit(None, pl.String)), named]).unique()
    mixed = pairs.select("a", "b").filter(pl.any_horizontal(pl.col(side).is_in(read["atom_id"].implode()) for side in ("a", "b")))
    shared = mixed.join(known, left_on="a", right_on="atom_id")
    shared = shared.join(known, left_on=["b", "reading"], right_on=["atom_id", "reading"], suffix="_b")
    titles = pl.coalesce("read_title", "read_title_b").drop_nulls().max()
    shared = shared.group_by("a", "b").agg(shares_reading=pl.lit(value=True), read_title=titles)
    pairs = pairs.join(shared, on=["a", "b"], how="left", maintain_order="left")
    return pairs.with_columns(pl.col("shares_reading").fill_null(value=False))


def _filter_alike_titles(pairs: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose titles can be one: a sixth. Numbers, lengths and sets of letters rule out half of them without their texts."""
    rows = rows.sort("atom_id")
    lengths, sets = Letters.of(rows["title_key"])
    title, artist, front, back = (rows[name].to_numpy() for name in ("title", "artist", "title_front", "title_back"))
    one, other = (rows["atom_id"].search_sorted(pairs[side]).to_numpy() for side in ("a", "b"))
    longer, shorter = np.maximum(lengths[one], lengths[other]), np.minimum(lengths[one], lengths[other])
    # Each sign of a wide script counts as three letters in `match_weights.is_near`. Only texts beyond ASCII hold such signs.
    is_ascii = rows.select(pl.col("title_key").str.len_bytes() == pl.col("title_key").str.len_chars()).to_series().to_numpy()
    is_wide = ~(is_ascii[one] & is_ascii[other])
    edits = np.where(is_wide, 3, 1) * longer // match_weights.LETTERS_PER_EDIT
    differing = np.bitwise_count(sets[one] ^ sets[other])
    # A typing error changes the length by one at most, and two letters of the set.
    is_near = (differing <= 2 * edits) & (longer - shorter <= edits) & (is_wide | (shorter > match_weights.LETTERS_PER_EDIT))
    # A title that holds another has its letters, but for one typing error, and one of its ends or the same artist.
    few, many = np.where(lengths[one] < lengths[other], (sets[one], sets[other]), (sets[other], sets[one]))
    may_hold = np.bitwise_count(few & ~many) <= 1
    is_same_artist = (artist[one] == artist[other]) & (shorter >= match_weights.LONGER_EDIT_LETTERS)
    begins, ends = (may_hold & ((end[one] == end[other]) | (shorter < TITLE_END) | is_same_artist) for end in (front, back))
    is_swapped = (title[one] == artist[other]) & (artist[one] == title[other])
    is_alike = (title[one] == title[other]) | ((longer == shorter) & (differing == 0)) | is_swapped | pairs["shares_reading"].to_numpy()
    for may_be, compare in ((is_near | begins | ends, are_titles_alike), (ends, mark_movements)):
        doubtful = np.flatnonzero(may_be & ~is_alike)
        is_alike[doubtful] = compare(*(rows["title_key"].gather(places[doubtful]) for places in (one, other))).to_numpy()
    return pairs.filter(pl.Series(is_alike))
