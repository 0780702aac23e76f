from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from catalog_store.platforms import PLATFORMS
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, STAGED_TABLES, TABLES
from pipeline.definitions import build_definitions
from pipeline.defs.asset_facts import STAGED_COLUMNS
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.step_limits import ALONE, INPUT, WORK, build_executor
from pipeline.defs.table_steps import build_table_key
from pipeline.dumps.landing.sources import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

FRESH = Source("store_a", "/srv/store_a", fresh_days=10)


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return build_definitions({"catalog": CatalogResource(root="unset")}, sources={"store_a": FRESH})


@pytest.fixture(scope="module")
def specs(definitions: dg.Definitions) -> Mapping[dg.AssetKey, dg.AssetSpec]:
    return {spec.key: spec for spec in definitions.resolve_all_asset_specs()}


def test_every_asset_has_an_owner_a_layer_and_a_kind(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    for spec in specs.values():
        assert spec.owners
        assert spec.tags["layer"] == spec.key.path[0]
        assert "python" in spec.kinds


def test_facts_of_a_platform_come_from_its_description(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    spec, platform = specs[dg.AssetKey(["staging", "catalog_b"])], PLATFORMS["catalog_b"]
    assert (list(spec.owners), spec.metadata["licence"]) == ([platform.owner], platform.licence)
    assert (spec.tags["input"], spec.tags["schedule"]) == ("catalog_b", platform.schedule)
    files = {Path(one.file_path).name for one in spec.metadata["dagster/code_references"].code_references}
    assert files == {"__init__.py", "platform.yaml"}


def test_every_table_names_the_function_that_writes_it(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES):
        [code] = specs[build_table_key(table)].metadata["dagster/code_references"].code_references
        lines = Path(code.file_path).read_text().splitlines()
        assert lines[code.line_number - 1].startswith(f"def {code.label}(")


def test_lineage_names_columns_that_exist(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    traced = 0
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES):
        lineage = specs[build_table_key(table)].metadata["dagster/column_lineage"].deps_by_column
        assert set(lineage) <= set(table.column_names)
        for dep in (dep for deps in lineage.values() for dep in deps):
            assert dep.asset_key in specs
            name, _, column = dep.column_name.rpartition(".")
            source = TABLES[name or dep.asset_key.path[-1]]
            assert column in source.column_names
            traced += 1
    assert traced > len(STAGED_COLUMNS)


@pytest.mark.parametrize("column", STAGED_COLUMNS)
def test_traced_columns_are_columns_of_tables(column: str) -> None:
    for name in (column, STAGED_COLUMNS[column]):
        table, _, one = name.partition(".")
        assert one in TABLES[table].column_names
    assert any(STAGED_COLUMNS[column].startswith(f"{table.name}.") for tables in STAGED_TABLES.values() for table in tables)


def test_freshness_of_an_input_is_that_of_its_source(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    policy = specs[dg.AssetKey(["staging", "store_a"])].freshness_policy
    assert policy == dg.FreshnessPolicy.time_window(fail_window=timedelta(days=10))
    assert specs[dg.AssetKey(["staging", "catalog_a"])].freshness_policy is None


def test_only_landing_and_staging_may_run_side_by_side(definitions: dg.Definitions) -> None:
    tags = {node.name: node.tags.get(WORK) for node in definitions.resolve_job_def(NIGHTLY).graph.nodes}
    assert {tag for name, tag in tags.items() if name.startswith(("landing__", "staging__"))} == {INPUT[WORK]}
    assert {tag for name, tag in tags.items() if not name.startswith(("landing__", "staging__"))} == {ALONE[WORK]}


def test_one_platform_at_once_needs_no_process_for_each_step() -> None:
    assert build_executor(1) is dg.in_process_executor
    assert build_executor(2).name == "multiprocess"
