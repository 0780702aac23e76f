"""Sensors that notice a new dump, one for each input, and the condition by which the rest of the catalog follows.

A sensor asks upstream for a listing and fetches nothing. When it sees a dump that has not landed, it starts a run that lands and stages
this platform. The automation sensor then rebuilds everything after staging. All of them are off until an operator switches them on, and
the nightly schedule does the same work without them.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from pipeline.defs.archive_assets import ARCHIVED, build_dump_dates, find_new_dates, name_partitions
from pipeline.defs.dump_assets import STAGING_GROUP, build_landing_key, build_staging_key
from pipeline.defs.resources import CatalogResource
from pipeline.dumps.intake.adapters import READ_IN_PLACE
from pipeline.dumps.intake.daily_dumps import find_unstaged_day
from pipeline.dumps.intake.local_folder import find_unstaged_listing
from pipeline.dumps.landing.landing_zone import find_unlanded
from pipeline.dumps.landing.sources import Source
from pipeline.paths import DAILY

INTERVAL_SECONDS = 600
"""Time between two looks at an upstream: a listing of a large bucket costs requests."""

REBUILD = "rebuild_on_new_dumps"
_HAS_NEW_INPUT: dg.AutomationCondition[Any] = (  # Dagster types a new version as a condition of assets alone, without their checks
    dg.AutomationCondition.any_deps_updated()
    # A table that somebody materialises by itself must not publish a snapshot.
    .allow(dg.AssetSelection.groups(STAGING_GROUP))
    # A dump that cannot be fetched is tried again each hour, and its staging then gives the same tables.
    .replace(dg.AutomationCondition.newly_updated(), dg.AutomationCondition.data_version_changed())
)
_IS_BEHIND_REQUESTED: dg.AutomationCondition[Any] = dg.AutomationCondition.any_deps_match(dg.AutomationCondition.will_be_requested())
FOLLOWS_STAGING = (
    (_HAS_NEW_INPUT | _IS_BEHIND_REQUESTED).since_last_handled()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
).with_label("staging tables of an input have changed")
"""Condition of every asset after staging. Unlike `eager` it does not wait for inputs that were never made: most operators lack a dump."""


def name_sensor(platform: str) -> str:
    """Return the name of the platform's sensor."""
    return f"new_dump_of_{platform}"


def find_news(catalog: CatalogResource, source: Source) -> str | None:
    """Return a mark of what upstream shows if it has not landed, else None. Raises DumpError and the errors of file systems."""
    platform = source.platform
    if platform in DAILY:
        return find_unstaged_day(source, catalog.paths.staging(platform))
    if platform in READ_IN_PLACE:
        return find_unstaged_listing(source, catalog.paths.staging(platform))
    return find_unlanded(source, catalog.paths.landing(platform))


def list_new_dates(context: dg.SensorEvaluationContext, source: Source) -> list[str]:
    """Return the dump dates of upstream that Dagster does not know yet, where a platform has any. Raises as `find_news` does."""
    if source.platform not in ARCHIVED:
        return []
    return find_new_dates(source, context.instance.get_dynamic_partitions(name_partitions(source.platform)))


def build_dump_sensor(platform: str) -> dg.SensorDefinition:
    """Return the sensor of a platform's upstream."""

    @dg.sensor(
        name=name_sensor(platform),
        target=[build_landing_key(platform), build_staging_key(platform)],
        minimum_interval_seconds=INTERVAL_SECONDS,
        description=f"Lands and stages {platform} when upstream shows a dump that has not landed.",
    )
    def notice(context: dg.SensorEvaluationContext, catalog: CatalogResource) -> dg.SensorResult | dg.SkipReason:
        source = catalog.find_source(platform)
        if source is None:
            return dg.SkipReason("no source is named")
        try:
            mark = find_news(catalog, source)
            dates = list_new_dates(context, source)
        except Exception as error:  # noqa: BLE001 - file systems raise their client's own errors; the next look may succeed
            return dg.SkipReason(f"{source.location}: {str(error) or type(error).__name__}")
        new_dates = [build_dump_dates(platform).build_add_request(dates)] if dates else []
        if mark is None:
            return dg.SensorResult(skip_reason="the newest dump has landed", dynamic_partitions_requests=new_dates)
        # Upstreams write a dump for hours. Only a listing that two looks in a row show alike is taken for a whole delivery.
        if context.cursor != mark:
            reason = "a new dump is there; it counts once the next look finds it unchanged"
            return dg.SensorResult(skip_reason=reason, cursor=mark, dynamic_partitions_requests=new_dates)
        # The hour lets a fetch that failed be tried again, and bounds the tries.
        request = dg.RunRequest(run_key=f"{mark} {datetime.now(UTC):%Y-%m-%dT%H}", tags={"platform": platform})
        return dg.SensorResult(run_requests=[request], cursor=mark, dynamic_partitions_requests=new_dates)

    return notice


def build_rebuild_sensor(follows: Iterable[dg.AssetKey]) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that rebuilds the assets after staging by their condition."""
    what = "Rebuilds and publishes the catalog when the staging tables of a platform have changed."
    return dg.AutomationConditionSensorDefinition(REBUILD, target=list(follows), description=what)
