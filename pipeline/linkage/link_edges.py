"""Edges from cross-links: a record of one platform that names a record of another (`source_link`)."""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.guards import add_compared_columns, add_verdict


def find_link_edges(atoms: pl.DataFrame, members: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """Return the edges of kind `link` that pass the guards.

    Args:
        atoms: rows of `atom`, at least those of the members.
        members: platform, external_id, atom_id; at least the records at both ends of the links.
        links: platform, entity_id, target_platform, target_id between recordings.
    """
    ends = members.select("platform", "external_id", "atom_id")
    pairs = links.join(ends, left_on=["platform", "entity_id"], right_on=["platform", "external_id"])
    pairs = pairs.join(ends, left_on=["target_platform", "target_id"], right_on=["platform", "external_id"], suffix="_target")
    described = pl.concat_str("platform", pl.lit(":"), "entity_id", pl.lit(" -> "), "target_platform", pl.lit(":"), "target_id")
    pairs = pairs.filter(pl.col("atom_id") != pl.col("atom_id_target")).select(
        a=pl.min_horizontal("atom_id", "atom_id_target"), b=pl.max_horizontal("atom_id", "atom_id_target"), evidence=described
    )
    # Both platforms may name each other; one edge is enough, and sorting makes it the same one on any night.
    pairs = pairs.sort("a", "b", "evidence").unique(["a", "b"], keep="first", maintain_order=True)
    passed = add_verdict(add_compared_columns(pairs, atoms)).filter(pl.col("reason").is_null())
    return TABLES["edge"].conform(passed.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("link"), score="score", evidence="evidence"))
