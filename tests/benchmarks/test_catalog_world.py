"""The world on which searches and lookups are measured has the columns of a catalog and publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_store import open_catalog
from tests.conftest import run_module

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_catalog_world_publishes_a_catalog_that_verifies(tmp_path: Path) -> None:
    run_module("benchmarks.catalog_world", "--recordings", "300", tmp_path / "world")
    run_module("pipeline", "verify", "--catalog", tmp_path / "world")
    with open_catalog(tmp_path / "world") as catalog:
        assert catalog.read_track_bodies([1])
