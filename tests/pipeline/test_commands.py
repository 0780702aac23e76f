"""What a person sees who makes a mistake on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import run_module

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_without_platforms_is_refused_by_name(tmp_path: Path) -> None:
    result = run_module("pipeline", "build", "--dumps", tmp_path, "--catalog", tmp_path / "catalog", check=False)
    assert result.returncode == 1
    assert f"{tmp_path}: no folder named after a platform" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_sources_file_says_how_to_make_one(tmp_path: Path) -> None:
    result = run_module("pipeline", "build", "--sources", tmp_path / "no.yaml", "--catalog", tmp_path / "catalog", check=False)
    assert result.returncode == 1
    assert "sources.example.yaml" in result.stderr
    assert "Traceback" not in result.stderr


def test_rolling_back_where_nothing_is_published_is_an_error(tmp_path: Path) -> None:
    result = run_module("pipeline", "rollback", "--catalog", tmp_path, "--to", "x", check=False)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr


def test_serving_where_nothing_is_published_is_an_error(tmp_path: Path) -> None:
    result = run_module("catalog_api", "serve", "--catalog", tmp_path, check=False)
    assert result.returncode == 1
    assert "no published catalog" in result.stderr


@pytest.mark.parametrize("module", ["pipeline", "catalog_api", "account_store", "genre_rules"])
def test_every_command_explains_itself(module: str) -> None:
    assert "usage" in run_module(module, "--help").stdout


def test_evaluating_without_truth_says_where_it_was_looked_for(tmp_path: Path) -> None:
    result = run_module("pipeline", "evaluate", "--catalog", tmp_path, "--truth", tmp_path / "nowhere", check=False)
    assert result.returncode == 1
    assert str(tmp_path) in result.stderr
    assert "Traceback" not in result.stderr
