"""Clusters -> tables `recording_member`, `isrc_owner`, `isrc_conflict`, and what the id registry remembers.

When the night builds on a snapshot, ids are assigned to the groups that have changed and to all that shares an id with them; the others
keep theirs. The rules give the same ids either way (id_rules.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import record_number
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, read_table, row_count, write_table
from pipeline.linkage.atoms import source_key
from pipeline.linkage.failures import naming_records
from pipeline.linkage.id_rules import Registry, assign_changed
from pipeline.linkage.isrc_owners import isrc_owners
from pipeline.linkage.mapped import tonight
from pipeline.linkage.night import Night, current_night
from pipeline.linkage.record_ids import RecordIds, assign_records
from pipeline.linkage.registry import (
    RegistryWriter,
    StoredRegistry,
    conclude,
    is_exception,
    published_redirects,
    work_folder,
)
from pipeline.linkage.splicing import insertion_places, places_of, replaced, spliced
from pipeline.linkage.stages.clusters import cluster_count

if TYPE_CHECKING:
    from pipeline.linkage.id_rules import Assignment
    from pipeline.linkage.mapped import Mapped
    from pipeline.linkage.stages.atoms import Facts
    from pipeline.paths import BuildPaths

SOURCE = ["platform", "external_id"]
KIND = "recording"


def recording_ids(paths: BuildPaths) -> Facts:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and lay the ids down for the registry.

    LinkageError, which names platforms and records, when two that claim a code cannot be compared.
    """
    night = current_night(paths)
    cluster = read_table(TABLES["cluster"], paths.table("cluster"))
    atoms = tonight(paths)
    with naming_records(paths):
        ids = _assign_all(paths, atoms, cluster) if night.base is None else _assign_changes(paths, atoms, night, cluster)
    return {
        "records": row_count(paths.table("recording_member")),
        "recordings": cluster_count(cluster),
        "new_ids": ids.new_ids,
        "redirects": ids.redirects,
        "isrcs": row_count(paths.table("isrc_owner")),
        "isrc_conflicts": row_count(paths.table("isrc_conflict")),
    }


def _assign_all(paths: BuildPaths, atoms: Mapped, cluster: pl.DataFrame) -> RecordIds:
    assigned = assign_records(paths, _groups(cluster))
    ids = assigned.ids.rename({"entity_id": "recording_id"})
    recordings = cluster.join(ids, left_on="cluster_id", right_on="group", how="left").select("atom_id", "recording_id")
    owner, conflict = _owners(atoms, atoms.rows("atom_isrc"), recordings)
    write_table(TABLES["isrc_owner"], paths.table("isrc_owner"), [owner])
    write_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"), [conflict])
    return assigned


def _assign_changes(paths: BuildPaths, atoms: Mapped, night: Night, cluster: pl.DataFrame) -> RecordIds:
    """Ids for the groups that have changed: everything else is taken over."""
    before = night.read("recording_member")
    stored = StoredRegistry(paths, KIND, before)
    reach = _reach(paths, atoms, night, cluster, stored, before)
    redirects = published_redirects(paths, KIND)
    assigned = assign_changed(reach.members.select("group", "source_key"), reach.known, redirects, stored.next_id)
    rows = reach.members.join(assigned.ids.rename({"entity_id": "recording_id"}), on="group", how="left")
    _lay_down(paths, stored, reach.known, assigned, rows)
    with TableWriter(TABLES["recording_member"], paths.table("recording_member")) as writer:
        for platform in sorted(CATALOG_PLATFORMS):
            first, end = (int(before["platform"].search_sorted(platform, side=side)) for side in ("left", "right"))
            gone, changed = (frame.filter(pl.col("platform") == platform) for frame in (reach.gone, rows))
            writer.write(_with_changes(before[first:end], gone, changed.select(*SOURCE, "recording_id")))
    _take_over_owners(paths, atoms, night, reach.gone, before, rows)
    return RecordIds(assigned.ids, assigned.next_id - stored.next_id, assigned.redirects.height)


def _lay_down(paths: BuildPaths, stored: StoredRegistry, known: Registry, assigned: Assignment, rows: pl.DataFrame) -> None:
    """Put into the registry what was assigned in the place of what was known. `rows`: source_key, group, recording_id of those in reach."""
    present = rows.select("source_key", "group", entity_id="recording_id")
    keys = assigned.registry.keys.rename({"entity_id": "home"}).join(present, on="source_key", how="left").filter(is_exception())
    exceptions = Registry(stored.exceptions(), stored.links).patched(
        known, Registry(keys.select("source_key", entity_id="home").sort("source_key"), assigned.registry.links)
    )
    folder = work_folder(paths, KIND)
    with RegistryWriter(folder / "id_registry") as writer:
        writer.write(KIND, exceptions.keys, exceptions.links)
    conclude(folder, KIND, assigned.redirects, assigned.next_id)


def _with_changes(before: pl.DataFrame, gone: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """`recording_member` of a platform without records that are gone and with these rows; in its order."""
    places = places_of(before, rows)
    ids = before["recording_id"].to_numpy(writable=True)
    ids[places.drop_nulls().to_numpy()] = rows.filter(places.is_not_null())["recording_id"].to_numpy()
    before = before.with_columns(recording_id=pl.Series(ids))
    new = rows.filter(places.is_null()).sort(SOURCE)
    left = places_of(before, gone).drop_nulls().to_numpy()
    return spliced(before, left, new, insertion_places(before, new).to_numpy())


class _Reach(NamedTuple):
    """What tonight's changes reach.

    `members`: platform, external_id, atom_id, group, source_key of groups that must be looked at again, sorted by source_key. `gone`:
    platform, external_id, atom_id of records of the base that no dump holds. `known`: what the registry has to say of both.
    """

    members: pl.DataFrame
    gone: pl.DataFrame
    known: Registry


def _reach(paths: BuildPaths, atoms: Mapped, night: Night, cluster: pl.DataFrame, stored: StoredRegistry, before: pl.DataFrame) -> _Reach:
    """`before`: table `recording_member` of the base."""
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    both = _beside(_groups(cluster), night.table("cluster").rename({"cluster_id": "before"}).collect(), change)
    change = change.select("atom_id")
    moved = both.filter(pl.col("group").ne_missing(pl.col("before"))).select("atom_id")
    dirty = pl.concat([change, moved]).unique()
    former = night.atoms.of_atoms("atom_member", change["atom_id"], [*SOURCE, "atom_id"])
    while True:
        dirty = _closed(both, dirty)
        here = dirty.join(_groups(cluster), on="atom_id")
        members = _sources(atoms, here["atom_id"]).join(here, on="atom_id")
        members = members.with_columns(source_key=source_key()).sort("source_key")
        gone = former.join(members, on=SOURCE, how="anti")
        known = stored.part(pl.concat([members.select(SOURCE), gone.select(SOURCE)]), before)
        back = _elsewhere(atoms, known, members, gone)
        if back.is_empty():
            return _Reach(members, gone, known)
        dirty = pl.concat([dirty, back])


def _beside(tonight_: pl.DataFrame, last: pl.DataFrame, change: pl.DataFrame) -> pl.DataFrame:
    """atom_id, group (null: gone), before (null: made). Atoms that stayed stand in one order in both: no join."""
    gone, made = (pl.col("atom_id").is_in(change.filter(pl.col("change") == kind)["atom_id"].implode()) for kind in ("gone", "made"))
    stayed = tonight_.filter(~made)
    stood = last.filter(~gone)
    if not stayed["atom_id"].equals(stood["atom_id"]):
        raise ValueError("atom_change does not say how the atoms of tonight differ from those of the snapshot: build from the atoms on")
    rows = [stayed.hstack(stood.select("before")), tonight_.filter(made), last.filter(gone)]
    return pl.concat(rows, how="diagonal")


def _closed(both: pl.DataFrame, dirty: pl.DataFrame) -> pl.DataFrame:
    """Atoms that share a group, tonight or in the base, with a dirty one, and so on."""
    while True:
        rows = both.join(dirty, on="atom_id", how="semi")
        groups, before = (rows[name].drop_nulls().unique().implode() for name in ("group", "before"))
        wider = both.filter(pl.col("group").is_in(groups) | pl.col("before").is_in(before)).select("atom_id")
        if wider.height == dirty.height:
            return wider
        dirty = wider


def _elsewhere(atoms: Mapped, known: Registry, members: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """Atoms outside of `members` with records that share an id with them: a record came back whose id others still carry."""
    keys = known.keys.join(members, on="source_key", how="anti")
    key = keys.select(platform=pl.col("source_key").str.extract("^([^:]*):"), external_id=pl.col("source_key").str.extract("^[^:]*:(.*)$"))
    key = key.join(gone, on=SOURCE, how="anti")
    if key.is_empty():
        return pl.DataFrame(schema={"atom_id": pl.Int64})
    numbers = key.select(record_number()).to_series()
    near = atoms.rows("atom_member", [*SOURCE, "atom_id"], _among("record", numbers))
    return near.join(key, on=SOURCE, how="semi").select("atom_id").unique()


def _take_over_owners(paths: BuildPaths, atoms: Mapped, night: Night, gone: pl.DataFrame, before: pl.DataFrame, rows: pl.DataFrame) -> None:
    """Write `isrc_owner` and `isrc_conflict`: settled anew for every code that a record in reach has or had.

    `gone` as in _Reach; `before`: table `recording_member` of the base; `rows`: atom_id, recording_id of the records in reach.
    """
    change = read_table(TABLES["atom_change"], paths.table("atom_change")).filter(pl.col("change") == "gone")["atom_id"]
    former = pl.concat([gone["atom_id"], change])
    found = [(atoms, rows["atom_id"]), (night.atoms, former)]
    codes = pl.concat([where.of_atoms("atom_isrc", ids, ["isrc"])["isrc"] for where, ids in found]).unique()
    claimed = atoms.rows("atom_isrc", where=_among("isrc", codes))
    in_reach = rows.select("atom_id", "recording_id").unique()
    others = claimed.join(in_reach, on="atom_id", how="anti")
    speakers = _sources(atoms, others["atom_id"]).unique("atom_id", keep="any")
    as_before = speakers.select("atom_id", recording_id=before["recording_id"].gather(places_of(before, speakers)))
    recordings = pl.concat([in_reach, as_before])
    for name, settled in zip(("isrc_owner", "isrc_conflict"), _owners(atoms, claimed, recordings), strict=True):
        write_table(TABLES[name], paths.table(name), [replaced(night.read(name), "isrc", codes, settled)])


def _among(column: str, values: pl.Series) -> pl.Expr:
    return pl.col(column).is_in(values.unique().implode())


def _sources(atoms: Mapped, atom_ids: pl.Series) -> pl.DataFrame:
    return atoms.of_atoms("atom_member", atom_ids, [*SOURCE, "atom_id"])


def _groups(cluster: pl.DataFrame) -> pl.DataFrame:
    return cluster.rename({"cluster_id": "group"})


def _owners(atoms: Mapped, claims: pl.DataFrame, recordings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables `isrc_owner` and `isrc_conflict` of the codes in `claims`: rows of `atom_isrc`. `recordings`: atom_id, recording_id."""
    claimed = claims.join(recordings, on="atom_id", how="left")
    shared = claimed.filter(pl.col("isrc").is_duplicated()).select("isrc", "recording_id").unique()
    contested = shared.filter(pl.col("isrc").is_duplicated()).select("isrc").unique()
    involved = claimed.join(contested, on="isrc", how="semi")["atom_id"].unique()
    return isrc_owners(claimed, atoms.of_atoms("atom", involved))
