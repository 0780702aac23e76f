"""Linkage: source records -> atoms -> edges -> clusters -> recordings, one step for each stage."""

import dagster as dg

from catalog_store.folder_listing import list_folder, list_tree
from catalog_store.platforms import FINGERPRINT_SOURCES, SOURCES
from catalog_store.tables import TABLES
from pipeline.defs.dump_assets import build_staging_key, require_dumps
from pipeline.defs.table_steps import TableStep, build_table_assets, build_table_key
from pipeline.linkage import stages
from pipeline.linkage.id_registry import get_work_folder
from pipeline.linkage.incremental.night import get_decision_path
from pipeline.linkage.mapped_atoms import get_mapped_folder
from pipeline.quality.invariants import list_linkage_invariants

EDGE_FACTS = ("override_edges", "audio_edges", "isrc_edges", "link_edges", "position_edges", "typo_edges", "sound_edges", "key_edges")
"""Kinds of edges, for the plot."""
ATOM_TABLES = ("linkage_version", "credit_name", "artist_name", "atom", "atom_change", "atom_gone", "atom_member", "atom_isrc")


def list_steps() -> list[TableStep]:
    """Return the steps in the order of the data flow."""
    sources = tuple(map(build_staging_key, SOURCES))
    # `require_dumps` stops a build without any dump here, with the places that were searched, instead of publishing an empty catalog.
    atoms = TableStep(
        "atoms",
        tuple(TABLES[name] for name in ATOM_TABLES),
        sources,
        stages.write_atoms,
        require=require_dumps,
        files=lambda paths: [get_decision_path(paths), *list_folder(get_mapped_folder(paths), "atom*.arrow")],
    )
    edges = TableStep(
        "edges",
        (TABLES["edge"], TABLES["audio_comparison"]),
        (build_table_key(TABLES["atom_member"]), *map(build_staging_key, FINGERPRINT_SOURCES)),
        stages.write_edges,
        plotted=EDGE_FACTS,
    )
    compared = (build_table_key(TABLES["edge"]), build_table_key(TABLES["audio_comparison"]))
    clusters = TableStep("clusters", (TABLES["cluster"],), compared, stages.write_clusters)
    recording_ids = TableStep(
        "recording_ids",
        (TABLES["recording_member"], TABLES["isrc_owner"], TABLES["isrc_conflict"]),
        (build_table_key(TABLES["cluster"]),),
        stages.write_recording_ids,
        list_linkage_invariants,
        files=lambda paths: list_tree(get_work_folder(paths, "recording")),
    )
    return [atoms, edges, clusters, recording_ids]


def build_linkage_assets() -> list[dg.AssetsDefinition]:
    """Return all assets of the group."""
    return [build_table_assets(step) for step in list_steps()]
