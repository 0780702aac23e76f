from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest

from catalog_store.platforms import SOURCES
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, QUALITY_TABLES, STAGING_TABLES, TABLES
from catalog_store.tables.files import write_table
from pipeline.definitions import build_definitions
from pipeline.defs.dump_assets import staging_key
from pipeline.defs.jobs import NIGHTLY
from pipeline.defs.resources import CatalogResource
from pipeline.defs.table_steps import TableStep, table_assets, table_key
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    return build_definitions({"catalog": CatalogResource(root=str(tmp_path / "catalog"), dumps=str(tmp_path / "dumps"))})


def test_every_table_behind_staging_is_an_asset_with_its_columns(definitions: dg.Definitions) -> None:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES):
        spec = specs[table_key(table)]
        schema = spec.metadata["dagster/column_schema"]
        assert [column.name for column in schema.columns] == table.column_names
        assert spec.group_name == table.layer


def test_every_source_has_a_landing_and_a_staging_asset(definitions: dg.Definitions) -> None:
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert {f"{layer}/{source}" for layer in ("landing", "staging") for source in SOURCES} <= keys


def test_the_nightly_job_covers_all_assets_in_less_than_forty_steps(definitions: dg.Definitions) -> None:
    job = definitions.resolve_job_def(NIGHTLY)
    assert job.asset_layer.selected_asset_keys == {spec.key for spec in definitions.resolve_all_asset_specs()}
    assert len(job.graph.nodes) < 40


def test_every_place_that_an_operator_names_reaches_the_build(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, dumps=tmp_path / "d", overrides=tmp_path / "o.yaml", rules=tmp_path / "r", largest_move=0.5)
    catalog = CatalogResource.of(settings)
    assert catalog.paths == BuildPaths(tmp_path, overrides_file=tmp_path / "o.yaml", rules=tmp_path / "r")
    assert catalog.dumps == str(tmp_path / "d")
    assert catalog.gate_limits.move == 0.5
    assert CatalogResource.of(Settings(root=tmp_path)).paths == BuildPaths(tmp_path)


def test_the_schedule_runs_the_nightly_job(definitions: dg.Definitions) -> None:
    schedule = definitions.resolve_schedule_def("nightly")
    assert schedule.job_name == NIGHTLY
    assert schedule.cron_schedule == "0 3 * * *"


def test_checks_generated_from_the_specs_are_blocking(definitions: dg.Definitions) -> None:
    owners = [*(definitions.assets or ()), *(definitions.asset_checks or ())]
    checks = [spec for owner in owners if isinstance(owner, dg.AssetsDefinition | dg.AssetChecksDefinition) for spec in owner.check_specs]
    assert len(checks) > 200
    assert {check.name for check in checks if not check.blocking} == {"dump_is_fresh"}


def test_one_platform_can_be_materialised_alone_with_its_facts(
    definitions: dg.Definitions, tmp_path: Path, built_world: BuiltWorld
) -> None:
    shutil.copytree(built_world.dumps / "store_a", tmp_path / "dumps" / "store_a")
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(asset_selection=[dg.AssetKey(["landing", "store_a"]), staging_key("store_a")], instance=instance)
        event = instance.get_latest_materialization_event(staging_key("store_a"))
    assert result.success
    assert event is not None
    metadata = event.asset_materialization.metadata  # type: ignore[union-attr]
    assert metadata["dagster/row_count"].value > 0
    assert metadata["status"].value == "staged"
    assert "![" in metadata["rows_plot"].value
    assert {table.name for table in STAGING_TABLES} == set(metadata["rows"].value)


def test_a_table_that_breaks_its_spec_stops_the_line(tmp_path: Path) -> None:
    table = TABLES["label"]

    def write_the_same_label_twice(_paths: object) -> None:
        row = {"label_id": [1, 1], "name": ["a", "b"], "release_count": [0, -1]}
        write_table(table, tmp_path / "work" / "catalog" / "label", pl.DataFrame(row, schema=table.polars_schema))

    step = table_assets(TableStep("labels", (table,), (), write_the_same_label_twice))

    @dg.asset(deps=[table_key(table)])
    def downstream() -> None:
        raise AssertionError("a step behind a failed check ran")

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [step, downstream], resources={"catalog": CatalogResource(root=str(tmp_path))}, instance=instance, raise_on_error=False
        )
    assert not result.success
    failed = {check.check_name: check.metadata["rows_at_fault"].value for check in result.get_asset_check_evaluations() if not check.passed}
    assert failed == {"label_key_unique": 1, "label_release_count_minimum": 1}
