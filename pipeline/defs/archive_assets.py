"""Dumps by their date: landing and staging of any dump that upstream still shows, a partition each.

A back-fill fills folders of its own below `archive`. It never touches the landing zone and the staging tables of tonight's build, so the
line from the newest dump to the live snapshot stays as it is. Read archived tables to compare two dumps, or to look into an old one.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import dagster as dg

from catalog_store.platforms import SOURCES
from catalog_store.tables import STAGED_TABLES
from catalog_store.tables.files import count_rows, measure_bytes
from pipeline.defs.checks import run_asset_checks
from pipeline.defs.dump_assets import list_staging_checks
from pipeline.defs.resources import CatalogResource, log
from pipeline.defs.retries import try_again_later
from pipeline.defs.second_runs import run_step
from pipeline.defs.step_limits import INPUT
from pipeline.defs.table_steps import build_usage_metadata
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.dumps.landing.landed_dumps import list_landed_dumps, read_landed_date, require_whole
from pipeline.dumps.landing.landing_zone import describe_landing, land_day
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.landing.transient_errors import is_transient
from pipeline.dumps.landing.upstream import list_dump_dates
from pipeline.engine.usage import measure_usage

GROUP = "archive"
ARCHIVED = SOURCES
"""Inputs that deliver whole dumps. Others add days to each other, or are read in place."""


def name_partitions(platform: str) -> str:
    """Return the name of the set of dump dates of a platform."""
    return f"dump_dates_of_{platform}"


def build_dump_dates(platform: str) -> dg.DynamicPartitionsDefinition:
    """Return the dates of the dumps that upstream showed. Sensors and back-fills add them."""
    return dg.DynamicPartitionsDefinition(name=name_partitions(platform))


def find_new_dates(source: Source, known: Sequence[str]) -> list[str]:
    """Return the dates that upstream shows and Dagster does not know yet. Raises DumpError and the errors of file systems."""
    return [day for day in list_dump_dates(source) if day not in known]


def find_archived(zone: Path, day: str) -> Path:
    """Return the dump of a day that was fetched last: a mended delivery lands beside the broken one. DumpError when there is none."""
    landed = [folder for folder in list_landed_dumps(zone) if read_landed_date(folder) == day]
    if not landed:
        raise DumpError("it was not fetched: materialise its landing first")
    return landed[-1]


def build_archive_assets(platform: str) -> list[dg.AssetsDefinition]:
    """Return landing and staging of one platform by date."""
    dates = build_dump_dates(platform)
    landing_key, staging_key = dg.AssetKey(["archived_dump", platform]), dg.AssetKey(["archived_staging", platform])

    @dg.asset(
        key=landing_key,
        group_name=GROUP,
        partitions_def=dates,
        op_tags=INPUT,
        description=f"The dump of {platform} of one date, as delivered.",
    )
    def archived_dump(context: dg.AssetExecutionContext, catalog: CatalogResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
        source = catalog.find_source(platform)
        if source is None:
            raise dg.Failure(f"{platform}: no source is named: name it in sources.yaml", allow_retries=False)
        with catalog.claim_for_step(), measure_usage(catalog.paths.list_spill_folders) as usage:
            try:
                landing = land_day(source, catalog.paths.archived_dumps(platform), context.partition_key, catalog.report)
            except DumpError as error:
                raise dg.Failure(f"{platform}: {error}", allow_retries=False) from error
            except Exception as error:  # file systems raise their client's own errors
                if not is_transient(error):
                    raise
                try_again_later(f"{platform}: {source.location}: {str(error) or type(error).__name__}", error)
        return dg.MaterializeResult(metadata={**describe_landing(landing), **build_usage_metadata(usage)})

    @dg.asset(
        key=staging_key,
        deps=[landing_key],
        group_name=GROUP,
        partitions_def=dates,
        op_tags=INPUT,
        kinds={"parquet"},
        description=f"Staging tables of the dump of {platform} of one date.",
    )
    def archived_staging(context: dg.AssetExecutionContext, catalog: CatalogResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
        day = context.partition_key
        folder = catalog.paths.archived_staging(platform, day)
        with catalog.claim_for_step(), measure_usage(catalog.paths.list_spill_folders) as usage:
            try:
                dump = find_archived(catalog.paths.archived_dumps(platform), day)
                require_whole(dump)
                # Limits of shrinking compare a dump with the one before it; an archived dump is looked at alone.
                staged = partial(stage_dump, platform, dump, folder, log.info)
                run_step(staging_key.to_python_identifier(), catalog, staged)
            except DumpError as error:
                raise dg.Failure(f"{platform}, dump of {day}: {error}", allow_retries=False) from error
            failed = [
                result.check_name
                for result in run_asset_checks(list_staging_checks(platform, folder), Path(catalog.root) / "work" / "scratch")
                if not result.passed
            ]
        if failed:
            raise dg.Failure(f"{platform}, dump of {day}: staging tables break {', '.join(map(str, failed))}", allow_retries=False)
        rows = {table.name: count_rows(folder / table.name) for table in STAGED_TABLES[platform] if (folder / table.name).is_dir()}
        sizes = {"dagster/row_count": rows.get(STAGED_TABLES[platform][0].name, 0), "bytes": measure_bytes(folder)}
        return dg.MaterializeResult(metadata={**sizes, "rows": dg.MetadataValue.json(rows), **build_usage_metadata(usage)})

    return [archived_dump, archived_staging]
