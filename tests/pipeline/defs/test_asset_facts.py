from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from catalog_store.platforms import PLATFORMS
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, STAGED_TABLES, TABLES
from pipeline.definitions import build_definitions
from pipeline.defs.column_lineage import find_origin
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
    assert traced > 1000


def test_lineage_points_one_way(definitions: dg.Definitions, specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    graph = definitions.resolve_asset_graph()
    for key, spec in specs.items():
        lineage = spec.metadata.get("dagster/column_lineage")
        made_before = {one for before in (key, *graph.get_ancestor_asset_keys(key)) for one in graph.get(before).execution_set_asset_keys}
        for column, deps in lineage.deps_by_column.items() if lineage else ():
            assert {dep.asset_key for dep in deps} <= made_before, f"{key.to_user_string()}.{column}"


COMPUTED = {
    *("kind", "reason", "position", "level", "type", "role", "rule_id", "vocabulary", "parent", "name", "description", "main_name"),
    *("is_primary", "is_remixer", "is_representative", "entity_kind", "fingerprint_key", "topic", "value", "old_id", "new_id"),
    *(f"{field}_reason" for field in ("title", "artists", "duration", "isrc", "release_date", "popularity", "variant")),
}
"""Names of published columns that no source gives: verdicts, orders, and the project's own tree of genres."""


def test_every_published_column_has_an_origin_or_is_computed_by_the_build(specs: Mapping[dg.AssetKey, dg.AssetSpec]) -> None:
    untraced = {
        f"{table.name}.{column.name}"
        for table in CATALOG_TABLES
        for column in table.columns
        if column.name not in specs[build_table_key(table)].metadata["dagster/column_lineage"].deps_by_column
        and column.name not in COMPUTED
        # Ids and counts of the catalog's own entities.
        and not column.name.endswith(("_id", "_count"))
    }
    assert untraced == set()


def test_origins_are_columns_of_tables() -> None:
    origins = [origin for table in (*LINKAGE_TABLES, *CATALOG_TABLES) for column in table.columns if (origin := find_origin(table, column))]
    for origin in origins:
        name, _, column = origin.partition(".")
        assert column in TABLES[name].column_names
        assert TABLES[name].layer != "staging" or any(TABLES[name] in tables for tables in STAGED_TABLES.values())
    assert len(origins) > 150


@pytest.mark.parametrize(
    ("column", "origin"),
    [
        ("track.isrc", "recording.isrc"),
        ("source_reject.excerpt", "reject.excerpt"),
        ("recording_provenance.duration_platform", "source_recording.platform"),
        ("recording_provenance.duration_agreed", "source_recording.duration_ms"),
        ("release_provenance.gtin_external_id", "source_release.release_id"),
        ("release.release_date_precision", "source_release.release_date_precision"),
        ("recording_fingerprint.duration_seconds", "source_fingerprint.duration_seconds"),
        ("recording_genre.position", ""),
        ("recording.recording_id", ""),
        ("release.release_id", ""),
        ("recording_source.release_id", "source_recording.release_id"),
    ],
)
def test_origin_follows_from_the_name_of_a_column(column: str, origin: str) -> None:
    table, _, name = column.partition(".")
    assert find_origin(TABLES[table], next(one for one in TABLES[table].columns if one.name == name)) == origin


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
