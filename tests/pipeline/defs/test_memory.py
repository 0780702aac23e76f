from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.memory_budget import MemoryBudget, get_budget
from catalog_store.tables.files import list_parts
from pipeline.defs.resources import CatalogResource
from pipeline.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import BuiltWorld


def test_step_works_within_the_memory_that_the_operator_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_MEMORY", "1GB")
    monkeypatch.setenv("CATALOG_ROOT", str(tmp_path))
    with CatalogResource.of(Settings.from_environment()).claim_for_step():
        assert get_budget() == MemoryBudget(1_000_000_000, processes=1)
    assert get_budget() == MemoryBudget.of_catalog(0)


def test_default_memory_follows_the_recordings_of_the_last_build(
    built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.defs.resources.count_rows", lambda folder: 50_000_000 if list_parts(folder) else 0)
    assert CatalogResource(root=str(built_world.catalog)).memory_budget == MemoryBudget.of_catalog(50_000_000)
    assert CatalogResource(root=str(tmp_path)).memory_budget == MemoryBudget.of_catalog(0)
