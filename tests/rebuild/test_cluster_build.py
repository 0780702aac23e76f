"""Builds on an engine that speaks Spark's protocol, and by processes, give the tables of a build that keeps small work in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.run import run_build
from pipeline.settings import Settings
from tests.conftest import run_module
from tests.pipeline.engine.sail import start_sail
from tests.rebuild.nights import table_hashes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


@pytest.mark.slow  # a minute; test_spark.py runs the steps alone
def test_a_cluster_builds_the_tables_of_the_shared_world(built_world: BuiltWorld, tmp_path: Path) -> None:
    with start_sail(tmp_path / "log") as url:
        run_build(Settings(root=tmp_path / "catalog", dumps=built_world.dumps, engine=url))
    assert "creating session" in (tmp_path / "log").read_text(encoding="utf-8")
    assert table_hashes(tmp_path / "catalog") == table_hashes(built_world.catalog)
    assert not list((tmp_path / "catalog").rglob("*.pending"))


@pytest.mark.slow
def test_a_cluster_and_processes_build_the_same_tables(tmp_path: Path) -> None:
    world, here, there, beside = (tmp_path / name for name in ("world", "here", "there", "beside"))
    run_module("pipeline", "simulate", "--recordings", "20000", "--seed", "5", "--fingerprints", "0.1", "--out", world)
    run_module("pipeline", "build", "--dumps", world, "--catalog", here)
    with start_sail(tmp_path / "log") as url:
        run_module("pipeline", "build", "--dumps", world, "--catalog", there, CATALOG_ENGINE=url, CATALOG_ENGINE_TASKS="2")
    assert "creating session" in (tmp_path / "log").read_text(encoding="utf-8")
    run_module("pipeline", "build", "--dumps", world, "--catalog", beside, CATALOG_ENGINE="processes", CATALOG_ENGINE_TASKS="2")
    assert table_hashes(there) == table_hashes(beside) == table_hashes(here)
