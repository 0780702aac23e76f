"""Clusters -> tables `recording_member`, `isrc_owner`, `isrc_conflict`, and what the id registry remembers.

When the night builds on a snapshot, ids are assigned to the groups that have changed and to all that shares an id with them; the others keep
theirs. The rules give the same ids either way (id_rules.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, row_count, scan_table, write_table
from pipeline.linkage.atoms import source_key
from pipeline.linkage.id_rules import Assignment, Registry, assign_ids
from pipeline.linkage.isrc_owners import isrc_owners
from pipeline.linkage.night import Night, current_night
from pipeline.linkage.registry import previous_registry, save_assignment

if TYPE_CHECKING:
    from pipeline.linkage.stages.atoms import Facts
    from pipeline.paths import BuildPaths

SOURCE = ["platform", "external_id"]
KIND = "recording"


def recording_ids(paths: BuildPaths) -> Facts:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and lay the ids down for the registry."""
    night = current_night(paths)
    cluster = read_table(TABLES["cluster"], paths.table("cluster"))
    registry, next_id = previous_registry(paths, KIND)
    if night.base is None:
        assignment = _assign_all(paths, cluster, registry, next_id)
    else:
        assignment = _assign_changes(paths, night, cluster, registry, next_id)
    save_assignment(paths, KIND, assignment)
    return {
        "records": row_count(paths.table("recording_member")),
        "recordings": cluster["cluster_id"].n_unique(),
        "new_ids": assignment.next_id - next_id,
        "redirects": assignment.redirects.height,
        "isrcs": row_count(paths.table("isrc_owner")),
        "isrc_conflicts": row_count(paths.table("isrc_conflict")),
    }


def _assign_changes(paths: BuildPaths, night: Night, cluster: pl.DataFrame, registry: Registry, next_id: int) -> Assignment:
    return _assign_all(paths, cluster, registry, next_id)


def _assign_all(paths: BuildPaths, cluster: pl.DataFrame, registry: Registry, next_id: int) -> Assignment:
    member = _members(paths).collect()
    # Platform by platform: sorting the joined keys compares their long common beginnings over and over.
    by_platform = sorted(member.partition_by("platform", as_dict=True).items())
    member = pl.concat([member.clear(), *(rows.sort("external_id") for _, rows in by_platform)])
    member = member.join(_groups(cluster), on="atom_id", how="left", maintain_order="left").with_columns(source_key=source_key())
    assignment = assign_ids(member.select("group", "source_key"), registry, next_id)
    ids = assignment.ids.rename({"entity_id": "recording_id"})
    member = member.join(ids, on="group", how="left", maintain_order="left")
    write_table(TABLES["recording_member"], paths.table("recording_member"), [member.select(*SOURCE, "recording_id")])
    recordings = cluster.join(ids, left_on="cluster_id", right_on="group", how="left").select("atom_id", "recording_id")
    owner, conflict = _owners(paths, recordings, None)
    write_table(TABLES["isrc_owner"], paths.table("isrc_owner"), [owner])
    write_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"), [conflict])
    return assignment


def _groups(cluster: pl.DataFrame) -> pl.DataFrame:
    return cluster.rename({"cluster_id": "group"})


def _members(paths: BuildPaths) -> pl.LazyFrame:
    return scan_table(TABLES["atom_member"], paths.table("atom_member")).select(*SOURCE, "atom_id")


def _owners(paths: BuildPaths, recordings: pl.DataFrame, codes: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables `isrc_owner` and `isrc_conflict`, of some `codes` or of all; `recordings` gives the recording_id of each atom_id."""
    claims = scan_table(TABLES["atom_isrc"], paths.table("atom_isrc"))
    if codes is not None:
        claims = claims.join(codes.lazy(), on="isrc", how="semi")
    claimed = claims.collect().join(recordings, on="atom_id", how="left")
    contested = claimed.select("isrc", "recording_id").unique().filter(pl.len().over("isrc") > 1).select("isrc").unique()
    involved = claimed.join(contested, on="isrc", how="semi").select("atom_id").unique().lazy()
    atoms = scan_table(TABLES["atom"], paths.table("atom")).join(involved, on="atom_id", how="semi").collect()
    return isrc_owners(claimed, atoms)
