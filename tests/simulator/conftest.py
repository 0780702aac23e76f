"""A small, very dirty world for all tests of the simulator: two blocks, both forms of every dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from simulator import SimulationSettings, write_world

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-01"


@pytest.fixture(scope="session")
def world_settings() -> SimulationSettings:
    return SimulationSettings(
        recordings=2_400, seed=7, recordings_per_block=1_200, alternative_forms=True, malformed_rows=0.01, fingerprint_coverage=0.5
    )


@pytest.fixture(scope="session")
def world(world_settings: SimulationSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("world") / "out"
    write_world(world_settings, out)
    return out


@pytest.fixture(scope="session")
def truth(world: Path) -> pl.DataFrame:
    return pl.read_parquet(world / "truth/recording/*.parquet")


@pytest.fixture(scope="session")
def true_ids(truth: pl.DataFrame) -> dict[str, set[str]]:
    return {str(platform): set(rows["external_id"]) for (platform,), rows in truth.group_by("platform")}
