"""Clusters -> tables `recording_member`, `isrc_owner`, `isrc_conflict`, and what the id registry remembers.

When the night builds on a snapshot, ids are assigned to the groups that have changed and to all that shares an id with them; the others
keep theirs. The rules give the same ids either way (id_rules.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import live_atoms
from catalog_store.tables.files import TableWriter, read_table, row_count, scan_table, write_table
from pipeline.linkage.atoms import source_key
from pipeline.linkage.id_rules import assign_changed
from pipeline.linkage.isrc_owners import isrc_owners
from pipeline.linkage.night import Night, current_night
from pipeline.linkage.record_ids import RecordIds, assign_records
from pipeline.linkage.registry import previous_registry, published_redirects, save_assignment

if TYPE_CHECKING:
    from pipeline.linkage.id_rules import Registry
    from pipeline.linkage.stages.atoms import Facts
    from pipeline.paths import BuildPaths

SOURCE = ["platform", "external_id"]
KIND = "recording"


def recording_ids(paths: BuildPaths) -> Facts:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and lay the ids down for the registry."""
    night = current_night(paths)
    cluster = read_table(TABLES["cluster"], paths.table("cluster"))
    ids = _assign_all(paths, cluster) if night.base is None else _assign_changes(paths, night, cluster)
    return {
        "records": row_count(paths.table("recording_member")),
        "recordings": cluster["cluster_id"].n_unique(),
        "new_ids": ids.new_ids,
        "redirects": ids.redirects,
        "isrcs": row_count(paths.table("isrc_owner")),
        "isrc_conflicts": row_count(paths.table("isrc_conflict")),
    }


def _assign_all(paths: BuildPaths, cluster: pl.DataFrame) -> RecordIds:
    assigned = assign_records(paths, _groups(cluster))
    ids = assigned.ids.rename({"entity_id": "recording_id"})
    recordings = cluster.join(ids, left_on="cluster_id", right_on="group", how="left").select("atom_id", "recording_id")
    owner, conflict = _owners(paths, recordings, None)
    write_table(TABLES["isrc_owner"], paths.table("isrc_owner"), [owner])
    write_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"), [conflict])
    return assigned


def _assign_changes(paths: BuildPaths, night: Night, cluster: pl.DataFrame) -> RecordIds:
    """Ids for the groups that have changed: everything else is taken over."""
    registry, next_id = previous_registry(paths, KIND)
    reach = _reach(paths, night, cluster, registry)
    gone = reach.gone.select(source_key=source_key())["source_key"]
    members = reach.members.select("group", "source_key")
    assignment = assign_changed(gone, members, registry, published_redirects(paths, KIND), next_id)
    save_assignment(paths, KIND, assignment)
    ids = assignment.ids.rename({"entity_id": "recording_id"})
    member = reach.members.join(ids, on="group", how="left").select(*SOURCE, "recording_id")
    left = pl.concat([reach.gone.select(SOURCE), member.select(SOURCE)])
    with TableWriter(TABLES["recording_member"], paths.table("recording_member")) as writer:
        for platform in sorted(CATALOG_PLATFORMS):
            here = pl.col("platform") == platform
            kept = (
                night.table("recording_member")
                .filter(here)
                .collect()
                .join(left.filter(here), on="external_id", how="anti", maintain_order="left")
            )
            writer.write(kept.merge_sorted(member.filter(here).sort("external_id"), key="external_id"))
    _take_over_owners(paths, night, reach)
    return RecordIds(assignment.ids, assignment.next_id - next_id, assignment.redirects.height)


class _Reach(NamedTuple):
    """What tonight's changes reach.

    `members`: platform, external_id, atom_id, group, source_key of groups that must be looked at again, sorted by source_key. `gone`:
    platform, external_id, atom_id of records of the base that no dump holds.
    """

    members: pl.DataFrame
    gone: pl.DataFrame


def _reach(paths: BuildPaths, night: Night, cluster: pl.DataFrame, registry: Registry) -> _Reach:
    change = read_table(TABLES["atom_change"], paths.table("atom_change")).select("atom_id").unique()
    before = night.table("cluster").rename({"cluster_id": "before"}).collect()
    both = _groups(cluster).join(before, on="atom_id", how="full", coalesce=True)
    moved = both.filter(pl.col("group").ne_missing(pl.col("before"))).select("atom_id")
    dirty = pl.concat([change, moved]).unique()
    base_members = night.table("atom_member").select(*SOURCE, "atom_id")
    former = base_members.join(change.lazy(), on="atom_id", how="semi").collect()
    while True:
        dirty = _closed(both, dirty)
        here = dirty.join(_groups(cluster), on="atom_id")
        members = _members(paths).join(here.lazy(), on="atom_id").collect().with_columns(source_key=source_key()).sort("source_key")
        gone = former.join(members, on=SOURCE, how="anti")
        part = registry.part(pl.concat([members["source_key"], gone.select(source_key=source_key())["source_key"]]))
        back = _elsewhere(paths, part, members)
        if back.is_empty():
            return _Reach(members, gone)
        dirty = pl.concat([dirty, back])


def _closed(both: pl.DataFrame, dirty: pl.DataFrame) -> pl.DataFrame:
    """Atoms that share a group, tonight or in the base, with a dirty one, and so on."""
    while True:
        rows = both.join(dirty, on="atom_id", how="semi")
        groups, before = (rows[name].drop_nulls().unique().implode() for name in ("group", "before"))
        wider = both.filter(pl.col("group").is_in(groups) | pl.col("before").is_in(before)).select("atom_id")
        if wider.height == dirty.height:
            return wider
        dirty = wider


def _elsewhere(paths: BuildPaths, part: Registry, members: pl.DataFrame) -> pl.DataFrame:
    """Atoms outside of `members` with records that share an id with them: a record came back whose id others still carry."""
    keys = part.keys.join(members, on="source_key", how="anti")
    key = keys.select(platform=pl.col("source_key").str.extract("^([^:]*):"), external_id=pl.col("source_key").str.extract("^[^:]*:(.*)$"))
    return _members(paths).join(key.lazy(), on=SOURCE, how="semi").select("atom_id").unique().collect()


def _take_over_owners(paths: BuildPaths, night: Night, reach: _Reach) -> None:
    """Write `isrc_owner` and `isrc_conflict`: settled anew for every code that a record in reach has or had."""
    atoms = reach.members.select("atom_id").unique().lazy()
    former = reach.gone.select("atom_id").unique().lazy()
    change = scan_table(TABLES["atom_change"], paths.table("atom_change")).filter(pl.col("change") == "gone").select("atom_id")
    claims = live_atoms("atom_isrc", paths.table).select("isrc", "atom_id")
    base_claims = night.table("atom_isrc").select("isrc", "atom_id")
    found = [claims.join(atoms, on="atom_id", how="semi"), *(base_claims.join(ids, on="atom_id", how="semi") for ids in (former, change))]
    codes = pl.concat(found).select("isrc").unique().collect()
    claimants = claims.join(codes.lazy(), on="isrc", how="semi").select("atom_id").unique()
    speakers = _members(paths).join(claimants, on="atom_id", how="semi").unique("atom_id", keep="any")
    member = scan_table(TABLES["recording_member"], paths.table("recording_member"))
    recordings = speakers.join(member, on=SOURCE).select("atom_id", "recording_id").collect()
    for name, rows in zip(("isrc_owner", "isrc_conflict"), _owners(paths, recordings, codes), strict=True):
        kept = night.table(name).join(codes.lazy(), on="isrc", how="anti", maintain_order="left").collect()
        write_table(TABLES[name], paths.table(name), [kept.merge_sorted(rows, key="isrc")])


def _groups(cluster: pl.DataFrame) -> pl.DataFrame:
    return cluster.rename({"cluster_id": "group"})


def _members(paths: BuildPaths) -> pl.LazyFrame:
    return live_atoms("atom_member", paths.table).select(*SOURCE, "atom_id")


def _owners(paths: BuildPaths, recordings: pl.DataFrame, codes: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables `isrc_owner` and `isrc_conflict`, of some `codes` or of all; `recordings` gives the recording_id of each atom_id."""
    claims = live_atoms("atom_isrc", paths.table)
    if codes is not None:
        claims = claims.join(codes.lazy(), on="isrc", how="semi")
    claimed = claims.collect().join(recordings, on="atom_id", how="left")
    shared = claimed.filter(pl.col("isrc").is_duplicated()).select("isrc", "recording_id").unique()
    contested = shared.filter(pl.col("isrc").is_duplicated()).select("isrc").unique()
    involved = claimed.join(contested, on="isrc", how="semi").select("atom_id").unique().lazy()
    atoms = live_atoms("atom", paths.table).join(involved, on="atom_id", how="semi").collect()
    return isrc_owners(claimed, atoms)
