"""Tests of steps that Dagster runs: after a fault inside DuckDB, and in processes of their own."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import dagster as dg
import duckdb
import pytest

from catalog_store.platforms import INPUTS
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.dump_assets import choose_staging
from pipeline.defs.resources import CatalogResource
from pipeline.defs.table_steps import TableStep, build_table_assets
from pipeline.dumps.landing.landed_dumps import find_last_good
from pipeline.engine.pool import count_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.paths import BuildPaths
    from tests.conftest import BuiltWorld

FAULT = "INTERNAL Error: dict-surviving join: unexpected dictionary\n\nStack Trace:\n\nlibduckdb.so"


def materialise(catalog: Path, faults: int) -> tuple[bool, list[int]]:
    """Run a step that writes `label` and meets a fault the first times; return whether it succeeded, and the workers of each run."""
    workers: list[int] = []

    def write(paths: BuildPaths) -> Mapping[str, int]:
        workers.append(count_workers())
        if len(workers) <= faults:
            raise duckdb.InternalException(FAULT)
        return {"labels": write_table(TABLES["label"], paths.table("label"), TABLES["label"].build_empty())}

    step = TableStep("labels", (TABLES["label"],), (), write)
    resources = {"catalog": CatalogResource(root=str(catalog), memory=3_000_000_000)}
    return dg.materialize([build_table_assets(step)], resources=resources, raise_on_error=False).success, workers


def test_step_runs_again_with_one_thread_after_a_fault_inside_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("catalog_store.memory_budget.count_processors", lambda: 2)
    assert materialise(tmp_path, faults=1) == (True, [2, 1])
    assert "labels: runs again with one thread and the memory of all processes: INTERNAL Error: dict-surviving join" in caplog.text
    assert "Stack Trace" not in caplog.text


def test_second_fault_fails_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog_store.memory_budget.count_processors", lambda: 2)
    assert materialise(tmp_path, faults=2) == (False, [2, 1])
    assert not (tmp_path / "work" / "tables" / "label").exists()


def write_label_and_process(paths: BuildPaths) -> Mapping[str, int]:
    write_table(TABLES["label"], paths.table("label"), TABLES["label"].build_empty())
    return {"process": os.getpid()}


def copy_by_pickle(function: Callable[..., object]) -> object:
    return pickle.loads(pickle.dumps(function))  # noqa: S301 - its own bytes


@pytest.mark.parametrize(("bytes_from", "stage_at_once", "is_own"), [(0, 1, True), (0, 2, False), (1, 1, False)])
def test_step_of_a_large_catalog_has_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_from: int, stage_at_once: int, *, is_own: bool
) -> None:
    monkeypatch.setattr("pipeline.defs.resources.LARGE_DUMPS_BYTES", bytes_from)
    step = TableStep("labels", (TABLES["label"],), (), write_label_and_process)
    resources = {"catalog": CatalogResource(root=str(tmp_path), stage_at_once=stage_at_once)}
    done = dg.materialize([build_table_assets(step)], resources=resources)
    metadata = done.asset_materializations_for_node("labels")[0].metadata
    assert (metadata["process"].value != os.getpid()) is is_own


def test_newest_landed_dumps_make_a_catalog_large(built_world: BuiltWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = CatalogResource(root=str(built_world.catalog))
    dumps = [find_last_good(built_world.catalog / "landing" / platform) for platform in INPUTS]
    size = sum(file.stat().st_size for dump in dumps if dump for file in dump.rglob("*") if file.is_file())
    assert size
    for least, is_large in ((size, True), (size + 1, False)):
        monkeypatch.setattr("pipeline.defs.resources.LARGE_DUMPS_BYTES", least)
        assert catalog.is_large is is_large


def test_every_step_can_run_in_another_process(built_world: BuiltWorld) -> None:
    for step in (*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()):
        assert copy_by_pickle(step.run) is step.run
    catalog = CatalogResource(root=str(built_world.catalog), dumps=str(built_world.dumps))
    for platform in INPUTS:
        assert callable(copy_by_pickle(choose_staging(catalog, platform)))
