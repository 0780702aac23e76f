"""Tests of a first build as an operator runs it: from dumps to a published catalog."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from tests.commands import run_pipeline
from tests.rebuild.broken_dumps import truncate, without_checksums
from tests.rebuild.nights import newest, table_hashes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


@pytest.mark.slow
def test_the_same_input_gives_byte_identical_tables_in_another_folder(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps of 2026 [whole] *"
    dumps.symlink_to(built_world.dumps)
    run_pipeline("build", "--dumps", dumps, "--catalog", tmp_path / "catalog")
    first, second = table_hashes(built_world.catalog), table_hashes(tmp_path / "catalog")
    assert len(first) > 20
    assert first == second


def test_linkage_agrees_with_the_truth(built_world: BuiltWorld) -> None:
    answer = json.loads(run_pipeline("evaluate", "--catalog", built_world.catalog, "--truth", built_world.dumps).stdout)
    assert answer["precision"] > 0.99
    assert answer["recall"] > 0.9
    assert answer["mixed_clusters"] <= 5


def test_every_record_read_was_staged_or_rejected(built_world: BuiltWorld) -> None:
    intake = pl.read_parquet(built_world.catalog / "work/staging/*/intake/*.parquet")
    assert intake["platform"].n_unique() == 7
    assert intake.filter(pl.col("rows_read") != pl.col("rows_staged") + pl.col("rows_rejected")).is_empty()
    assert intake["rows_rejected"].sum() > 0


def test_two_recordings_never_share_an_isrc(built_world: BuiltWorld) -> None:
    codes = pl.read_parquet(built_world.catalog / "current/tables/recording_isrc/*.parquet")
    assert codes["isrc"].is_unique().all()
    assert codes.height > 100


def test_a_first_build_on_a_broken_dump_fails_with_the_file_named_and_publishes_nothing(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    shutil.copytree(built_world.dumps / "catalog_a", dumps / "catalog_a")
    without_checksums(newest(dumps, "catalog_a"))
    truncate(newest(dumps, "catalog_a"))
    night = run_pipeline("build", "--dumps", dumps, "--catalog", tmp_path / "catalog", check=False)
    assert night.returncode == 1
    assert "releases.xml.gz" in night.stderr
    assert not (tmp_path / "catalog" / "current").exists()


def test_the_analyst_file_answers_from_a_copied_snapshot(built_world: BuiltWorld, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree((built_world.catalog / "current").resolve(), copied)
    with duckdb.connect(str(copied / "catalog.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT count(*) FROM recording").fetchone()
    assert rows is not None
    assert rows[0] > 100
