"""Landing and staging: for each platform an asset that fetches the newest dump and one that turns it into staging tables."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import dagster as dg
import duckdb

from catalog_store.platforms import CATALOG_PLATFORMS, INPUTS
from catalog_store.published_snapshots import find_current_folder
from catalog_store.tables import STAGED_TABLES
from catalog_store.tables.files import count_rows, measure_bytes, render_sql_source
from pipeline.build.work_state import read_staging_version
from pipeline.defs.checks import AssetCheck, build_invariant_check, build_spec_check, run_asset_checks_over
from pipeline.defs.plots import draw_bar_chart
from pipeline.defs.resources import CatalogResource, log
from pipeline.defs.retries import has_retries_left, try_again_later
from pipeline.defs.second_runs import run_step, run_with_second_try
from pipeline.defs.step_limits import INPUT
from pipeline.defs.table_steps import build_usage_metadata
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import READ_IN_PLACE
from pipeline.dumps.intake.daily_dumps import land_days, list_unchecked_days, mark_checked, prune_days, stage_days
from pipeline.dumps.intake.local_folder import find_in_place, stage_in_place
from pipeline.dumps.intake.newest_dump import Intake, stage_newest
from pipeline.dumps.landing.landed_dumps import prune_landings, read_landed_date
from pipeline.dumps.landing.landing_zone import Landing, describe_landing, keep_last_good, land
from pipeline.dumps.landing.sources import Source
from pipeline.dumps.landing.upstream import explain_absence
from pipeline.engine.progress import enter_section
from pipeline.engine.usage import measure_usage
from pipeline.paths import DAILY
from pipeline.quality.invariants import list_staged_tables, list_staging_invariants

Written = Generator[dg.MaterializeResult | dg.AssetCheckResult, None, list[dg.AssetCheckResult]]  # type: ignore[type-arg]
"""A step yields results and returns its blocking checks."""

STAGING_GROUP = "staging"
FRESH = "dump_is_fresh"
YOUNG = "dump_is_young_enough"
IN_USE = "newest_dump_is_in_use"
AS_KNOWN = "layout_is_as_known"
UNNAMED = "no source is named"


def build_landing_key(platform: str) -> dg.AssetKey:
    """Return the asset key of a platform's landed dump."""
    return dg.AssetKey(["landing", platform])


def build_staging_key(platform: str) -> dg.AssetKey:
    """Return the asset key of a platform's staging tables."""
    return dg.AssetKey(["staging", platform])


STAGING_KEYS = tuple(build_staging_key(platform) for platform in INPUTS)


def build_landing_asset(platform: str) -> dg.AssetsDefinition:
    """Return the asset that fetches the platform's newest dump; without one it keeps the last good dump and says so."""

    @dg.asset(
        key=build_landing_key(platform),
        group_name="landing",
        op_tags=INPUT,
        description=f"The newest whole dump of {platform}, as delivered.",
        check_specs=[
            dg.AssetCheckSpec(FRESH, asset=build_landing_key(platform), description="the newest dump upstream shows is the one in use"),
            dg.AssetCheckSpec(YOUNG, asset=build_landing_key(platform), description="the dump in use is not older than its source allows"),
        ],
    )
    def landed(catalog: CatalogResource) -> dg.MaterializeResult:  # type: ignore[type-arg]
        source = catalog.find_source(platform)
        # Landing writes no table, so it claims the catalog without inputs to check.
        with catalog.claim_for_step(), measure_usage(catalog.paths.list_spill_folders) as usage:
            zone = catalog.paths.landing(platform)
            landing = fetch(catalog, source) if source else keep_last_good(platform, zone, UNNAMED)
            # The night goes on with the last good dump only after a few tries.
            if landing.is_transient and has_retries_left():
                try_again_later(str(landing.problem))
            pruned = prune(catalog, platform)
        # An input that was never delivered is not missed. One that has landed before may be on a disk that is not mounted.
        is_missed = landing.problem is not None and (source is not None or landing.folder is not None)
        say = catalog.warn if is_missed and source is None else catalog.report
        say(f"{platform}: dump {landing.status}{f' ({landing.problem})' if is_missed else ''}")
        return dg.MaterializeResult(
            metadata={**describe_landing(landing), **build_usage_metadata(usage), "pruned": [folder.name for folder in pruned]},
            check_results=[
                dg.AssetCheckResult(
                    check_name=FRESH,
                    passed=not is_missed,
                    severity=dg.AssetCheckSeverity.WARN,
                    metadata={"problem": landing.problem or "none"},
                ),
                check_age(landing, source),
            ],
        )

    return landed


def check_age(landing: Landing, source: Source | None) -> dg.AssetCheckResult:
    """Return whether the dump in use is younger than its source allows. Dumps without a limit or a date pass."""
    # The upstream may have died without an error: it shows the same dump for ever, and every landing is `unchanged`.
    limit = source.fresh_days if source else None
    dated = landing.folder is not None and landing.platform not in READ_IN_PLACE
    age = (datetime.now(UTC).date() - date.fromisoformat(read_landed_date(landing.folder))).days if dated and landing.folder else None
    is_old = limit is not None and age is not None and age > limit
    return dg.AssetCheckResult(
        check_name=YOUNG,
        passed=not is_old,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"the dump in use is {age} days old, {limit} are allowed: ask the platform for a newer one" if is_old else None,
        metadata={"age_days": "unknown" if age is None else age, "fresh_days": "any" if limit is None else limit},
    )


def fetch(catalog: CatalogResource, source: Source) -> Landing:
    """Fetch the dump that the source shows, in the way in which its platform delivers."""
    # Three ways of delivery: a dump a day that adds to those before, files that are read in place, and whole dumps.
    zone = catalog.paths.landing(source.platform)
    if source.platform in DAILY:
        return land_days(source, zone, catalog.paths.staging(source.platform), catalog.fingerprint_days, catalog.report)
    return find_in_place(source) if source.platform in READ_IN_PLACE else land(source, zone, catalog.report)


def prune(catalog: CatalogResource, platform: str) -> list[Path]:
    """Remove landed dumps that are no longer needed, and return their folders."""
    zone = catalog.paths.landing(platform)
    # A failure does not fail the night: no step needs the room yet.
    try:
        if platform in DAILY:
            return prune_days(zone, catalog.keep_dumps, catalog.paths.staging(platform))
        return prune_landings(zone, catalog.keep_dumps)
    except (OSError, DumpError) as error:
        catalog.warn(f"{platform}: old dumps cannot be removed: {error}: the next build tries again")
        return []


def choose_staging(catalog: CatalogResource, platform: str) -> Callable[[], Intake]:
    """Return the function that reads the landed dump into the staging tables. It is picklable."""
    zone, folder = catalog.paths.landing(platform), catalog.paths.staging(platform)
    if platform in DAILY:
        return partial(stage_days, platform, zone, folder, catalog.fingerprint_days, log.info)
    if platform in READ_IN_PLACE:
        return partial(stage_in_place, catalog.find_source(platform), platform, folder, log.info, catalog.drift_limits)
    return partial(stage_newest, platform, zone, folder, log.info, catalog.drift_limits)


def list_staging_checks(platform: str, folder: Path) -> list[AssetCheck]:
    """Return the checks of one platform's staging tables: their specs, and rows read = rows staged + rows rejected."""
    key = build_staging_key(platform)
    specs = [build_spec_check(table, key, lambda name: folder / name) for table in STAGED_TABLES[platform]]
    # Dagster expects a result of every declared check; that of a table which this staging lacks has no rule to break.
    there = {table.name for table in list_staged_tables(platform, folder)}
    specs = [spec if table.name in there else replace(spec, rules=()) for table, spec in zip(STAGED_TABLES[platform], specs, strict=True)]
    return [*specs, *(build_invariant_check(rule, key) for rule in list_staging_invariants(platform, folder))]


def list_warning_specs(key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the specs of checks that warn and do not stop the build."""
    return [
        dg.AssetCheckSpec(IN_USE, asset=key, description="the newest landed dump can be read and holds as much as the one before"),
        dg.AssetCheckSpec(AS_KNOWN, asset=key, description="the dump has the files, columns and members that are known, and no others"),
    ]


def run_staging_checks(catalog: CatalogResource, platform: str) -> list[dg.AssetCheckResult]:
    """Check the staging tables of a platform."""
    # Days that have passed once are not checked again: there may be years of them, and they never change.
    staging = catalog.paths.staging(platform)
    folders = list_unchecked_days(staging) if platform in DAILY else [staging]
    checks = (list_staging_checks(platform, folder) for folder in folders)
    results = list(run_asset_checks_over(checks, list_staging_checks(platform, Path("unset")), Path(catalog.root) / "work" / "scratch"))
    if platform in DAILY and all(result.passed for result in results):
        mark_checked(folders)
    return results


def iterate_warning_results(key: dg.AssetKey, intake: Intake) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the checks of `list_warning_specs`."""
    for name, lines in ((IN_USE, [intake.problem] if intake.problem else []), (AS_KNOWN, list(intake.warnings))):
        yield dg.AssetCheckResult(
            check_name=name,
            asset_key=key,
            passed=not lines,
            severity=dg.AssetCheckSeverity.WARN,
            description="; ".join(lines) or None,
            metadata={"platform": intake.platform, "dump": intake.dump or "none", "said": dg.MetadataValue.json(lines)},
        )


def build_staging_asset(platform: str) -> dg.AssetsDefinition:
    """Return the asset that reads the platform's dump into the staging tables."""
    key = build_staging_key(platform)

    @dg.asset(
        key=key,
        deps=[build_landing_key(platform)],
        group_name=STAGING_GROUP,
        op_tags=INPUT,
        description=f"Records of {platform} in the conformed schema, with what was rejected and why.",
        kinds={"parquet"},
        # Names and descriptions of the checks do not depend on the folder, so any folder will do before the step runs.
        check_specs=[*(check.spec for check in list_staging_checks(platform, Path("unset"))), *list_warning_specs(key)],
    )
    def staged(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
        with catalog.claim_for_step([key], shares=catalog.stage_at_once) as running_step:
            results = yield from write_staging(catalog)
            running_step.finish(results)
        yield from results

    def write_staging(catalog: CatalogResource) -> Written:
        folder, name = catalog.paths.staging(platform), key.to_python_identifier()
        with catalog.show_progress(name), measure_usage(catalog.paths.list_spill_folders) as usage:
            try:
                intake = run_step(name, catalog, choose_staging(catalog, platform))
            except DumpError as error:
                # A night goes on with the last good dump. A first catalog would look complete without the platform, so it is refused.
                if find_current_folder(catalog.paths.root) is None:
                    raise dg.Failure(str(error), allow_retries=False) from error
                problem = str(error).removeprefix(f"{platform}: ")
                intake = Intake(platform, "kept_last_good" if folder.is_dir() else "missing", None, problem)
            enter_section("checks")
            check = partial(run_with_second_try, name, catalog, partial(run_staging_checks, catalog, platform))
            results = check() if intake.status != "missing" else []
        for line in [*([intake.problem] if intake.problem else []), *(intake.warnings if intake.is_new else ())]:
            catalog.warn(f"{platform}: {line}")  # warnings about a dump are logged on the night that stages it, not again every night
        # It stays while the tables are the same, so that nothing is built again because of them (dump_sensors.py).
        data_version = dg.DataVersion(read_staging_version(catalog.paths, key.to_user_string()))
        # Dagster expects a result of every declared check, also when there is nothing to check.
        if intake.status == "missing":
            metadata = {"status": intake.status, "problem": intake.problem or "none"}
            yield dg.MaterializeResult(asset_key=key, data_version=data_version, metadata=metadata)
            yield from iterate_warning_results(key, intake)
            return [
                dg.AssetCheckResult(check_name=check.name, asset_key=key, passed=True, metadata={"skipped": "no dump"})
                for check in list_staging_checks(platform, Path("unset"))
            ]
        tables = STAGED_TABLES[platform]
        rows = {table.name: count_rows(*catalog.paths.staged(table.name, (platform,))) for table in tables}
        records, rejects = rows[tables[0].name], rows["reject"]
        catalog.report(f"{platform}: {intake.status} in {usage.seconds:.1f} s, {records:,} records, {rejects:,} rejects")
        yield dg.MaterializeResult(
            asset_key=key,
            data_version=data_version,
            metadata={
                "status": intake.status,
                "dump": intake.dump or "none",
                "problem": intake.problem or "none",
                "warnings": dg.MetadataValue.json(list(intake.warnings)),
                "dagster/row_count": records,
                "rejects": rejects,
                "bytes": measure_bytes(folder),
                "rows": dg.MetadataValue.json(rows),
                "rejects_by_reason": dg.MetadataValue.md(format_rejects(catalog.paths.staged("reject", (platform,)))),
                "rows_plot": dg.MetadataValue.md(draw_bar_chart(f"Rows staged from {platform}", rows)),
                **build_usage_metadata(usage),
            },
        )
        yield from iterate_warning_results(key, intake)
        return results

    return staged


def require_dumps(catalog: CatalogResource) -> None:
    """Raise dagster.Failure when no catalog platform has staging tables; the message names the places that were searched."""
    if catalog.paths.staged("source_recording", CATALOG_PLATFORMS):
        return
    sources = [source for platform in CATALOG_PLATFORMS if (source := catalog.find_source(platform))]
    searched = "; ".join(explain_absence(source) for source in sources) or f"none of {', '.join(CATALOG_PLATFORMS)} is named"
    # Every platform alone may be without a dump; only a build without any has nothing to do.
    error = DumpError(f"no dump: there is nothing to build from. {searched}")
    raise dg.Failure(str(error), allow_retries=False) from error


def format_rejects(folders: list[Path]) -> str:
    """Return rejects by kind, reason and field as a Markdown table, most frequent first."""
    rows = duckdb.execute(
        "SELECT entity, severity, reason, coalesce(field, ''), count(*) AS n, any_value(place ORDER BY place) "
        f"FROM {render_sql_source(*folders)} GROUP BY ALL ORDER BY n DESC, 1, 2, 3, 4 LIMIT 30"
    ).fetchall()
    lines = ["| table | out | reason | field | count | for example |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def build_dump_assets() -> list[dg.AssetsDefinition]:
    """Return landing and staging of every source."""
    return [make(platform) for platform in INPUTS for make in (build_landing_asset, build_staging_asset)]
