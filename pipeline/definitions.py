"""The code location of Dagster: assets, checks, jobs and schedules, bound to an operator's settings."""

from collections.abc import Mapping

import dagster as dg

from pipeline.defs.catalog_assets import catalog_assets
from pipeline.defs.dump_assets import dump_assets
from pipeline.defs.identity_assets import identity_assets
from pipeline.defs.jobs import nightly_job, reclassify_job
from pipeline.defs.linkage_assets import linkage_assets
from pipeline.defs.quality_assets import gate
from pipeline.defs.resources import CatalogResource
from pipeline.defs.run_history import forget_old_runs, forgetting_schedule
from pipeline.defs.schedules import nightly_schedule
from pipeline.defs.snapshot_assets import snapshot_assets
from pipeline.settings import Settings


def build_definitions(
    resources: Mapping[str, object],
    schedule: str = Settings.schedule,
    executor: dg.ExecutorDefinition = dg.in_process_executor,
) -> dg.Definitions:
    """Return the definitions over given resources (`catalog`: a CatalogResource); tests pass their own paths.

    A step uses all processors itself, and a process for each step would cost seconds of imports: steps run in one process.
    """
    return dg.Definitions(
        assets=[*dump_assets(), *linkage_assets(), *identity_assets(), *catalog_assets(), gate, *snapshot_assets()],
        jobs=[nightly_job, reclassify_job, forget_old_runs],
        schedules=[nightly_schedule(schedule), forgetting_schedule()],
        resources=resources,
        executor=executor,
    )


defs = build_definitions({"catalog": CatalogResource.of(Settings.from_environment())}, Settings.from_environment().schedule)
