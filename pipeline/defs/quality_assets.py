"""The gate before the snapshot: figures of the build, a blocking check for each question, and the report.

Report and figures are written even if a check fails, because the operator of a failed build needs them.
"""

from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from catalog_store.platforms import INPUTS
from catalog_store.published_snapshots import find_current_folder
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, TABLES
from pipeline.defs.checks import AssetCheck, build_spec_check, run_asset_checks
from pipeline.defs.column_schema import build_column_schema
from pipeline.defs.dump_assets import STAGING_KEYS, build_landing_key, build_staging_key
from pipeline.defs.resources import CatalogResource
from pipeline.defs.second_runs import run_with_second_try
from pipeline.defs.step_limits import ALONE
from pipeline.defs.table_steps import build_table_key, build_table_metadata
from pipeline.engine.progress import enter_section
from pipeline.engine.usage import measure_usage
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import COST_NAMES, StepCost, read_build_costs
from pipeline.quality.build_figures import build_figures, read_published_figures
from pipeline.quality.code_loss import count_code_losses
from pipeline.quality.gate import QUESTIONS, judge_build
from pipeline.quality.id_drift import measure_id_drift
from pipeline.quality.report.attention import Source
from pipeline.quality.report.examples import choose_examples
from pipeline.quality.report.page import BuildStory, render
from pipeline.quality.report.rows_page import write_rows_page
from pipeline.quality.report.templates import write_page

FIGURES = TABLES["build_figure"]
FIGURES_KEY = build_table_key(FIGURES)
JUDGED = tuple(build_table_key(table) for table in (*LINKAGE_TABLES, *CATALOG_TABLES))
"""Asset keys of all tables that are about to be published."""
RECOGNITION = dg.AssetKey(["recognition", "index"])
MEASURED = (*(build_landing_key(platform) for platform in INPUTS), *STAGING_KEYS, *JUDGED, FIGURES_KEY, RECOGNITION)
"""Asset keys of everything before the snapshot."""


def build_figure_check(paths: BuildPaths) -> AssetCheck:
    """Return the spec check of the table of figures."""
    return build_spec_check(FIGURES, FIGURES_KEY, paths.table)


@dg.asset(
    key=FIGURES_KEY,
    deps=JUDGED,
    group_name="quality",
    op_tags=ALONE,
    description=FIGURES.description,
    metadata={"dagster/column_schema": build_column_schema(FIGURES)},
    kinds={"parquet"},
    check_specs=[
        build_figure_check(BuildPaths(Path("unset"))).spec,
        *(dg.AssetCheckSpec(name, asset=FIGURES_KEY, description=asks, blocking=True) for name, asks in QUESTIONS.items()),
    ],
)
def gate(context: dg.AssetExecutionContext, catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
    """Count, compare with the live snapshot, write the report, and decide whether the build may be published."""
    with catalog.claim_for_step([FIGURES_KEY], JUDGED) as running_step:
        results = yield from write_report_and_judge(context, catalog)
        # A build that a verdict refuses keeps its figures, but no snapshot is made from them.
        running_step.finish(results)
    yield from results


def write_report_and_judge(
    context: dg.AssetExecutionContext, catalog: CatalogResource
) -> Generator[dg.MaterializeResult, None, list[dg.AssetCheckResult]]:  # type: ignore[type-arg]
    """Write figures and report, and return the check results."""
    paths = catalog.paths
    with catalog.show_progress(FIGURES_KEY.to_python_identifier()), measure_usage(paths.list_spill_folders) as usage:
        # Figures and report are written before a verdict can stop the build: the operator of a failed build needs them.
        events = read_materializations(context.instance)
        story = run_with_second_try("gate", catalog, partial(collect_story, catalog, events))
        enter_section("report")
        # The rows first: the report leads to them.
        write_rows_page(story.examples, paths.row_report)
        write_page(render(story), paths.report)
    catalog.report(f"gate: {usage.seconds:.1f} s, report {paths.report}")
    yield dg.MaterializeResult(
        asset_key=FIGURES_KEY,
        metadata={**build_table_metadata(paths.table(FIGURES.name), usage, {}), "report": dg.MetadataValue.path(paths.report)},
    )
    scratch = Path(catalog.root) / "work" / "scratch"
    return [
        *run_with_second_try("gate", catalog, lambda: list(run_asset_checks([build_figure_check(paths)], scratch))),
        *(
            dg.AssetCheckResult(
                check_name=answer.name,
                asset_key=FIGURES_KEY,
                passed=answer.passed,
                description=answer.message,
                metadata={"said": answer.message},
            )
            for answer in story.verdicts
        ),
    ]


def collect_story(catalog: CatalogResource, events: Mapping[dg.AssetKey, dg.EventLogEntry]) -> BuildStory:
    """Write the figures of the build, compare them with the live snapshot, and return all that the report tells."""
    paths = catalog.paths
    enter_section("drift of ids")
    before, drift = read_published_figures(paths), measure_id_drift(paths)
    enter_section("figures")
    now = build_figures(paths, catalog.truth)
    enter_section("lost codes")
    losses = count_code_losses(paths)
    enter_section("examples")
    examples = choose_examples(paths)
    live = find_current_folder(paths.root)
    return BuildStory(
        built_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        compared_with=live.name if live else None,
        now=now,
        before=before,
        drift=drift,
        verdicts=judge_build(now, before, drift, catalog.gate_limits, losses),
        examples=examples,
        sources=read_sources(events),
        costs=read_costs(events),
        builds=read_build_costs(paths.costs),
    )


def read_sources(events: Mapping[dg.AssetKey, dg.EventLogEntry]) -> list[Source]:
    """Return the newest staging result of each source."""
    found = []
    for platform in INPUTS:
        metadata = _read_metadata(events.get(build_staging_key(platform)))
        dump, status, problem = (str(metadata[name].value) if name in metadata else "" for name in ("dump", "status", "problem"))
        warnings = [str(line) for line in metadata["warnings"].value] if "warnings" in metadata else []  # type: ignore[union-attr]
        found.append(Source(platform, dump, status, "" if problem == "none" else problem, warnings))
    return found


def read_costs(events: Mapping[dg.AssetKey, dg.EventLogEntry], run_id: str | None = None) -> list[StepCost]:
    """Return the cost of the last run of each step, in the order in which they ran; with `run_id` of the steps of that run only."""
    steps: dict[str, tuple[float, StepCost]] = {}
    for key in MEASURED:
        event, metadata = events.get(key), _read_metadata(events.get(key))
        if event is None or event.dagster_event is None or "seconds" not in metadata or run_id not in {None, event.run_id}:
            continue
        # A materialization of an earlier version of this code lacks some of the figures.
        figures: dict[str, Any] = {name: metadata[name].value for name in COST_NAMES if name in metadata}
        step = str(event.dagster_event.step_key)
        steps.setdefault(step, (event.timestamp, StepCost(step, **figures)))
    # Tables of one step carry the same cost, so the step counts once.
    return [cost for _, cost in sorted(steps.values(), key=lambda found: found[0])]


def read_materializations(instance: dg.DagsterInstance) -> dict[dg.AssetKey, dg.EventLogEntry]:
    """Return the newest materialization of every asset before the snapshot."""
    # One query for all assets: single queries took longer than the figures.
    entries = [record.asset_entry for record in instance.get_asset_records(MEASURED)]
    return {entry.asset_key: entry.last_materialization for entry in entries if entry.last_materialization}


def _read_metadata(event: dg.EventLogEntry | None) -> Mapping[str, dg.MetadataValue]:
    materialization = event.asset_materialization if event else None
    return materialization.metadata if materialization else {}
