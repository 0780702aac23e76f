"""Tests of what `run_build` reports after a step failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.engine.duckdb_session import MemoryShortageError
from pipeline.linkage import stages
from pipeline.run import BuildFailedError, run_build
from pipeline.settings import Settings
from tests.rebuild.nights import copy_of

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths
    from tests.conftest import BuiltWorld


@pytest.fixture
def night(built_world: BuiltWorld, tmp_path: Path) -> Settings:
    dumps, catalog = copy_of(built_world, tmp_path)
    return Settings(root=catalog, dumps=dumps)


def test_failed_step_is_reported_with_its_remedy_and_without_the_causes(night: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_short(_: BuildPaths) -> None:
        try:
            int("far below")
        except ValueError as error:
            raise MemoryShortageError("atoms needs more than 1GB: raise CATALOG_MEMORY") from error

    monkeypatch.setattr(stages, "write_atoms", fall_short)
    with pytest.raises(BuildFailedError) as failed:
        run_build(night, relink=True)
    assert "step atoms failed: " in str(failed.value)
    assert str(failed.value).endswith("atoms needs more than 1GB: raise CATALOG_MEMORY")


def test_full_disk_is_reported_with_its_place_and_the_remedy(night: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "write_atoms", lambda _: Path("/dev/full").write_bytes(b"x"))
    with pytest.raises(BuildFailedError) as failed:
        run_build(night, relink=True)
    assert f"step atoms failed: the disk of {night.root} is full ([Errno 28] No space left on device)" in str(failed.value)
    assert str(failed.value).endswith("bytes are free: make room, then build again, which goes on behind the finished steps")
