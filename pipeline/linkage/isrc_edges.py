"""Edges from shared ISRCs: each atom that claims a code is compared with the best-supported atom of that code.

Best supported: most platforms, then most records, then the smallest atom id. Atoms that fail the guard stay apart and are compared once
more among themselves, because the best-supported claim can be the wrong one (a code on all tracks of a release).
"""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import add_compared_columns, add_verdict

ROUNDS = 3
"""Claims left after three rounds are on codes that stand on a whole release: further rounds find nothing."""


def find_isrc_edges(atoms: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    """Return the edges of kind `isrc` that pass the guards.

    Args:
        atoms: rows of `atom`, at least those that share a code.
        claims: rows of `atom_isrc`; any subset that holds all claims of each of its codes.

    Returns:
        Rows of `edge`, not sorted; an atom pair stands once per code that joins it.
    """
    # Numbers find the shared codes. A lone code that gets through by chance forms no pair.
    claims = claims.filter(pl.col("isrc").hash().is_duplicated())
    found = []
    for _ in range(ROUNDS):
        # A star around the best atom instead of all pairs: a code on every track of a release would give a quadratic
        # number.
        pairs = _pair_with_best(claims)
        if pairs.is_empty():
            break
        judged = add_verdict(add_compared_columns(pairs, atoms))
        passed = judged.filter(pl.col("reason").is_null())
        found.append(passed)
        # Next round: the rejected atoms only, so that another of them becomes the best-supported one.
        failed = judged.filter(pl.col("reason").is_not_null()).select("isrc", atom_id="other")
        claims = claims.join(failed, on=["isrc", "atom_id"], how="semi")
    if not found:
        return TABLES["edge"].empty()
    edges = pl.concat(found).select(
        atom_id_a=pl.min_horizontal("a", "b"), atom_id_b=pl.max_horizontal("a", "b"), kind=pl.lit("isrc"), score="score", evidence="isrc"
    )
    return TABLES["edge"].conform(edges)


def _pair_with_best(claims: pl.DataFrame) -> pl.DataFrame:
    """Return pairs isrc, a (best-supported atom of the code), b (= other): one for each further claim."""
    support = claims.sort("isrc", -pl.col("platforms").list.len().cast(pl.Int64), -pl.col("record_count"), "atom_id")
    support = support.with_columns(a=pl.col("atom_id").first().over("isrc"))
    return support.filter(pl.col("a") != pl.col("atom_id")).select("isrc", "a", b="atom_id", other="atom_id")
