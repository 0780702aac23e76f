"""The jobs: a nightly build from dumps to the live snapshot, and a build of the tables that genre rules and suggestions change."""

import dagster as dg

from catalog_store.platforms import SUGGESTIONS
from pipeline.defs.archive_assets import GROUP
from pipeline.defs.dump_assets import build_landing_key, build_staging_key
from pipeline.defs.resources import NIGHTLY, RECLASSIFY, REMADE_TABLES
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.table_steps import build_table_key

SUGGESTION_KEYS = (build_landing_key(SUGGESTIONS), build_staging_key(SUGGESTIONS))
REMADE_KEYS = (*map(build_table_key, REMADE_TABLES), SNAPSHOT)

nightly_job = dg.define_asset_job(
    NIGHTLY,
    # Archived dumps are filled by hand, a date at a time.
    selection=dg.AssetSelection.all() - dg.AssetSelection.groups(GROUP),
    description="Newest dumps -> staging -> linkage -> catalog -> live snapshot.",
)

# The selection leaves out everything that genre rules and suggestions do not change: the job publishes those tables of the live snapshot
# again. So it may only run over the work folder of that snapshot (resources.require_sound).
reclassify_job = dg.define_asset_job(
    RECLASSIFY,
    selection=dg.AssetSelection.assets(*SUGGESTION_KEYS, *REMADE_KEYS),
    description="Genres by the rules and suggestions of now -> tracks -> live snapshot; nothing is staged or linked again.",
)
