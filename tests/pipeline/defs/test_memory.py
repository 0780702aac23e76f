from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.memory_budget import MemoryBudget, get_budget
from catalog_store.published_snapshots import read_live_snapshot
from pipeline.defs.resources import CatalogResource
from pipeline.linkage import stages
from pipeline.linkage.mapped_atoms import open_tonight
from pipeline.paths import BuildPaths
from pipeline.settings import Settings
from tests.pipeline.linkage.test_stages import stage
from tests.pipeline.linkage.worlds import made_up_world
from tests.rebuild.nights import published_copy

if TYPE_CHECKING:
    import pytest

    from tests.conftest import BuiltWorld


def test_step_works_within_the_memory_that_the_operator_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_MEMORY", "1GB")
    monkeypatch.setenv("CATALOG_ROOT", str(tmp_path))
    with CatalogResource.of(Settings.from_environment()).claim_for_step():
        assert get_budget() == MemoryBudget(1_000_000_000, processes=1)
    assert get_budget() == MemoryBudget.of_catalog(0)


def test_default_memory_follows_the_recordings_of_the_live_snapshot(built_world: BuiltWorld, tmp_path: Path) -> None:
    live = read_live_snapshot(built_world.catalog)
    recordings = live.manifest.tables["recording"].rows
    assert recordings > 100
    assert CatalogResource(root=str(built_world.catalog)).memory_budget == MemoryBudget.of_catalog(recordings)
    assert CatalogResource(root=str(tmp_path)).memory_budget == MemoryBudget.of_catalog(0)


def test_torn_table_of_the_work_folder_changes_no_memory(built_world: BuiltWorld, tmp_path: Path) -> None:
    catalog = published_copy(built_world, tmp_path)
    expected = CatalogResource(root=str(catalog)).memory_budget
    (catalog / "work" / "catalog" / "recording").mkdir(parents=True)
    (catalog / "work" / "catalog" / "recording" / "part-00000.parquet").write_bytes(bytes(1000))
    assert CatalogResource(root=str(catalog)).memory_budget == expected


def test_files_that_a_step_maps_are_unmapped_at_its_end(tmp_path: Path) -> None:
    def list_mapped() -> list[str]:
        return [line for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line]

    paths = stage(BuildPaths(tmp_path), made_up_world(seed=5, songs=3)[0])
    with CatalogResource(root=str(tmp_path)).claim_for_step():
        stages.write_atoms(paths)
        assert open_tonight(paths).read_rows("atom", ["atom_id"]).height
        assert list_mapped()
    assert not list_mapped()
