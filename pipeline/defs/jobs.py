"""The one job: everything from the newest dumps to the live snapshot."""

import dagster as dg

NIGHTLY = "nightly_build"


def nightly_job() -> dg.UnresolvedAssetJobDefinition:
    """All assets, in the order of the data flow."""
    return dg.define_asset_job(
        NIGHTLY, selection=dg.AssetSelection.all(), description="Newest dumps -> staging -> linkage -> catalog -> live snapshot."
    )
