"""The jobs: everything from the newest dumps to the live snapshot, and only what a changed genre rule or suggestion changes."""

import dagster as dg

from catalog_store.platforms import SUGGESTIONS
from catalog_store.tables import QUALITY_TABLES, TABLES
from catalog_store.tables.genres import GENRE_TABLES
from pipeline.defs.dump_assets import landing_key, staging_key
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.table_steps import table_key

NIGHTLY = "nightly_build"
RECLASSIFY = "reclassify"

SUGGESTION_KEYS = (landing_key(SUGGESTIONS), staging_key(SUGGESTIONS))
REMADE_TABLES = (*GENRE_TABLES, TABLES["track"], *QUALITY_TABLES)
"""What depends on the genre rules."""
REMADE_KEYS = (*map(table_key, REMADE_TABLES), SNAPSHOT)

nightly_job = dg.define_asset_job(
    NIGHTLY,
    selection=dg.AssetSelection.all(),
    description="Newest dumps -> staging -> linkage -> catalog -> live snapshot.",
)

reclassify_job = dg.define_asset_job(
    RECLASSIFY,
    selection=dg.AssetSelection.assets(*SUGGESTION_KEYS, *REMADE_KEYS),
    description="Genres by the rules and suggestions of now -> tracks -> live snapshot; nothing is staged or linked anew.",
)
