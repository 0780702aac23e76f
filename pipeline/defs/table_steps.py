"""The pattern of a step that writes linkage or catalog tables: run one function, describe its tables, check them.

A table is one asset `[layer, table]`; tables that are written together share a step. Add a step in `linkage_assets.py`,
`identity_assets.py` or `catalog_assets.py`, in the order of the data flow. Groups point one way: a step reads tables of its own group and
of groups before it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dagster as dg

from catalog_store.tables import TABLES, Table
from catalog_store.tables.checks import TableCheck
from catalog_store.tables.files import count_rows, measure_bytes
from pipeline.build.work_state import TableState
from pipeline.defs.checks import AssetCheck, build_invariant_check, build_spec_check, run_asset_checks
from pipeline.defs.column_schema import build_column_schema
from pipeline.defs.plots import draw_bar_chart
from pipeline.defs.resources import CatalogResource
from pipeline.defs.second_runs import run_step, run_with_second_try
from pipeline.defs.step_limits import ALONE
from pipeline.engine.progress import enter_section
from pipeline.engine.usage import Usage, measure_usage
from pipeline.paths import BuildPaths


@dataclass(frozen=True)
class TableStep:
    """A step whose `run` writes `tables`. It reads the tables in `after` and those that they were made from, and no others."""

    name: str
    tables: tuple[Table, ...]
    after: tuple[dg.AssetKey, ...]
    run: Callable[[BuildPaths], Mapping[str, int] | None]
    """Function that writes the tables. It is picklable: the step of a large catalog has a process of its own."""
    invariants: Callable[[BuildPaths], list[TableCheck]] = lambda _paths: []
    require: Callable[[CatalogResource], None] = lambda _catalog: None
    """Function that raises dagster.Failure when the step has no input."""
    plotted: tuple[str, ...] = ()
    """Facts of `run` to draw as a bar chart."""
    files: Callable[[BuildPaths], list[Path]] = lambda _paths: []
    """Files besides tables that `run` writes for later steps."""
    group: str | None = None
    """Dagster's group of the assets; None: the layer of each table."""

    def list_checks(self, paths: BuildPaths) -> list[AssetCheck]:
        """Return the spec check of every table and the invariants of the step."""
        specs = [build_spec_check(table, build_table_key(table), paths.table) for table in self.tables]
        return [*specs, *(build_invariant_check(rule, build_table_key(TABLES[rule.table])) for rule in self.invariants(paths))]


def build_table_key(table: Table) -> dg.AssetKey:
    """Return the asset key of a table."""
    return dg.AssetKey([table.layer, table.name])


def build_table_keys(*names: str) -> tuple[dg.AssetKey, ...]:
    """Return the asset keys of tables by name."""
    return tuple(build_table_key(table) for table in find_tables(*names))


def find_tables(*names: str) -> tuple[Table, ...]:
    """Return the specs of tables by name."""
    return tuple(TABLES[name] for name in names)


def build_table_assets(step: TableStep) -> dg.AssetsDefinition:
    """Return the Dagster assets of a step."""
    # Dagster wants the checks when it loads the code, before a catalog is known. Their names and descriptions do not depend on the folder.
    unset = BuildPaths(Path("unset"))

    @dg.multi_asset(
        name=step.name,
        specs=[
            dg.AssetSpec(
                build_table_key(table),
                deps=step.after,
                group_name=step.group or table.layer,
                description=table.description,
                metadata={"dagster/column_schema": build_column_schema(table)},
                kinds={"parquet"},
            )
            for table in step.tables
        ],
        check_specs=[check.spec for check in step.list_checks(unset)],
        op_tags=ALONE,
    )
    def write_tables(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
        step.require(catalog)  # before the claim: a build without input must not empty the records of its tables
        with catalog.claim_for_step([build_table_key(table) for table in step.tables], step.after, can_resume=True) as running_step:
            if running_step.finished:
                yield from describe_finished_step(catalog, step, running_step.finished)
                return
            with catalog.show_progress(step.name), measure_usage(catalog.paths.list_spill_folders) as usage:
                facts = run_step(step.name, catalog, partial(step.run, catalog.paths)) or {}
                # The checks run while the catalog is claimed. Only tables that pass count as finished; a failed one stops the steps
                # after it. Their cost is part of the step's.
                results = run_with_second_try(step.name, catalog, partial(run_checks_of_step, step, catalog))
            catalog.report(f"{step.name}: {usage.seconds:.1f} s, {facts}")
            engine = catalog.describe_engine()
            plotted = {name: facts.get(name, 0) for name in step.plotted}
            plot = {"plot": dg.MetadataValue.md(draw_bar_chart(step.name, plotted))} if plotted else {}
            # Tables that are written together share a step (decision 3): a Dagster step costs seconds in a multiprocess run.
            for table in step.tables:
                metadata = build_table_metadata(catalog.paths.table(table.name), usage, facts)
                yield dg.MaterializeResult(asset_key=build_table_key(table), metadata={**metadata, **engine, **plot})
            running_step.finish(results, step.files(catalog.paths), {**build_usage_metadata(usage), **facts})
        yield from results

    return write_tables


def run_checks_of_step(step: TableStep, catalog: CatalogResource) -> list[dg.AssetCheckResult]:
    """Return the results of the checks of a step."""
    enter_section("checks")
    return list(run_asset_checks(step.list_checks(catalog.paths), Path(catalog.root) / "work" / "scratch"))


def describe_finished_step(
    catalog: CatalogResource, step: TableStep, finished: TableState
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
    """Yield the results of a step that a build before this one has finished, with its cost."""
    catalog.report(f"{step.name}: finished by run {finished.run_id} on {finished.at}: its tables are used")
    for table in step.tables:
        folder = catalog.paths.table(table.name)
        sizes = {"dagster/row_count": count_rows(folder), "bytes": measure_bytes(folder)}
        yield dg.MaterializeResult(
            asset_key=build_table_key(table), metadata={**sizes, **finished.facts, "written_by_run": finished.run_id}
        )
    for check in step.list_checks(catalog.paths):
        # A step with a failed check has no record.
        yield dg.AssetCheckResult(check_name=check.name, asset_key=check.asset, passed=True, metadata={"checked_by_run": finished.run_id})


def build_table_metadata(folder: Path, usage: Usage, facts: Mapping[str, int]) -> dict[str, float | int]:
    """Return rows, bytes, seconds and peak memory of a written table, and the facts of its step."""
    return {"dagster/row_count": count_rows(folder), "bytes": measure_bytes(folder), **build_usage_metadata(usage), **facts}


def build_usage_metadata(usage: Usage) -> dict[str, float | int]:
    """Return the cost of a step; the names are those of `pipeline.quality.build_costs.StepCost`."""
    return {
        "seconds": round(usage.seconds, 2),
        "cpu_seconds": round(usage.cpu_seconds, 2),
        "worker_cpu_seconds": round(usage.worker_cpu_seconds, 2),
        "peak_memory_bytes": usage.peak_bytes,
        "worker_peak_memory_bytes": usage.worker_peak_bytes,
        "spill_bytes": usage.spill_bytes,
        "written_bytes": usage.written_bytes,
    }
