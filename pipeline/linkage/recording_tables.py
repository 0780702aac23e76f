"""Clusters -> tables `recording_member`, `isrc_owner`, `isrc_conflict`, and the ids for the registry: the full path.

What must not live here: who gets which id (id_rules.py); how a night reuses ids (incremental/recording_changes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.linkage.isrc_owners import assign_isrc_owners
from pipeline.linkage.record_ids import assign_records

if TYPE_CHECKING:
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.linkage.record_ids import RecordIds
    from pipeline.paths import BuildPaths


def write_all_recordings(paths: BuildPaths, atoms: MappedAtoms, cluster: pl.DataFrame) -> RecordIds:
    """Write the three tables and save the ids for the registry. `cluster`: rows of table `cluster`."""
    assigned = assign_records(paths, cluster.rename({"cluster_id": "group"}))
    ids = assigned.ids.rename({"entity_id": "recording_id"})
    recordings = cluster.join(ids, left_on="cluster_id", right_on="group", how="left").select("atom_id", "recording_id")
    owner, conflict = settle_owners(atoms, atoms.read_rows("atom_isrc"), recordings)
    write_table(TABLES["isrc_owner"], paths.table("isrc_owner"), [owner])
    write_table(TABLES["isrc_conflict"], paths.table("isrc_conflict"), [conflict])
    return assigned


def settle_owners(atoms: MappedAtoms, claims: pl.DataFrame, recordings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows of `isrc_owner` and `isrc_conflict` for the codes in `claims`.

    `claims`: rows of `atom_isrc`; `recordings`: atom_id, recording_id.
    """
    claimed = claims.join(recordings, on="atom_id", how="left")
    # Texts of atoms are read only for codes of several recordings; two atoms of one recording share a code in peace.
    shared = claimed.filter(pl.col("isrc").is_duplicated()).select("isrc", "recording_id").unique()
    contested = shared.filter(pl.col("isrc").is_duplicated()).select("isrc").unique()
    involved = claimed.join(contested, on="isrc", how="semi")["atom_id"].unique()
    return assign_isrc_owners(claimed, atoms.read_atom_rows("atom", involved))
