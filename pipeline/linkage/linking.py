"""Linkage of a frame in memory: the stages' pure functions, one after the other, without tables on disk."""

from __future__ import annotations

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.atoms import Atoms, make_atoms
from pipeline.linkage.clusters import clusters, components
from pipeline.linkage.credits import name_table
from pipeline.linkage.id_rules import FIRST_ID, NO_REGISTRY, assign_ids
from pipeline.linkage.isrc_edges import isrc_edges
from pipeline.linkage.key_edges import key_edges
from pipeline.linkage.normalise import hash_bucket, names_of, normalise
from pipeline.linkage.typo_edges import same_artist_edges, same_title_edges, without_contradiction


def link(records: pl.DataFrame, artists: pl.DataFrame | None = None, *, buckets: int = 1) -> pl.DataFrame:
    """Which record is which recording.

    Args:
        records: rows of `source_recording` of any platforms; other columns than linkage reads may be missing.
        artists: rows of `source_artist` (platform, artist_id, name), if at hand: the names behind credited ones.
        buckets: into how many parts the work is cut; the answer is the same for any number.

    Returns:
        platform, external_id, recording_id (numbered from 1 by the smallest source key of each recording), sorted by platform, external_id.
    """
    if records.is_empty():
        return TABLES["recording_member"].empty()
    artists = TABLES["source_artist"].empty() if artists is None else artists
    names = name_table(names_of(records, artists))
    atoms = _atoms(normalise(records, names, artists), buckets)
    candidates = pl.concat([same_artist_edges(atoms.atom), same_title_edges(atoms.atom)]).sort("a", "b", "evidence")
    typos = without_contradiction(candidates, atoms.isrc, atoms.member)
    edges = pl.concat([isrc_edges(atoms.atom, atoms.isrc), typos])
    edges = pl.concat([edges, key_edges(atoms.atom, components(atoms.atom["atom_id"], edges))])
    cluster = clusters(atoms.atom, edges)
    grouped = atoms.member.join(cluster, on="atom_id", how="left")
    keyed = grouped.select(group="cluster_id", source_key=pl.concat_str("platform", pl.lit(":"), "external_id"))
    ids = assign_ids(keyed, NO_REGISTRY, FIRST_ID).ids
    member = grouped.join(ids, left_on="cluster_id", right_on="group", how="left").rename({"entity_id": "recording_id"})
    return member.select("platform", "external_id", "recording_id").sort("platform", "external_id")


def _atoms(normal: pl.DataFrame, buckets: int) -> Atoms:
    made = [make_atoms(normal.filter(hash_bucket(buckets) == bucket)) for bucket in range(buckets)]
    return Atoms(*(pl.concat(tables) for tables in zip(*made, strict=True)))
