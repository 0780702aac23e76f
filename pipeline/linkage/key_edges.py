"""Edges for atoms without duration whose key left a choice: they join when other evidence leaves one recording of that key.

Atoms are made before codes are compared. Since then, atoms of several durations may have become one cluster (a wrong duration under the
same ISRC), or one cluster may outweigh the others so far that no choice is left.
"""

from __future__ import annotations

import polars as pl

from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from pipeline.linkage.atoms import DOMINANCE, KEY
from pipeline.linkage.damaged_names import NAMELESS_ARTISTS
from pipeline.linkage.generic_titles import is_generic_title, is_work_title
from pipeline.linkage.live_takes import is_unplaced_live
from pipeline.linkage.performers import PERFORMER_COLUMNS, mark_other_performers

KEY_COLUMNS = ["atom_id", *KEY, "duration_ms", "record_count", "names"]
"""Columns of `atom` that are read."""


def find_key_edges(atoms: pl.DataFrame, components: pl.DataFrame, doubtful: pl.Series) -> pl.DataFrame:
    """Return the edges of kind `key`.

    Args:
        atoms: KEY_COLUMNS of `atom`, all atoms of each artist among them.
        components: atom_id, cluster_id by all other edges; an atom that is not among them has none.
        doubtful: ids of atoms that no key joins (`version_edges.list_doubtful_atoms`).
    """
    untimed = atoms.filter(pl.col("duration_ms").is_null(), pl.col("artist_key") != "")
    # A generic title has many recordings, and an artist many a `Live`: the key decides nothing about them.
    untimed = untimed.filter(~is_generic_title(pl.col("title_key")), ~is_unplaced_live(pl.col("variant")))
    # A label such as `Artist` in the field of artists is that of many.
    untimed = untimed.filter(~pl.col("artist_key").is_in(NAMELESS_ARTISTS), ~pl.col("atom_id").is_in(doubtful.implode()))
    # Keys as numbers reduce the timed atoms to a few; the join on the texts then decides.
    waiting = untimed.select(hash_columns(KEY)).to_series().unique().implode()
    timed = atoms.filter(pl.col("duration_ms").is_not_null(), hash_columns(KEY).is_in(waiting)).join(untimed, on=KEY, how="semi")
    timed = _add_clusters(timed, components)
    held = timed.group_by(*KEY, "cluster_id").agg(
        records=pl.col("record_count").sum(),
        # The edge needs one end in the cluster; the largest atom explains it best, and ties fall to the smallest id.
        nearest=pl.col("atom_id").sort_by(["record_count", "atom_id"], descending=[True, False]).first(),
    )
    # Clusters and not atoms: since atoms were made, other evidence has joined some of one key.
    share = (pl.col("records") / pl.col("records").sum()).over(KEY)
    chosen = held.filter(share >= DOMINANCE).select(*KEY, "nearest", target="cluster_id")
    pairs = _add_clusters(untimed, components).join(chosen, on=KEY).filter(pl.col("cluster_id") != pl.col("target"))
    # Several clusters of one key that wait may be tracks of one release: at most one of them is the recording, and nothing says which.
    pairs = pairs.filter(pl.col("cluster_id").n_unique().over(KEY) == 1)
    pairs = pairs.join(_drop_other_performers(pairs, atoms), on=["atom_id", "nearest"], how="semi")
    ends = (pl.min_horizontal("atom_id", "nearest"), pl.max_horizontal("atom_id", "nearest"))
    described = pl.concat_str("artist_key", pl.lit(" / "), "title_key", pl.lit(" / "), "variant")
    return TABLES["edge"].conform(
        pairs.select(atom_id_a=ends[0], atom_id_b=ends[1], kind=pl.lit("key"), score=pl.lit(1.0), evidence=described)
    )


def _drop_other_performers(pairs: pl.DataFrame, atoms: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, nearest of the pairs that are not one work by two performers under one lead."""
    sides = {"a": "atom_id", "b": "nearest"}
    named = pairs.select(*sides.values())
    for side, atom in sides.items():
        columns = atoms.select(pl.col("atom_id").alias(atom), *(pl.col(name).alias(f"{side}_{name}") for name in PERFORMER_COLUMNS))
        named = named.join(columns, on=atom, how="left")
    # A credit of the composer alone does not say who plays.
    others = [pl.col(f"{side}_names").list.set_difference(pl.concat_list(f"{side}_artist_key")).list.len() for side in sides]
    is_unsaid = is_work_title(pl.col("a_title_key")) & ((others[0] == 0) != (others[1] == 0))
    return named.filter(~mark_other_performers(), ~is_unsaid)


def _add_clusters(atoms: pl.DataFrame, components: pl.DataFrame) -> pl.DataFrame:
    placed = atoms.join(components, on="atom_id", how="left")
    return placed.with_columns(cluster_id=pl.coalesce("cluster_id", "atom_id"))
