"""Tests of the nights after the first build: no changes, a catalog that shrank, a rollback."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.commands import run_pipeline
from tests.rebuild.nights import copy_of, published_copy, table_hashes

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from tests.conftest import BuiltWorld


@pytest.fixture(scope="module")
def second_night(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CompletedProcess[str]]:
    """Build once more from the same dumps; return the catalog and the output of the build."""
    dumps, catalog = copy_of(built_world, tmp_path_factory.mktemp("second"))
    return catalog, run_pipeline("build", "--dumps", dumps, "--catalog", catalog)


@pytest.mark.slow
def test_a_second_build_keeps_every_id_and_every_byte(built_world: BuiltWorld, second_night: tuple[Path, CompletedProcess[str]]) -> None:
    catalog, said = second_night
    assert "unchanged" in said.stderr
    assert table_hashes(catalog) == table_hashes(built_world.catalog)
    assert len(list((catalog / "snapshots").iterdir())) == 2


@pytest.mark.slow
def test_rollback_makes_the_earlier_snapshot_live_again(second_night: tuple[Path, CompletedProcess[str]], tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(second_night[0], catalog, symlinks=True)
    listed = [json.loads(line) for line in run_pipeline("snapshots", "--catalog", catalog).stdout.splitlines()]
    assert [snapshot["is_current"] for snapshot in listed] == [False, True]
    run_pipeline("rollback", "--catalog", catalog, "--to", listed[0]["id"])
    assert (catalog / "current").resolve().name == listed[0]["id"]
    refused = run_pipeline("rollback", "--catalog", catalog, "--to", "nonsense", check=False)
    assert refused.returncode == 1
    assert "nonsense" in refused.stderr


@pytest.fixture
def shrunken(built_world: BuiltWorld, tmp_path: Path) -> tuple[Path, Path]:
    """Return a published catalog, and dumps in which only one of six platforms delivers."""
    shutil.copytree(built_world.dumps / "store_a", tmp_path / "dumps" / "store_a")
    return published_copy(built_world, tmp_path), tmp_path / "dumps"


@pytest.mark.slow
def test_a_catalog_that_shrank_is_not_published(shrunken: tuple[Path, Path]) -> None:
    catalog, dumps = shrunken
    live = (catalog / "current").readlink()
    night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog, check=False)
    assert night.returncode == 1
    assert "catalog_did_not_shrink" in night.stderr
    assert (catalog / "current").readlink() == live


@pytest.mark.long
def test_catalog_that_shrank_is_published_if_the_operator_allows_it(shrunken: tuple[Path, Path]) -> None:
    catalog, dumps = shrunken
    live = (catalog / "current").readlink()
    run_pipeline("build", "--dumps", dumps, "--catalog", catalog, CATALOG_LARGEST_SHRINK="1")
    assert (catalog / "current").readlink() != live
