"""The pattern of every step that writes linkage or catalog tables: run one function, describe its tables, check them.

A table is one asset `[layer, table]`; tables that are written together share a step. Add a step in `linkage_assets.py` or
`catalog_assets.py`, in the order of the data flow.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from catalog_store.tables import TABLES, Table
from catalog_store.tables.checks import TableCheck
from catalog_store.tables.files import row_count, size_bytes
from pipeline.defs.checks import AssetCheck, invariant_check, run_asset_checks, spec_check
from pipeline.defs.column_schema import column_schema
from pipeline.defs.plots import bar_chart
from pipeline.defs.resources import CatalogResource
from pipeline.engine.usage import Usage, measured
from pipeline.paths import BuildPaths


@dataclass(frozen=True)
class TableStep:
    """One step: `run` writes `tables` from the tables in `after` and from what those were made from; it reads no others."""

    name: str
    tables: tuple[Table, ...]
    after: tuple[dg.AssetKey, ...]
    run: Callable[[BuildPaths], Mapping[str, int] | None]
    invariants: Callable[[BuildPaths], list[TableCheck]] = lambda _paths: []
    require: Callable[[CatalogResource], None] = lambda _catalog: None
    """Raises dagster.Failure when there is nothing to begin with."""
    plotted: tuple[str, ...] = ()
    """Facts of `run` that are worth a bar chart."""

    def checks(self, paths: BuildPaths) -> list[AssetCheck]:
        """The spec check of every table and the step's invariants."""
        specs = [spec_check(table, table_key(table), paths.table) for table in self.tables]
        return [*specs, *(invariant_check(rule, table_key(TABLES[rule.table])) for rule in self.invariants(paths))]


def table_key(table: Table) -> dg.AssetKey:
    """The asset key of a table."""
    return dg.AssetKey([table.layer, table.name])


def table_assets(step: TableStep) -> dg.AssetsDefinition:
    """The Dagster assets of a step."""
    nowhere = BuildPaths(Path("unset"))  # check names and descriptions do not depend on where the tables lie

    @dg.multi_asset(
        name=step.name,
        specs=[
            dg.AssetSpec(
                table_key(table),
                deps=step.after,
                group_name=table.layer,
                description=table.description,
                metadata={"dagster/column_schema": column_schema(table)},
                kinds={"parquet"},
            )
            for table in step.tables
        ],
        check_specs=[check.spec for check in step.checks(nowhere)],
    )
    def write_tables(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
        step.require(catalog)
        with catalog.writing([table_key(table) for table in step.tables], step.after) as working:
            with measured() as usage:
                facts = step.run(catalog.paths) or {}
            catalog.report(f"{step.name}: {usage.seconds:.1f} s, {facts}")
            plotted = {name: facts.get(name, 0) for name in step.plotted}
            plot = {"plot": dg.MetadataValue.md(bar_chart(step.name, plotted))} if plotted else {}
            for table in step.tables:
                metadata = table_metadata(catalog.paths.table(table.name), usage, facts)
                yield dg.MaterializeResult(asset_key=table_key(table), metadata={**metadata, **plot})
            results = list(run_asset_checks(step.checks(catalog.paths), Path(catalog.root) / "work" / "scratch"))
            working.finish(results)
        yield from results

    return write_tables


def table_metadata(folder: Path, usage: Usage, facts: Mapping[str, int]) -> dict[str, float | int]:
    """Rows, bytes, seconds and peak memory of a written table, and what the stage has to say besides."""
    return {"dagster/row_count": row_count(folder), "bytes": size_bytes(folder), **usage_metadata(usage), **facts}


def usage_metadata(usage: Usage) -> dict[str, float | int]:
    """What a step cost."""
    return {
        "seconds": round(usage.seconds, 2),
        "cpu_seconds": round(usage.cpu_seconds, 2),
        "peak_memory_bytes": usage.peak_bytes,
    }
