"""Pairs of atoms whose audio is worth a comparison: under one fingerprint track, or of one length under similar names, or joined already.

Blocks keep the number of pairs near the number of atoms. Out of scope: whether names or audio agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.linkage.atom_fingerprints import SAME_LENGTH_SECONDS
from pipeline.linkage.typo_edges import order_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_BLOCK = 60
"""Atoms of one block and length. `Intro` at one length is on thousands, and its audio proves nothing about most of them."""
NAME_BLOCKS = ("title", "title_start_block", "title_end_block")
"""Block numbers of atoms (typo_edges.BLOCKS): one title, or one artist and an end of the title."""
NO_PAIRS = pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64})


def find_same_track_pairs(prints: pl.DataFrame) -> pl.DataFrame:
    """Return a < b of the atoms that users name for one fingerprint track. `prints`: as `find_atom_fingerprints` returns."""
    rows = prints.select("atom_id", block="track").drop_nulls().unique()
    return _pair_all(rows)


def find_same_name_pairs(prints: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return a < b of the atoms in one block whose audio has one length. `blocks`: atom_id and NAME_BLOCKS of these atoms."""
    lengths = prints.select("atom_id", "seconds").unique()
    found = [NO_PAIRS]
    for name in NAME_BLOCKS:
        rows = lengths.join(blocks.select("atom_id", block=name), on="atom_id")
        # Slots wider than the gap: two lengths of one recording are in one slot or in neighbours.
        rows = rows.with_columns(slot=pl.col("seconds") // (SAME_LENGTH_SECONDS + 1))
        rows = rows.filter(pl.len().over("block", "slot") <= LARGEST_BLOCK)
        near = pl.concat([rows, rows.with_columns(pl.col("slot") + 1)])
        pairs = rows.join(near, on=["block", "slot"], suffix="_b")
        is_close = (pl.col("seconds") - pl.col("seconds_b")).abs() <= SAME_LENGTH_SECONDS
        found.append(order_pairs(pairs.filter(is_close, pl.col("atom_id") != pl.col("atom_id_b"))))
    return pl.concat(found).unique()


def find_joined_pairs(prints: pl.DataFrame, components: pl.DataFrame) -> pl.DataFrame:
    """Return a < b of the atoms with fingerprints that other evidence joins. `components`: atom_id, cluster_id."""
    return _pair_all(prints.select("atom_id").unique().join(components, on="atom_id").select("atom_id", block="cluster_id"))


def drop_known_pairs(pairs: Iterable[pl.DataFrame], known: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct pairs that are not in `known`, sorted."""
    return pl.concat([NO_PAIRS, *pairs]).unique().join(known, on=["a", "b"], how="anti").sort("a", "b")


def _pair_all(rows: pl.DataFrame) -> pl.DataFrame:
    """Return all pairs of atoms of each block that is not too large: atom_id, block."""
    rows = rows.filter(pl.len().over("block") <= LARGEST_BLOCK)
    pairs = rows.join(rows, on="block", suffix="_b").filter(pl.col("atom_id") < pl.col("atom_id_b"))
    return pairs.select(a="atom_id", b="atom_id_b")
