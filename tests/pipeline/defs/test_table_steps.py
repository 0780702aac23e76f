"""Tests of steps that fail inside DuckDB, run by Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import duckdb

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.defs.resources import CatalogResource
from pipeline.defs.table_steps import TableStep, build_table_assets
from pipeline.engine.pool import count_workers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from pipeline.paths import BuildPaths

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
