"""The lake of all builds, as the last step of a night where an operator keeps one."""

from collections.abc import Iterator
from functools import partial

import dagster as dg

from catalog_store.errors import CatalogError
from catalog_store.lake import Lake, commit_live_snapshot
from pipeline.defs.resources import CatalogResource
from pipeline.defs.second_runs import run_with_second_try
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.step_limits import ALONE
from pipeline.defs.table_steps import build_usage_metadata
from pipeline.engine.usage import measure_usage

LAKE = dg.AssetKey(["lake", "version"])
COMMITTED = "live_snapshot_is_in_the_lake"


@dg.asset(
    key=LAKE,
    deps=[SNAPSHOT],
    group_name="lake",
    op_tags=ALONE,
    output_required=False,
    kinds={"ducklake"},
    description="The live snapshot as a version of the lake. A failure warns: the snapshot is live already, and the next night catches up.",
    check_specs=[dg.AssetCheckSpec(COMMITTED, asset=LAKE, description="the live snapshot is the newest version of the lake")],
)
def lake_version(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
    """Add the rows that the live snapshot has changed since the newest version."""
    problem = None
    with (
        catalog.claim_for_step(),
        catalog.show_progress(LAKE.to_python_identifier()),
        measure_usage(catalog.paths.list_spill_folders) as usage,
    ):
        try:
            lake = Lake.find(catalog.paths.root, catalog.lake, catalog.lake_data)
            answer = run_with_second_try("lake", catalog, partial(commit_live_snapshot, catalog.paths.root, lake))
        except (OSError, ValueError, CatalogError) as error:
            problem = str(error)
            catalog.warn(f"lake: {problem}: the next build tries again, as does `python -m catalog_store lake commit`")
    # A build that published must not fail because of the lake, so the fault is a check that warns; an alert tells of it.
    if problem is None:
        yield dg.MaterializeResult(asset_key=LAKE, metadata={"answer": dg.MetadataValue.json(answer), **build_usage_metadata(usage)})
    yield dg.AssetCheckResult(
        check_name=COMMITTED, asset_key=LAKE, passed=problem is None, severity=dg.AssetCheckSeverity.WARN, description=problem
    )


def build_lake_assets(catalog: CatalogResource) -> list[dg.AssetsDefinition]:
    """Return the step; none where no lake is named. ValueError when only one half of the lake is named."""
    if bool(catalog.lake) != bool(catalog.lake_data):
        raise ValueError("CATALOG_LAKE and CATALOG_LAKE_DATA name the two halves of a lake: set both, or none")
    return [lake_version] if catalog.lake else []
