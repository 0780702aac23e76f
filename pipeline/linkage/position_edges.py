"""Edges from release positions: records of several platforms in one position (disc, track) of releases with one barcode.

A barcode names a product and a position on it names a recording, whatever its title and its code are there. But barcodes are mistyped and
reused, and some platforms number tracks differently. So names must agree as for a shared code, and durations as closely as for a typing
error. A platform with several records in one position is no evidence about it.
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.place_numbers import DISC_BITS, TRACK_BITS
from catalog_store.tables import TABLES
from pipeline.linkage.guards import TYPO_DURATION_MS, add_compared_columns, add_verdict, compute_duration_gap

ROWS_AT_A_TIME = 2_000_000
"""Records in contested positions that are paired at a time."""


def _describe_position() -> pl.Expr:
    # A position is one number: barcode, disc, track, from the upper bits down (place_numbers.py).
    place, track = pl.col("place") // (1 << TRACK_BITS), pl.col("place") % (1 << TRACK_BITS)
    gtin = (place // (1 << DISC_BITS)).cast(pl.String).str.zfill(14)
    return pl.format("{} {}-{}", gtin, place % (1 << DISC_BITS), track)


def find_position_pairs(contested: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of atoms in one position: a, b (once), evidence (the smallest position as text).

    `contested`: as in Positions; any subset that holds all rows of each of its positions.
    """
    # At 30 million recordings the process took 2.27 GB while it paired all positions together. Two parts may find the same pair of atoms,
    # because a pair can share several positions.
    parts = 1 + contested.height // ROWS_AT_A_TIME
    found = [_pair_atoms(contested.filter(pl.col("place") % parts == part)) for part in range(parts)]
    return _take_smallest_place(pl.concat(found)).select("a", "b", evidence=_describe_position())


def _pair_atoms(contested: pl.DataFrame) -> pl.DataFrame:
    """Return a, b (once), place (the smallest) of the pairs of atoms in one position."""
    # Two records of one platform in one position can mean a reused barcode, or another numbering of tracks.
    alone = contested.filter(pl.len().over("place", "platform") == 1)
    standing = alone.select("place", "atom_id").unique()
    # At most one atom of each platform is in a place: all pairs are few, and none depends on which atom comes first.
    pairs = standing.join(standing, on="place", suffix="_b").filter(pl.col("atom_id") < pl.col("atom_id_b"))
    return _take_smallest_place(pairs.select("place", a="atom_id", b="atom_id_b"))


def _take_smallest_place(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.group_by("a", "b").agg(pl.col("place").min())


def judge_pairs(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Return a, b, score of each pair; no score if the guards reject it. `atoms`: rows of `atom`, at least those in the pairs."""
    near = (compute_duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    return add_verdict(add_compared_columns(pairs, atoms)).select("a", "b", score=pl.when(pl.col("reason").is_null() & near).then("score"))


def build_position_edges(pairs: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the edges of kind `position`, not sorted: pairs of `find_position_pairs` with a score in `judged`, which holds all pairs."""
    passed = pairs.join(judged.drop_nulls("score"), on=["a", "b"])
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence="evidence"))
