"""Recording ids and code owners of a night that builds on a snapshot.

Ids are assigned to the groups that changed and to all groups that share an id with them; the others keep theirs. The rules give the same
ids either way (id_changes.py). A code is settled again if a record in reach of a change has it or had it.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

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
from pipeline.linkage.incremental.base_members import SOURCE, BaseMembers
from pipeline.linkage.incremental.group_changes import GroupChanges
from pipeline.linkage.incremental.id_changes import assign_changed_ids, cut_stored_registry, patch_registry
from pipeline.linkage.incremental.table_splicing import replace_rows
from pipeline.linkage.record_ids import KIND, RecordIds
from pipeline.linkage.recording_tables import settle_owners

if TYPE_CHECKING:
    from pipeline.linkage.id_rules import Assignment
    from pipeline.linkage.incremental.night import Night
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths


def write_changed_recordings(paths: BuildPaths, atoms: MappedAtoms, night: Night) -> RecordIds:
    """Write `recording_member`, `isrc_owner` and `isrc_conflict`, and save the ids."""
    before = BaseMembers(night.find_folder("recording_member"))
    stored = StoredRegistry(paths, KIND)
    reach = _find_reach(paths, atoms, night, stored, before)
    redirects = read_published_redirects(paths, KIND)
    assigned = assign_changed_ids(reach.members.select("group", "source_key"), reach.known, redirects, stored.next_id)
    rows = reach.members.join(assigned.ids.rename({"entity_id": "recording_id"}), on="group", how="left")
    _write_registry(paths, stored, reach.known, assigned, rows)
    with EvenTableWriter(TABLES["recording_member"], paths.table("recording_member")) as writer:
        changed = before.splice(reach.gone, rows.select(*SOURCE, "recording_id"))
        # Every platform begins a part, as in a full linkage.
        for _, spliced in groupby(changed, key=itemgetter(0)):
            writer.end_part()
            for _, members in spliced:
                writer.append(members)
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


class _Reach(NamedTuple):
    """Everything that tonight's changes reach.

    `members`: platform, external_id, atom_id, group, source_key of the groups to assign again, sorted by source_key. `gone`: platform,
    external_id, atom_id of records of the base that no dump holds. `known`: the part of the registry about both.
    """

    members: pl.DataFrame
    gone: pl.DataFrame
    known: Registry


def _find_reach(paths: BuildPaths, atoms: MappedAtoms, night: Night, stored: StoredRegistry, before: BaseMembers) -> _Reach:
    """Widen the changed atoms until they are closed. `before`: table `recording_member` of the base."""
    change = read_table(TABLES["atom_change"], paths.table("atom_change"))
    groups = GroupChanges(paths.table("cluster"), night.find_folder("cluster"), change)
    gone_ids = change.filter(pl.col("change") == "gone")["atom_id"].sort().to_numpy()
    former = night.atoms.read_atom_rows("atom_member", change["atom_id"], [*SOURCE, "atom_id"])
    # The id of a cluster is its smallest atom: an unchanged cluster has the same id on both nights.
    dirty = np.concatenate([change["atom_id"], groups.moved])
    while True:
        dirty = groups.close_over(dirty)
        present = pl.Series("atom_id", np.setdiff1d(dirty, gone_ids, assume_unique=True))
        here = pl.DataFrame([present, groups.tonight.find_groups(present)])
        members = _read_sources(atoms, present).join(here, on="atom_id")
        members = members.with_columns(source_key=build_source_key()).sort("source_key")
        # Records of atoms that went and that no other atom took over: no dump holds them any more.
        gone = former.join(members, on=SOURCE, how="anti")
        known = cut_stored_registry(stored, pl.concat([members.select(SOURCE), gone.select(SOURCE)]), before)
        outside = _find_atoms_outside(atoms, known, members, gone)
        if outside.is_empty():
            return _Reach(members, gone, known)
        dirty = np.concatenate([dirty, outside])


def _find_atoms_outside(atoms: MappedAtoms, known: Registry, members: pl.DataFrame, gone: pl.DataFrame) -> pl.Series:
    """Return the atoms outside of `members` with records that share an id with them: a record came back whose id others still carry."""
    keys = known.keys.join(members, on="source_key", how="anti")
    key = keys.select(platform=pl.col("source_key").str.extract("^([^:]*):"), external_id=pl.col("source_key").str.extract("^[^:]*:(.*)$"))
    key = key.join(gone, on=SOURCE, how="anti")
    if key.is_empty():
        return pl.Series("atom_id", dtype=pl.Int64)
    numbers = key.select(number_record()).to_series()
    near = atoms.read_rows("atom_member", [*SOURCE, "atom_id"], _is_among("record", numbers))
    return near.join(key, on=SOURCE, how="semi")["atom_id"].unique()


def _write_owners(paths: BuildPaths, atoms: MappedAtoms, night: Night, gone: pl.DataFrame, before: BaseMembers, rows: pl.DataFrame) -> None:
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
    unchanged = before.read_ids(representatives).select("atom_id", "recording_id")
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
