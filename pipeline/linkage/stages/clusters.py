"""Tables `atom` and `edge` -> table `cluster`: which atoms are one recording.

Found anew every night: the components of all edges cost a second per ten million atoms, and only those that fail a guard cost more. Of an
atom without an edge only the id is held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, write_table
from pipeline.linkage import clusters as clustering
from pipeline.linkage.failures import naming_records
from pipeline.linkage.mapped import tonight
from pipeline.linkage.overrides import cannot_atoms, load_overrides
from pipeline.linkage.stages.atoms import members_named

if TYPE_CHECKING:
    from pipeline.linkage.stages.atoms import Facts
    from pipeline.paths import BuildPaths


def clusters(paths: BuildPaths) -> Facts:
    """Write `cluster`. LinkageError, which names platforms and records, when a cluster cannot be looked into."""
    edges = read_table(TABLES["edge"], paths.table("edge"))
    ends = clustering.ends(edges)
    atoms, every = [], []
    for rows in tonight(paths).pieces("atom", ["atom_id", "duration_ms", "variant", "record_count"]):
        every.append(rows["atom_id"])
        atoms.append(rows.join(ends, on="atom_id", how="semi"))
    with naming_records(paths):
        found = clustering.clusters(pl.concat(atoms), edges, _cannot(paths), atom_ids=pl.concat(every))
    write_table(TABLES["cluster"], paths.table("cluster"), [found])
    return {"atoms": found.height, "clusters": cluster_count(found)}


def cluster_count(cluster: pl.DataFrame) -> int:
    """How many clusters there are: each is named by one of its atoms."""
    return int((cluster["cluster_id"] == cluster["atom_id"]).sum())


def _cannot(paths: BuildPaths) -> pl.DataFrame | None:
    if not paths.has_overrides:
        return None
    overrides = load_overrides(paths.overrides)
    return cannot_atoms(overrides, members_named(tonight(paths), overrides))
