"""The code location of Dagster: assets, checks, jobs, schedules and sensors, bound to an operator's settings."""

from collections.abc import Mapping
from types import MappingProxyType

import dagster as dg

from catalog_store.platforms import INPUTS
from pipeline.alerts import Receivers
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.alert_sensors import build_alert_sensors, build_receivers
from pipeline.defs.archive_assets import ARCHIVED, build_archive_assets
from pipeline.defs.asset_facts import add_facts
from pipeline.defs.catalog_assets import build_catalog_assets
from pipeline.defs.dead_run_sensor import build_dead_run_sensor
from pipeline.defs.dump_assets import build_dump_assets
from pipeline.defs.dump_sensors import FOLLOWS_STAGING, build_dump_sensor, build_rebuild_sensor
from pipeline.defs.identity_assets import build_identity_assets
from pipeline.defs.jobs import nightly_job, reclassify_job
from pipeline.defs.lake_assets import build_lake_assets
from pipeline.defs.linkage_assets import build_linkage_assets
from pipeline.defs.quality_assets import gate
from pipeline.defs.resources import CatalogResource
from pipeline.defs.run_history import build_retention_schedule, forget_old_runs
from pipeline.defs.schedules import build_nightly_schedule
from pipeline.defs.snapshot_assets import build_snapshot_assets
from pipeline.defs.step_limits import build_executor
from pipeline.dumps.landing.sources import Source, SourcesError, find_sources
from pipeline.settings import Settings


def build_definitions(
    resources: Mapping[str, CatalogResource],
    schedule: str = Settings.schedule,
    executor: dg.ExecutorDefinition = dg.in_process_executor,
    receivers: Receivers | None = None,
    sources: Mapping[str, Source] = MappingProxyType({}),
) -> dg.Definitions:
    """Return the definitions over these resources (`catalog`: a CatalogResource). Tests pass their own paths; `sources` give freshness."""
    made_of_dumps = [*build_linkage_assets(), *build_identity_assets(), *build_catalog_assets(), gate, *build_snapshot_assets()]
    made_of_dumps += build_lake_assets(resources["catalog"])
    archived = [made for platform in ARCHIVED for made in build_archive_assets(platform)]
    steps = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]
    # Steps run in one process by default: a step uses all processors itself, and a process for each step would cost seconds of imports.
    return dg.Definitions(
        assets=add_facts([*build_dump_assets(), *archived, *dg.map_asset_specs(_let_follow_staging, made_of_dumps)], steps, sources),
        jobs=[nightly_job, reclassify_job, forget_old_runs],
        schedules=[build_nightly_schedule(schedule), build_retention_schedule()],
        sensors=[
            *map(build_dump_sensor, INPUTS),
            build_rebuild_sensor(key for assets in made_of_dumps for key in assets.keys),
            build_dead_run_sensor(),
            *build_alert_sensors(receivers or Receivers(), sources),
        ],
        resources=resources,
        executor=executor,
    )


def _let_follow_staging(spec: dg.AssetSpec) -> dg.AssetSpec:
    return spec.replace_attributes(automation_condition=FOLLOWS_STAGING)


def read_sources(settings: Settings) -> Mapping[str, Source]:
    """Return the sources by input. None while they cannot be read: the runs that need them say why."""
    try:
        return find_sources(settings.dumps, settings.sources)
    except SourcesError:
        return {}


# Dagster looks for a module attribute of this type when it loads the code location.
settings = Settings.from_environment()
defs = build_definitions(
    {"catalog": CatalogResource.of(settings)},
    settings.schedule,
    build_executor(settings.stage_at_once),
    receivers=build_receivers(settings),
    sources=read_sources(settings),
)
