"""Tables `atom` and `edge` -> table `cluster`: which atoms are one recording.

Found anew every night: the components of all edges cost a second per ten million atoms, and only those that fail a guard cost more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table, scan_table, write_table
from pipeline.linkage import clusters as clustering
from pipeline.linkage.overrides import cannot_atoms, load_overrides

if TYPE_CHECKING:
    import polars as pl

    from pipeline.linkage.stages.atoms import Facts
    from pipeline.paths import BuildPaths


def clusters(paths: BuildPaths) -> Facts:
    """Write `cluster`."""
    columns = ("atom_id", "duration_ms", "variant", "record_count")
    atoms = scan_table(TABLES["atom"], paths.table("atom")).select(columns).collect()
    found = clustering.clusters(atoms, read_table(TABLES["edge"], paths.table("edge")), _cannot(paths))
    write_table(TABLES["cluster"], paths.table("cluster"), [found])
    return {"atoms": found.height, "clusters": found["cluster_id"].n_unique()}


def _cannot(paths: BuildPaths) -> pl.DataFrame | None:
    if not paths.overrides.is_file():
        return None
    overrides = load_overrides(paths.overrides)
    members = scan_table(TABLES["atom_member"], paths.table("atom_member"))
    named = members.join(overrides.records.lazy(), on=["platform", "external_id"], how="semi").collect()
    return cannot_atoms(overrides, named)
