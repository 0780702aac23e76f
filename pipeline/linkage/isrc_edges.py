"""Edges from shared ISRCs: the atoms that claim a code are compared with each other.

All pairs are compared, so that three spellings of a name meet whichever of them is listed first. A code of more than MOST_PAIRED atoms
is on a whole release or worse: there each atom is compared with the best-supported one (most platforms, then most records, then the
smallest atom id), and those that fail are compared once more among themselves, because that claim can be the wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import add_compared_columns, add_verdict
from pipeline.linkage.sorted_runs import find_repeated, mark_known

if TYPE_CHECKING:
    from pipeline.linkage.block_pairs import AtomSource

MOST_PAIRED = 12
"""Atoms of one code that are compared in all pairs: at most 66. Real recordings have up to five spellings under a code."""
ROUNDS = 3
"""Claims left after three rounds are on codes that are on a whole release: further rounds find nothing."""


def read_shared_claims(atoms: AtomSource, columns: list[str]) -> pl.DataFrame:
    """Return these columns of the claims (rows of `atom_isrc`) whose code several atoms claim; a code may be among them by chance."""
    # Two passes, because most codes are on one atom: the first holds eight bytes for each claim, the second only shared ones.
    shared = find_repeated(rows["isrc"].hash().to_numpy() for rows in atoms.read_pieces("atom_isrc", ["isrc"]))
    claims = atoms.read_pieces("atom_isrc", columns)
    return pl.concat(rows.filter(pl.Series(mark_known(rows["isrc"].hash(), shared))) for rows in claims)


def find_isrc_edges(atoms: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    """Return the edges of kind `isrc` that pass the guards.

    Args:
        atoms: rows of `atom`, at least those that share a code.
        claims: rows of `atom_isrc`; any subset that holds all claims of each of its codes.

    Returns:
        Rows of `edge`, not sorted; an atom pair occurs once per code that joins it.
    """
    # Numbers find the shared codes. A lone code that gets through by chance forms no pair.
    claims = claims.filter(pl.col("isrc").hash().is_duplicated())
    is_small = pl.len().over("isrc") <= MOST_PAIRED
    judged = add_verdict(add_compared_columns(_pair_all(claims.filter(is_small)), atoms))
    found = [judged.filter(pl.col("reason").is_null()).select("isrc", "a", "b", "score")]
    claims = claims.filter(~is_small)
    for _ in range(ROUNDS):
        # A star around the best atom instead of all pairs: a code on every track of a release would give a quadratic
        # number.
        pairs = _pair_with_best(claims)
        if pairs.is_empty():
            break
        judged = add_verdict(add_compared_columns(pairs, atoms))
        passed = judged.filter(pl.col("reason").is_null())
        found.append(passed.select("isrc", "a", "b", "score"))
        # Next round: the rejected atoms only, so that another of them becomes the best-supported one.
        failed = judged.filter(pl.col("reason").is_not_null()).select("isrc", atom_id="other")
        claims = claims.join(failed, on=["isrc", "atom_id"], how="semi")
    edges = pl.concat(found).select(
        atom_id_a=pl.min_horizontal("a", "b"), atom_id_b=pl.max_horizontal("a", "b"), kind=pl.lit("isrc"), score="score", evidence="isrc"
    )
    return TABLES["edge"].conform(edges)


def _pair_all(claims: pl.DataFrame) -> pl.DataFrame:
    """Return all pairs isrc, a < b of atoms that claim one code."""
    pairs = claims.select("isrc", a="atom_id").join(claims.select("isrc", b="atom_id"), on="isrc")
    return pairs.filter(pl.col("a") < pl.col("b"))


def _pair_with_best(claims: pl.DataFrame) -> pl.DataFrame:
    """Return pairs isrc, a (best-supported atom of the code), b (= other): one for each further claim."""
    support = claims.sort("isrc", -pl.col("platforms").list.len().cast(pl.Int64), -pl.col("record_count"), "atom_id")
    support = support.with_columns(a=pl.col("atom_id").first().over("isrc"))
    return support.filter(pl.col("a") != pl.col("atom_id")).select("isrc", "a", b="atom_id", other="atom_id")
