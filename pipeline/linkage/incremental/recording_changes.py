"""Recording ids and code owners of a night that builds on a snapshot.

Ids are assigned to the groups that changed and to all groups that share an id with them; the others keep theirs. The rules give the same
ids either way (id_changes.py). A code is settled again if a record in reach of a change has it or had it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import number_record
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, list_parts, read_table
from pipeline.linkage.atoms import build_source_key
from pipeline.linkage.id_registry import (
    RegistryWriter,
    StoredRegistry,
    get_work_folder,
    is_exception,
    read_published_redirects,
    write_redirects_and_next_id,
)
from pipeline.linkage.id_rules import Registry
from pipeline.linkage.incremental.id_changes import assign_changed_ids, cut_stored_registry, patch_registry
from pipeline.linkage.incremental.table_splicing import find_insertion_places, find_places, replace_rows, splice_rows
from pipeline.linkage.record_ids import KIND, RecordIds
from pipeline.linkage.recording_tables import settle_owners

if TYPE_CHECKING:
    from pipeline.linkage.id_rules import Assignment
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

SOURCE = ["platform", "external_id"]


def write_changed_recordings(paths: BuildPaths, atoms: MappedAtoms, night: Night) -> RecordIds:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and save the ids."""
    cluster = read_table(TABLES["cluster"], paths.table("cluster"))
    before = night.read("recording_member")
    stored = StoredRegistry(paths, KIND, before)
    reach = _find_reach(paths, atoms, night, cluster, stored, before)
    redirects = read_published_redirects(paths, KIND)
    assigned = assign_changed_ids(reach.members.select("group", "source_key"), reach.known, redirects, stored.next_id)
    rows = reach.members.join(assigned.ids.rename({"entity_id": "recording_id"}), on="group", how="left")
    _write_registry(paths, stored, reach.known, assigned, rows)
    with EvenTableWriter(TABLES["recording_member"], paths.table("recording_member")) as writer:
        # Every platform begins a part, as in a full linkage.
        for platform in sorted(CATALOG_PLATFORMS):
            first, end = (int(before["platform"].search_sorted(platform, side=side)) for side in ("left", "right"))
            gone, changed = (frame.filter(pl.col("platform") == platform) for frame in (reach.gone, rows))
            writer.end_part()
            writer.append(_splice_members(before[first:end], gone, changed.select(*SOURCE, "recording_id")))
    _write_owners(paths, atoms, night, reach.gone, before, rows)
    return RecordIds(assigned.next_id - stored.next_id, assigned.redirects.height)


def _write_registry(paths: BuildPaths, stored: StoredRegistry, known: Registry, assigned: Assignment, rows: pl.DataFrame) -> None:
    """Lay down the registry with `known` replaced by the assignment. `rows`: source_key, group, recording_id of the records in reach."""
    present = rows.select("source_key", "group", entity_id="recording_id")
    keys = assigned.registry.keys.rename({"entity_id": "home"}).join(present, on="source_key", how="left").filter(is_exception())
    exceptions = patch_registry(
        Registry(stored.read_exceptions(), stored.links),
        known,
        Registry(keys.select("source_key", entity_id="home").sort("source_key"), assigned.registry.links),
    )
    folder = get_work_folder(paths, KIND)
    with RegistryWriter(folder / "id_registry") as writer:
        writer.write(KIND, exceptions.keys, exceptions.links)
    write_redirects_and_next_id(folder, KIND, assigned.redirects, assigned.next_id)


def _splice_members(before: pl.DataFrame, gone: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `recording_member` of a platform without the records that are gone and with these rows, in its order."""
    places = find_places(before, rows)
    ids = before["recording_id"].to_numpy(writable=True)
    ids[places.drop_nulls().to_numpy()] = rows.filter(places.is_not_null())["recording_id"].to_numpy()
    before = before.with_columns(recording_id=pl.Series(ids))
    new = rows.filter(places.is_null()).sort(SOURCE)
    left = find_places(before, gone).drop_nulls().to_numpy()
    return splice_rows(before, left, new, find_insertion_places(before, new).to_numpy())


class _Reach(NamedTuple):
    """Everything that tonight's changes reach.

    `members`: platform, external_id, atom_id, group, source_key of the groups to assign again, sorted by source_key. `gone`: platform,
    external_id, atom_id of records of the base that no dump holds. `known`: the part of the registry about both.
    """

    members: pl.DataFrame
    gone: pl.DataFrame
    known: Registry


def _find_reach(
    paths: BuildPaths, atoms: MappedAtoms, night: Night, cluster: pl.DataFrame, stored: StoredRegistry, before: pl.DataFrame
) -> _Reach:
    """Widen the changed atoms until they are closed. `before`: table `recording_member` of the base."""
    groups = cluster.rename({"cluster_id": "group"})
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    both = _align_groups(groups, night.scan("cluster").rename({"cluster_id": "before"}).collect(), change)
    change = change.select("atom_id")
    # The id of a cluster is its smallest atom: an unchanged cluster has the same id on both nights.
    moved = both.filter(pl.col("group").ne_missing(pl.col("before"))).select("atom_id")
    dirty = pl.concat([change, moved]).unique()
    former = night.atoms.read_atom_rows("atom_member", change["atom_id"], [*SOURCE, "atom_id"])
    while True:
        dirty = _close_over_groups(both, dirty)
        here = dirty.join(groups, on="atom_id")
        members = _read_sources(atoms, here["atom_id"]).join(here, on="atom_id")
        members = members.with_columns(source_key=build_source_key()).sort("source_key")
        # Records of atoms that went and that no other atom took over: no dump holds them any more.
        gone = former.join(members, on=SOURCE, how="anti")
        known = cut_stored_registry(stored, pl.concat([members.select(SOURCE), gone.select(SOURCE)]), before)
        outside = _find_atoms_outside(atoms, known, members, gone)
        if outside.is_empty():
            return _Reach(members, gone, known)
        dirty = pl.concat([dirty, outside])


def _align_groups(tonight: pl.DataFrame, last: pl.DataFrame, change: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, group (null: gone), before (null: made). Unchanged atoms have the same order in both, so no join is needed."""
    gone, made = (pl.col("atom_id").is_in(change.filter(pl.col("change") == kind)["atom_id"].implode()) for kind in ("gone", "made"))
    stayed = tonight.filter(~made)
    stood = last.filter(~gone)
    # Rows are matched by place. A table that does not fit would give wrong ids without an error.
    if not stayed["atom_id"].equals(stood["atom_id"]):
        raise ValueError("table atom_change does not explain how tonight's atoms differ from the snapshot's: materialise `atom` again")
    rows = [stayed.hstack(stood.select("before")), tonight.filter(made), last.filter(gone)]
    return pl.concat(rows, how="diagonal")


def _close_over_groups(both: pl.DataFrame, dirty: pl.DataFrame) -> pl.DataFrame:
    """Return the atoms that share a group, tonight or in the base, with a dirty one, and so on."""
    while True:
        rows = both.join(dirty, on="atom_id", how="semi")
        groups, before = (rows[name].drop_nulls().unique().implode() for name in ("group", "before"))
        wider = both.filter(pl.col("group").is_in(groups) | pl.col("before").is_in(before)).select("atom_id")
        if wider.height == dirty.height:
            return wider
        dirty = wider


def _find_atoms_outside(atoms: MappedAtoms, known: Registry, members: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """Return the atoms outside of `members` with records that share an id with them: a record came back whose id others still carry."""
    keys = known.keys.join(members, on="source_key", how="anti")
    key = keys.select(platform=pl.col("source_key").str.extract("^([^:]*):"), external_id=pl.col("source_key").str.extract("^[^:]*:(.*)$"))
    key = key.join(gone, on=SOURCE, how="anti")
    if key.is_empty():
        return pl.DataFrame(schema={"atom_id": pl.Int64})
    numbers = key.select(number_record()).to_series()
    near = atoms.read_rows("atom_member", [*SOURCE, "atom_id"], _is_among("record", numbers))
    return near.join(key, on=SOURCE, how="semi").select("atom_id").unique()


def _write_owners(
    paths: BuildPaths, atoms: MappedAtoms, night: Night, gone: pl.DataFrame, before: pl.DataFrame, rows: pl.DataFrame
) -> None:
    """Write `isrc_owner` and `isrc_conflict`: settled again for every code that a record in reach has or had.

    `gone` as in _Reach; `before`: table `recording_member` of the base; `rows`: atom_id, recording_id of the records in reach.
    """
    change = read_table(TABLES["atom_change"], paths.table("atom_change")).filter(pl.col("change") == "gone")["atom_id"]
    # Codes that only last night's atoms carry are settled again, too.
    former = pl.concat([gone["atom_id"], change])
    found = [(atoms, rows["atom_id"]), (night.atoms, former)]
    codes = pl.concat([where.read_atom_rows("atom_isrc", ids, ["isrc"])["isrc"] for where, ids in found]).unique()
    claimed = atoms.read_rows("atom_isrc", where=_is_among("isrc", codes))
    in_reach = rows.select("atom_id", "recording_id").unique()
    others = claimed.join(in_reach, on="atom_id", how="anti")
    # Any record of an unchanged atom will do: all of them carry one recording.
    representatives = _read_sources(atoms, others["atom_id"]).unique("atom_id", keep="any")
    unchanged = representatives.select("atom_id", recording_id=before["recording_id"].gather(find_places(before, representatives)))
    recordings = pl.concat([in_reach, unchanged])
    claimed = claimed.join(recordings, on="atom_id", how="left")
    for name, settled in zip(("isrc_owner", "isrc_conflict"), settle_owners(atoms, claimed), strict=True):
        with EvenTableWriter(TABLES[name], paths.table(name)) as writer:
            held = map(pl.read_parquet, list_parts(night.find_folder(name)))
            for replaced in replace_rows(held, "isrc", codes, settled):
                writer.append(replaced)


def _is_among(column: str, values: pl.Series) -> pl.Expr:
    return pl.col(column).is_in(values.unique().implode())


def _read_sources(atoms: MappedAtoms, atom_ids: pl.Series) -> pl.DataFrame:
    return atoms.read_atom_rows("atom_member", atom_ids, [*SOURCE, "atom_id"])
