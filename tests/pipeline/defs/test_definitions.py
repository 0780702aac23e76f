from __future__ import annotations

import shutil
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest

from catalog_store.platforms import INPUTS, SOURCES
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, QUALITY_TABLES, STAGED_TABLES, STAGING_TABLES, TABLES
from catalog_store.tables.files import write_table
from pipeline.definitions import build_definitions
from pipeline.defs.checks import AssetCheck, build_spec_check, run_asset_checks_over
from pipeline.defs.dump_assets import build_staging_key
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.table_steps import TableStep, build_table_assets, build_table_key
from pipeline.engine.pool import PROCESSES, Engine, use_engine
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("definitions")


@pytest.fixture(scope="module")
def definitions(place: Path) -> dg.Definitions:
    return build_definitions({"catalog": CatalogResource(root=str(place / "catalog"), dumps=str(place / "dumps"))})


def test_every_table_after_staging_is_an_asset_with_its_columns(definitions: dg.Definitions) -> None:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    for table in (*LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES):
        spec = specs[build_table_key(table)]
        schema = spec.metadata["dagster/column_schema"]
        assert [column.name for column in schema.columns] == table.column_names


def test_asset_groups_point_one_way(definitions: dg.Definitions) -> None:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    groups: dict[str, set[str]] = {str(spec.group_name): set() for spec in specs.values()}
    for spec in specs.values():
        groups[str(spec.group_name)] |= {str(specs[dep.asset_key].group_name) for dep in spec.deps} - {str(spec.group_name)}
    try:
        order = list(TopologicalSorter(groups).static_order())
    except CycleError as error:
        pytest.fail(f"asset groups depend on each other in a circle: {' -> '.join(error.args[1])}")
    # Archived dumps feed nothing: a back-fill cannot reach tonight's build.
    assert groups["archive"] == set()
    assert not any("archive" in read for read in groups.values())
    assert [group for group in order if group != "archive"] == [
        "landing",
        "staging",
        "linkage",
        "identity",
        "catalog",
        "quality",
        "snapshot",
    ]


def test_every_source_has_a_landing_and_a_staging_asset(definitions: dg.Definitions) -> None:
    keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
    assert {f"{layer}/{source}" for layer in ("landing", "staging") for source in SOURCES} <= keys


def test_nightly_job_covers_all_assets_but_archived_dumps_in_less_than_forty_steps(definitions: dg.Definitions) -> None:
    job = definitions.resolve_job_def(NIGHTLY)
    specs = definitions.resolve_all_asset_specs()
    assert job.asset_layer.selected_asset_keys == {spec.key for spec in specs if spec.group_name != "archive"}
    assert len(job.graph.nodes) < 40


def test_every_configured_path_reaches_the_build(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, dumps=tmp_path / "d", overrides=tmp_path / "o.yaml", rules=tmp_path / "r", largest_move=0.5)
    catalog = CatalogResource.of(settings)
    assert catalog.paths == BuildPaths(tmp_path, overrides_file=tmp_path / "o.yaml", rules=tmp_path / "r")
    assert catalog.dumps == str(tmp_path / "d")
    assert catalog.gate_limits.move == 0.5
    assert CatalogResource.of(Settings(root=tmp_path)).paths == BuildPaths(tmp_path)


def test_schedule_runs_the_nightly_job(definitions: dg.Definitions) -> None:
    schedule = definitions.resolve_schedule_def("nightly")
    assert schedule.job_name == NIGHTLY
    assert schedule.cron_schedule == "0 3 * * *"


def test_every_table_has_a_blocking_check_of_its_spec(definitions: dg.Definitions) -> None:
    owners = [*(definitions.assets or ()), *(definitions.asset_checks or ())]
    checks = [spec for owner in owners if isinstance(owner, dg.AssetsDefinition | dg.AssetChecksDefinition) for spec in owner.check_specs]
    found = {(check.asset_key, check.name) for check in checks}
    assert len(found) == len(checks)
    assert {
        (build_table_key(table), f"{table.name}_keeps_its_spec") for table in (*LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES)
    } <= found
    assert {
        (build_staging_key(platform), f"{table.name}_keeps_its_spec") for platform in INPUTS for table in STAGED_TABLES[platform]
    } <= found
    assert {check.name for check in checks if not check.blocking} == {
        "dump_is_fresh",
        "dump_is_young_enough",
        "newest_dump_is_in_use",
        "layout_is_as_known",
    }


def test_one_platform_can_be_materialised_alone_with_its_facts(definitions: dg.Definitions, place: Path, built_world: BuiltWorld) -> None:
    shutil.copytree(built_world.dumps / "store_a", place / "dumps" / "store_a")
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(
            asset_selection=[dg.AssetKey(["landing", "store_a"]), build_staging_key("store_a")], instance=instance
        )
        event = instance.get_latest_materialization_event(build_staging_key("store_a"))
    assert result.success
    assert event is not None
    metadata = event.asset_materialization.metadata  # type: ignore[union-attr]
    assert metadata["dagster/row_count"].value > 0
    assert metadata["status"].value == "staged"
    assert "![" in metadata["rows_plot"].value
    assert {table.name for table in STAGING_TABLES} == set(metadata["rows"].value)


def labels(*rows: tuple[int, str, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES["label"].polars_schema, orient="row")


def test_table_that_breaks_its_spec_stops_the_build_and_lists_every_rule(tmp_path: Path) -> None:
    table = TABLES["label"]

    def write_the_same_label_twice(_paths: object) -> None:
        write_table(table, tmp_path / "work" / "catalog" / "label", labels((1, "a|b", 0), (1, "b", -1)))

    step = build_table_assets(TableStep("labels", (table,), (), write_the_same_label_twice))

    @dg.asset(deps=[build_table_key(table)])
    def downstream() -> None:
        raise AssertionError("a step behind a failed check ran")

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [step, downstream], resources={"catalog": CatalogResource(root=str(tmp_path))}, instance=instance, raise_on_error=False
        )
    assert not result.success
    [check] = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed, check.metadata["rows_at_fault"].value) == ("label_keeps_its_spec", False, 2)
    assert check.description == (
        "label.release_count is at least 0: 1 rows at fault, the first: label_id=1, release_count=-1; "
        '("label_id") is unique in label: 1 rows at fault, the first: label_id=1, times=2'
    )
    lines = check.metadata["rules"].value.splitlines()
    assert lines[2] == "| label.release_count is at least 0 | 1 | label_id=1, release_count=-1 |"
    assert "| label.name is never null | 0 |  |" in lines
    assert 'WHERE "release_count" < 0' in check.metadata["queries"].value


@pytest.mark.parametrize("engine", [None, Engine(PROCESSES, 1)])
def test_check_of_several_folders_counts_all_and_shows_the_first_fault(engine: Engine | None, tmp_path: Path) -> None:
    days = {"one": [(1, "a", 0)], "two": [(2, "a", -1), (3, "a", -2)], "three": [(4, "a", -3)]}
    for day, rows in days.items():
        write_table(TABLES["label"], tmp_path / day / "label", labels(*rows))
    key = dg.AssetKey("labels")

    def checks(day: str) -> list[AssetCheck]:
        return [build_spec_check(TABLES["label"], key, lambda name: tmp_path / day / name)]

    with use_engine(engine):
        [result] = run_asset_checks_over(map(checks, days), checks("unset"), tmp_path / "scratch")
    assert not result.passed
    assert result.metadata["rows_at_fault"].value == 3
    assert result.description == (
        "label.release_count is at least 0: 3 rows at fault, the first: label_id=2, release_count=-1; label_id=3, release_count=-2"
    )
    assert f"{tmp_path}/two/label" in str(result.metadata["queries"].value)
    [without] = run_asset_checks_over([], checks("unset"), tmp_path / "scratch")
    assert without.passed
