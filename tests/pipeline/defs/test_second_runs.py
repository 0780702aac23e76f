"""Tests of work that runs again after a real shortage of memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import dagster as dg
import duckdb
import pytest

from catalog_store.lake import INTERPRETER, Lake, list_builds
from catalog_store.memory_budget import MemoryBudget, get_budget, use_budget
from catalog_store.tables.files import count_rows
from pipeline.definitions import build_definitions
from pipeline.defs.dump_assets import build_landing_key, build_staging_key
from pipeline.defs.resources import CatalogResource
from pipeline.defs.second_runs import run_with_second_try
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.engine.duckdb_session import MemoryShortageError, open_duckdb
from pipeline.engine.pool import count_workers

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.intake.newest_dump import Intake
    from tests.conftest import BuiltWorld

# Stands for the interpreter of the lake: DuckDB runs out of memory unless it has one thread.
WRITER = """#!/bin/sh
cat >> {jobs}
echo >> {jobs}
if tail -1 {jobs} | grep -q '"threads": 1'; then echo '{{"builds": []}}'; else echo '{said}' >&2; exit 1; fi
"""
# DuckDB cannot spill a list while it grows: these three need 10 to 20 MB.
LISTS = "SELECT list(i) AS numbers FROM range(1_000_000) r(i) GROUP BY i % 3"
NARROW, HOPELESS = (MemoryBudget(total * 1_000_000, processes=2) for total in (40, 4))


def count_lists(spill: Path) -> int:
    with open_duckdb(spill) as connection:
        return len(connection.sql(LISTS).fetchall())


def test_work_that_runs_out_of_memory_runs_again_with_that_of_all_processes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    workers = []

    def work() -> int:
        workers.append(count_workers())
        return count_lists(tmp_path)

    with use_budget(NARROW):
        assert run_with_second_try("gate", CatalogResource(root=str(tmp_path)), work) == 3
    assert workers == [2, 1]
    assert "gate: runs again with one thread and the memory of all processes: Out of Memory Error: " in caplog.text


def test_shortage_behind_another_error_counts_as_well(tmp_path: Path) -> None:
    workers = []

    def work() -> int:
        workers.append(count_workers())
        try:
            return count_lists(tmp_path)
        except duckdb.OutOfMemoryException as error:
            raise ValueError("the rows of label cannot be counted") from error

    with use_budget(NARROW):
        assert run_with_second_try("gate", CatalogResource(root=str(tmp_path)), work) == 3
    with use_budget(HOPELESS), pytest.raises(MemoryShortageError, match=r"gate needs more than 2000000B"):
        run_with_second_try("gate", CatalogResource(root=str(tmp_path)), work)
    assert workers == [2, 1, 2, 1]


def test_other_errors_are_not_tried_again(tmp_path: Path) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        duckdb.sql("SELECT 'Out of Memory Error'::INT").fetchall()

    with pytest.raises(duckdb.ConversionException):
        run_with_second_try("gate", CatalogResource(root=str(tmp_path)), work)
    assert len(tries) == 1


def test_second_shortage_names_the_setting(tmp_path: Path) -> None:
    with use_budget(HOPELESS), pytest.raises(MemoryShortageError, match=r"gate needs more than 2000000B, .*: raise CATALOG_MEMORY"):
        run_with_second_try("gate", CatalogResource(root=str(tmp_path)), lambda: count_lists(tmp_path))


@pytest.mark.parametrize(
    "said",
    [
        "Out of Memory Error: no room",
        "TransactionContext Error: Failed to commit: Failed to flush the rows of label: Out of Memory Error: no room",
        "FATAL Error: Failed: database has been invalidated. Original error: INTERNAL Error: unlucky",
    ],
)
def test_lake_that_runs_out_of_memory_runs_again_with_that_of_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    jobs, writer = tmp_path / "jobs", tmp_path / "writer"
    writer.write_text(WRITER.format(jobs=jobs, said=said), encoding="ascii")
    writer.chmod(0o700)
    monkeypatch.setenv(INTERPRETER, str(writer))
    (tmp_path / "lake.sqlite").touch()
    lake = Lake.find(tmp_path, f"sqlite:{tmp_path / 'lake.sqlite'}", f"{tmp_path / 'data'}/")
    with use_budget(NARROW):
        assert run_with_second_try("lake", CatalogResource(root=str(tmp_path)), lambda: list_builds(lake)) == {"builds": []}
    limits = [json.loads(line)["memory_limit"] for line in jobs.read_text(encoding="ascii").splitlines()]
    assert limits == [NARROW.database_limit, NARROW.lone_database_limit]


def test_staging_that_runs_out_of_memory_runs_again_with_that_of_all_processes(
    built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[MemoryBudget] = []

    def stage_short_of_memory(*details: Any) -> Intake:  # noqa: ANN401 - as `stage_newest` takes them
        budgets.append(get_budget())
        if len(budgets) == 1:
            with use_budget(HOPELESS):
                count_lists(tmp_path / "spill")
        return stage_newest(*details)

    monkeypatch.setattr("pipeline.defs.dump_assets.stage_newest", stage_short_of_memory)
    catalog = CatalogResource(root=str(tmp_path / "catalog"), dumps=str(built_world.dumps))
    keys = [build_landing_key("store_a"), build_staging_key("store_a")]
    job = build_definitions({"catalog": catalog}).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        assert job.execute_in_process(asset_selection=keys, instance=instance).success
    assert budgets == [budgets[0], MemoryBudget(budgets[0].total_bytes)]
    assert count_rows(*catalog.paths.staged("source_recording", ("store_a",))) > 0
