"""The lake as the last step of a night: a version where the lake answers, a warning and an alert where it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from catalog_store.lake import INTERPRETER, Lake, list_builds
from catalog_store.published_snapshots import read_live_snapshot
from pipeline.alerts import Receivers
from pipeline.definitions import build_definitions
from pipeline.defs.lake_assets import COMMITTED, LAKE
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.snapshot_assets import SNAPSHOT
from tests.pipeline.defs.test_alert_sensors import run_and_evaluate
from tests.rebuild.nights import published_copy
from tests.webhook_delivery.receiver import receiving

if TYPE_CHECKING:
    from tests.conftest import BuiltWorld


def name_lake(root: Path) -> CatalogResource:
    return CatalogResource(root=str(root), lake=f"sqlite:{root / 'lake' / 'lake.sqlite'}", lake_data=f"{root / 'lake' / 'data'}/")


@pytest.mark.slow
def test_step_adds_the_live_snapshot_once(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = published_copy(built_world, tmp_path)
    resource = name_lake(catalog)
    job = build_definitions({"catalog": resource}).resolve_implicit_global_asset_job_def()
    for _ in range(2):
        result = job.execute_in_process(asset_selection=[LAKE])
        assert [check.passed for check in result.get_asset_check_evaluations()] == [True]
    [build] = list_builds(Lake.find(catalog, resource.lake, resource.lake_data))["builds"]
    assert build["build"] == read_live_snapshot(catalog).id


def test_failing_lake_warns_and_the_run_succeeds(built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = published_copy(built_world, tmp_path)
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "absent"))
    with receiving() as receiver, dg.DagsterInstance.ephemeral() as instance:
        definitions = build_definitions({"catalog": name_lake(catalog)}, receivers=Receivers(webhook=receiver.url))
        run_and_evaluate(definitions, instance, "alert_on_warnings", definitions.resolve_implicit_global_asset_job_def(), [LAKE])
        [received] = receiver.received
    alert = json.loads(received.body)
    [problem] = alert["problems"]
    assert problem.startswith(f"lake/version {COMMITTED}: no interpreter with DuckLake at ")
    assert read_live_snapshot(catalog).id == read_live_snapshot(built_world.catalog).id


def test_step_follows_publishing_where_a_lake_is_named() -> None:
    without = build_definitions({"catalog": CatalogResource(root="unset")})
    assert LAKE not in without.resolve_asset_graph().get_all_asset_keys()
    with_lake = build_definitions({"catalog": name_lake(Path("unset"))})
    assert LAKE in with_lake.resolve_job_def(NIGHTLY).asset_layer.selected_asset_keys
    assert with_lake.resolve_asset_graph().get(LAKE).parent_keys == {SNAPSHOT}
    with pytest.raises(ValueError, match="set both, or none"):
        build_definitions({"catalog": CatalogResource(root="unset", lake="sqlite:x")})
