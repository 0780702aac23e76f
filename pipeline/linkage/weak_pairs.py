"""Pairs of atoms that weak signals may join: they share a block, one of them has no code, and their titles can be alike.

Numbers decide which pairs are worth a look, a few atoms without a code at a time, so that memory does not grow with the table. What must
not live here: which parts make a block (weak_blocks.py), and what a pair is worth (weak_edges.py).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl

from pipeline.linkage import match_weights
from pipeline.linkage.generic_titles import is_generic_title, is_movement_title
from pipeline.linkage.guards import Letters
from pipeline.linkage.mixed_fields import number_reading
from pipeline.linkage.weak_blocks import BLOCK_COLUMNS, LARGEST_BLOCK, list_blocks, list_reading_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

ATOMS_AT_A_TIME = 250_000
"""Atoms without a code whose blocks are held at a time: some nine million blocks, 500 MB with the atoms of all others in them."""
_COMPARED = ("artist_key", "title_key", "variant")


class AtomSource(Protocol):
    """The tables of atoms, as `MappedAtoms` reads them."""

    def read_pieces(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of a table."""

    def read_atom_rows(self, name: str, atom_ids: pl.Series, columns: list[str]) -> pl.DataFrame:
        """Return the rows of these atoms."""


def find_weak_pairs(atoms: AtomSource, anchored: pl.Series) -> tuple[pl.DataFrame, int]:
    """Return a < b of the pairs worth weighing, at least one of them not `anchored`, and the number of atoms."""
    free, count = [pl.Series("atom_id", [], dtype=pl.Int64)], 0
    for rows in atoms.read_pieces("atom", ["atom_id", "title_key"]):
        count += rows.height
        alone = rows.filter(~pl.col("atom_id").is_in(anchored.implode()))
        # A generic title says nothing, whatever else agrees: an artist has many an `Intro`. A movement may have its work elsewhere.
        free.append(alone.filter(~is_generic_title(pl.col("title_key")) | is_movement_title(pl.col("title_key")))["atom_id"])
    ids = pl.concat(free).sort()
    read = pl.concat([rows.drop_nulls() for rows in atoms.read_pieces("atom_member", ["atom_id", "readings"])])
    read = read.explode("readings", empty_as_null=False).drop_nulls().unique()
    found = [pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64})]
    for start in range(0, len(ids), ATOMS_AT_A_TIME):
        pairs = _find_pairs_of(atoms, ids.slice(start, ATOMS_AT_A_TIME), read)
        rows = read_sides(atoms, pairs, ["atom_id", *_COMPARED])
        found.append(_filter_comparable(mark_shared_readings(pairs, rows, atoms), rows).select("a", "b"))
    return pl.concat(found).unique().sort("a", "b"), count


def read_sides(atoms: AtomSource, pairs: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Return the rows of `atom` of both sides of pairs."""
    return atoms.read_atom_rows("atom", pl.concat([pairs["a"], pairs["b"]]).unique(), columns)


def _find_pairs_of(atoms: AtomSource, ids: pl.Series, read: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of these atoms that share a block. `read`: atom_id, readings (one a row) of all mixed titles."""
    own = pl.concat([rows.filter(pl.col("atom_id").is_in(ids.implode())) for rows in atoms.read_pieces("atom", BLOCK_COLUMNS)])
    reading_blocks = list_reading_blocks(read)
    blocks = pl.concat([*list_blocks(own), reading_blocks.filter(pl.col("atom_id").is_in(ids.implode()))])
    numbers = blocks["block"].unique().implode()
    # Each kind is filtered before the next is made: the blocks of all atoms take half a gigabyte a million.
    listed = (rows for piece in atoms.read_pieces("atom", BLOCK_COLUMNS) for rows in list_blocks(piece))
    every = pl.concat([rows.filter(pl.col("block").is_in(numbers)) for rows in chain(listed, [reading_blocks])]).unique()
    sizes = every.group_by("block").len()
    searched = sizes.filter(pl.col("len").is_between(2, LARGEST_BLOCK))["block"]
    every, blocks = (rows.filter(pl.col("block").is_in(searched.implode())) for rows in (every, blocks))
    pairs = blocks.join(every, on="block", suffix="_b").filter(pl.col("atom_id") != pl.col("atom_id_b"))
    return pairs.select(a=pl.min_horizontal("atom_id", "atom_id_b"), b=pl.max_horizontal("atom_id", "atom_id_b")).unique()


def mark_shared_readings(pairs: pl.DataFrame, rows: pl.DataFrame, atoms: AtomSource) -> pl.DataFrame:
    """Add `shares_reading`, and `read_title`: the title of the side whose own names are the reading; null when both sides are mixed."""
    members = atoms.read_atom_rows("atom_member", rows["atom_id"], ["atom_id", "readings"]).drop_nulls("readings")
    if members.is_empty():
        return pairs.with_columns(shares_reading=pl.lit(value=False), read_title=pl.lit(None, pl.String))
    named = rows.filter(pl.col("artist_key") != "").select("atom_id", reading=number_reading(), read_title="title_key")
    readings = members.explode("readings", empty_as_null=False).select("atom_id", reading="readings", read_title=pl.lit(None, pl.String))
    readings = pl.concat([readings, named]).unique()
    mixed = pairs.select("a", "b").filter(pl.any_horizontal(pl.col(side).is_in(members["atom_id"].implode()) for side in ("a", "b")))
    shared = mixed.join(readings, left_on="a", right_on="atom_id")
    shared = shared.join(readings, left_on=["b", "reading"], right_on=["atom_id", "reading"], suffix="_b")
    titles = pl.coalesce("read_title", "read_title_b").drop_nulls().max()
    shared = shared.group_by("a", "b").agg(shares_reading=pl.lit(value=True), read_title=titles)
    pairs = pairs.join(shared, on=["a", "b"], how="left", maintain_order="left")
    return pairs.with_columns(pl.col("shares_reading").fill_null(value=False))


def _filter_comparable(pairs: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose titles can be alike by their lengths and sets of letters. The others are dropped without their texts."""
    rows = rows.sort("atom_id")
    titles, artists = Letters.of(rows["title_key"]), Letters.of(rows["artist_key"])
    one, other = (rows["atom_id"].search_sorted(pairs[side]).to_numpy() for side in ("a", "b"))
    longer = np.maximum(titles.lengths[one], titles.lengths[other])
    # Each sign of a wide script counts as three letters in `match_weights.is_near`. Only texts beyond ASCII hold such signs.
    is_ascii = rows.select(pl.col("title_key").str.len_bytes() == pl.col("title_key").str.len_chars()).to_series().to_numpy()
    edits = np.where(is_ascii[one] & is_ascii[other], 1, 3) * longer // match_weights.LETTERS_PER_EDIT
    # A typing error changes the length by one at most, and two letters of the set.
    differing = np.bitwise_count(titles.sets[one] ^ titles.sets[other])
    is_near = (differing <= 2 * edits) & (np.abs(titles.lengths[one] - titles.lengths[other]) <= edits)
    common = titles.sets[one] & titles.sets[other]
    begins = (common == titles.sets[one]) | (common == titles.sets[other])
    is_swapped = (titles.sets[one] == artists.sets[other]) & (artists.sets[one] == titles.sets[other])
    return pairs.filter(pl.Series(is_near | begins | is_swapped) | pl.col("shares_reading"))
