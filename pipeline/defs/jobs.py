"""The one job: everything from the newest dumps to the live snapshot."""

import dagster as dg

NIGHTLY = "nightly_build"

nightly_job = dg.define_asset_job(
    NIGHTLY,
    selection=dg.AssetSelection.all(),
    description="Newest dumps -> staging -> linkage -> catalog -> live snapshot.",
)
