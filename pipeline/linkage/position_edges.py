"""Edges from release positions: records of several platforms that stand in one place (disc, track) of releases with one barcode.

A barcode names a product and a place on it names a recording, whatever its title is spelt like and whichever code it carries there. But
barcodes are mistyped and reused, and some platforms number otherwise: names must agree as for a shared code, durations as closely as for a
typing error. A platform that has several records in one place says nothing about it.
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.place_numbers import DISC_BITS, TRACK_BITS
from catalog_store.tables import TABLES
from pipeline.linkage.guards import TYPO_DURATION_MS, add_compared_columns, add_verdict, duration_gap


def _place_text() -> pl.Expr:
    place, track = pl.col("place") // (1 << TRACK_BITS), pl.col("place") % (1 << TRACK_BITS)
    gtin = (place // (1 << DISC_BITS)).cast(pl.String).str.zfill(14)
    return pl.format("{} {}-{}", gtin, place % (1 << DISC_BITS), track)


def find_position_pairs(contested: pl.DataFrame) -> pl.DataFrame:
    """Pairs of atoms on one place: a, b (once), evidence (the smallest place, for a reader).

    `contested`: as in Places; any subset that holds all rows of each of its places.
    """
    alone = contested.filter(pl.len().over("place", "platform") == 1)
    support = alone.group_by("place", "atom_id").agg(platforms=pl.len())
    support = support.sort("place", -pl.col("platforms").cast(pl.Int64), "atom_id")
    support = support.with_columns(best=pl.col("atom_id").first().over("place")).filter(pl.col("best") != pl.col("atom_id"))
    pairs = support.group_by(a=pl.min_horizontal("best", "atom_id"), b=pl.max_horizontal("best", "atom_id")).agg(pl.col("place").min())
    return pairs.select("a", "b", evidence=_place_text())


def judge_pairs(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """a, b, score of each pair; no score where the guards refuse it. `atoms`: rows of `atom`, at least those in the pairs."""
    near = (duration_gap() <= TYPO_DURATION_MS).fill_null(value=True)
    return add_verdict(add_compared_columns(pairs, atoms)).select("a", "b", score=pl.when(pl.col("reason").is_null() & near).then("score"))


def build_position_edges(pairs: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Edges of kind `position`, not sorted: of `pairs`, as `position_pairs` gives and all judged, those that the guards let pass."""
    passed = pairs.join(judged.drop_nulls("score"), on=["a", "b"])
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("position"), score="score", evidence="evidence"))
