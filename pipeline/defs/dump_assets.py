"""Dumps and staging: per platform one asset that fetches the newest dump and one that turns it into staging tables."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import duckdb

from catalog_store.platforms import INPUTS
from catalog_store.tables import STAGING_TABLES
from catalog_store.tables.checks import TableCheck, table_checks
from catalog_store.tables.files import row_count, size_bytes, sql_source
from pipeline.build.quality import staging_invariants
from pipeline.defs.checks import check_spec, run_checks
from pipeline.defs.plots import bar_chart
from pipeline.defs.resources import CatalogResource
from pipeline.defs.table_steps import usage_metadata
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake import stage_newest
from pipeline.dumps.landing import Landing, land, landing_facts, last_good, prune_landings
from pipeline.engine.usage import measured

FRESH = "dump_is_fresh"


def landing_key(platform: str) -> dg.AssetKey:
    """The asset key of a platform's landed dump."""
    return dg.AssetKey(["landing", platform])


def staging_key(platform: str) -> dg.AssetKey:
    """The asset key of a platform's staging tables."""
    return dg.AssetKey(["staging", platform])


STAGING_KEYS = tuple(staging_key(platform) for platform in INPUTS)


def landing_asset(platform: str) -> dg.AssetsDefinition:
    """Fetches the platform's newest dump; keeps the last good one when there is none, and says so."""

    @dg.asset(
        key=landing_key(platform),
        group_name="landing",
        description=f"The newest whole dump of {platform}, as delivered.",
        check_specs=[dg.AssetCheckSpec(FRESH, asset=landing_key(platform), description="the newest dump upstream shows is the one in use")],
    )
    def landed(catalog: CatalogResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
        zone = catalog.paths.landing(platform)
        source = catalog.source(platform)
        with measured() as usage:
            landing = land(source, zone, catalog.report) if source else Landing(platform, "missing", last_good(zone), "no source is named")
            pruned = prune_landings(zone, catalog.keep_dumps)
        catalog.report(f"{platform}: dump {landing.status}{f' ({landing.problem})' if landing.problem and source else ''}")
        return dg.MaterializeResult(
            metadata={**landing_facts(landing), **usage_metadata(usage), "pruned": [folder.name for folder in pruned]},
            check_results=[
                dg.AssetCheckResult(
                    check_name=FRESH,
                    passed=landing.problem is None or source is None,
                    severity=dg.AssetCheckSeverity.WARN,
                    metadata={"problem": landing.problem or "none"},
                )
            ],
        )

    return landed


def staging_checks(folder: Path) -> list[TableCheck]:
    """Checks of one platform's staging tables: the specs' and the books of the intake."""
    return [
        *(check for table in STAGING_TABLES for check in table_checks(table, lambda name: folder / name)),
        *staging_invariants(folder),
    ]


def staging_asset(platform: str) -> dg.AssetsDefinition:
    """Reads the platform's dump into the staging tables."""
    key = staging_key(platform)

    @dg.asset(
        key=key,
        deps=[landing_key(platform)],
        group_name="staging",
        description=f"Records of {platform} in the conformed schema, with what was rejected and why.",
        kinds={"parquet"},
        check_specs=[check_spec(check, key) for check in staging_checks(Path("unset"))],
    )
    def staged(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
        folder = catalog.paths.staging(platform)
        with measured() as usage:
            try:
                intake = stage_newest(platform, catalog.paths.landing(platform), folder, catalog.report)
            except DumpError as error:
                raise dg.Failure(str(error), allow_retries=False) from error
        if intake.status == "missing":
            yield dg.MaterializeResult(asset_key=key, metadata={"status": intake.status})
            yield from (
                dg.AssetCheckResult(check_name=check.name, asset_key=key, passed=True, metadata={"skipped": "no dump"})
                for check in staging_checks(Path("unset"))
            )
            return
        rows = {table.name: row_count(folder / table.name) for table in STAGING_TABLES}
        catalog.report(
            f"{platform}: {intake.status} in {usage.seconds:.1f} s, {rows['source_recording']:,} records, {rows['reject']:,} rejects"
        )
        yield dg.MaterializeResult(
            asset_key=key,
            metadata={
                "status": intake.status,
                "dump": intake.dump or "none",
                "problem": intake.problem or "none",
                "dagster/row_count": rows["source_recording"],
                "rejects": rows["reject"],
                "bytes": size_bytes(folder),
                "rows": dg.MetadataValue.json(rows),
                "rejects_by_reason": dg.MetadataValue.md(reject_table(folder)),
                "rows_plot": dg.MetadataValue.md(bar_chart(f"Rows staged from {platform}", rows)),
                **usage_metadata(usage),
            },
        )
        yield from run_checks(((check, key) for check in staging_checks(folder)), Path(catalog.root) / "work" / "scratch")

    return staged


def reject_table(folder: Path) -> str:
    """Rejects by kind, reason and field as a Markdown table, most frequent first."""
    rows = duckdb.execute(
        "SELECT entity, severity, reason, coalesce(field, ''), count(*) AS n, any_value(place ORDER BY place) "
        f"FROM {sql_source(folder / 'reject')} GROUP BY ALL ORDER BY n DESC, 1, 2, 3, 4 LIMIT 30"
    ).fetchall()
    lines = ["| table | out | reason | field | count | for example |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def dump_assets() -> list[dg.AssetsDefinition]:
    """Landing and staging of every source."""
    return [make(platform) for platform in INPUTS for make in (landing_asset, staging_asset)]
