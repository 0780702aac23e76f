"""The code location of Dagster: assets, checks, jobs and schedules, bound to an operator's settings."""

from collections.abc import Mapping

import dagster as dg

from pipeline.defs.catalog_assets import build_catalog_assets
from pipeline.defs.dump_assets import build_dump_assets
from pipeline.defs.identity_assets import build_identity_assets
from pipeline.defs.jobs import nightly_job, reclassify_job
from pipeline.defs.linkage_assets import build_linkage_assets
from pipeline.defs.quality_assets import gate
from pipeline.defs.resources import CatalogResource
from pipeline.defs.run_history import build_retention_schedule, forget_old_runs
from pipeline.defs.schedules import build_nightly_schedule
from pipeline.defs.snapshot_assets import build_snapshot_assets
from pipeline.settings import Settings


def build_definitions(
    resources: Mapping[str, object],
    schedule: str = Settings.schedule,
    executor: dg.ExecutorDefinition = dg.in_process_executor,
) -> dg.Definitions:
    """Return the definitions over these resources (`catalog`: a CatalogResource). Tests pass their own paths."""
    # Steps run in one process by default: a step uses all processors itself, and a process for each step would cost seconds of imports.
    return dg.Definitions(
        assets=[
            *build_dump_assets(),
            *build_linkage_assets(),
            *build_identity_assets(),
            *build_catalog_assets(),
            gate,
            *build_snapshot_assets(),
        ],
        jobs=[nightly_job, reclassify_job, forget_old_runs],
        schedules=[build_nightly_schedule(schedule), build_retention_schedule()],
        resources=resources,
        executor=executor,
    )


# Dagster looks for a module attribute of this type when it loads the code location.
defs = build_definitions({"catalog": CatalogResource.of(Settings.from_environment())}, Settings.from_environment().schedule)
