"""Identity: which artists, labels and releases are one, and the ids of all kinds.

These steps write tables of two layers, `catalog` and `linkage`. They form a group of their own, because linkage comes before them and the
catalog after them: in their layers' groups both would point at each other.
"""

import dagster as dg

from catalog_store.folder_listing import list_tree
from catalog_store.tables import TABLES
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.releases import build_releases
from pipeline.defs.table_steps import TableStep, build_table_assets, build_table_keys, find_tables
from pipeline.linkage.id_registry import collect_registry, get_work_folder
from pipeline.paths import BuildPaths

GROUP = "identity"


def list_steps() -> list[TableStep]:
    """Return the steps in the order of the data flow."""
    return [
        TableStep(
            "artists",
            find_tables("source_credit", "artist_source", "artist_alias"),
            build_table_keys("recording_member"),
            build_artists,
            files=lambda paths: list_tree(get_work_folder(paths, "artist")),
            group=GROUP,
        ),
        TableStep(
            "labels",
            find_tables("label_source"),
            build_table_keys("recording_member", "source_credit"),
            build_labels,
            files=lambda paths: list_tree(get_work_folder(paths, "label")),
            group=GROUP,
        ),
        TableStep(
            "releases",
            find_tables("release", "release_source", "release_provenance"),
            build_table_keys("artist_source", "label_source"),
            build_releases,
            files=lambda paths: list_tree(get_work_folder(paths, "release")),
            group=GROUP,
        ),
        TableStep(
            "registry",
            # The registry waits only for the tables whose ids it collects.
            (TABLES["id_registry"], TABLES["redirect"]),
            build_table_keys("recording_member", "artist_source", "label_source", "release"),
            _collect_registry,
            group=GROUP,
        ),
    ]


def build_identity_assets() -> list[dg.AssetsDefinition]:
    """Return all assets of the group."""
    return [build_table_assets(step) for step in list_steps()]


def _collect_registry(paths: BuildPaths) -> dict[str, int]:
    return {f"next_{kind}_id": number for kind, number in collect_registry(paths).items()}
