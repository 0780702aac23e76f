"""Tests on one simulated world, read from its dumps and linked with and without the guards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.linkage import link
from pipeline.linkage.evaluation import evaluate
from pipeline.linkage.guards import are_guards_on, disable_guards
from pipeline.paths import BuildPaths
from simulator import SimulationSettings, write_world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SETTINGS = SimulationSettings(recordings=12_000, seed=12)
GROWTH = 100


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """Return the staged recordings and artists of all platforms, and the truth."""
    root: Path = tmp_path_factory.mktemp("guards")
    write_world(SETTINGS, root / "world")
    paths = BuildPaths(root / "catalog")
    for platform in CATALOG_PLATFORMS:
        stage_dump(platform, root / "world" / platform / str(SETTINGS.dump_date), paths.staging(platform))
    tables = {
        name: pl.concat([read_table(TABLES[name], folder) for folder in paths.staged(name, CATALOG_PLATFORMS)])
        for name in ("source_recording", "source_artist")
    }
    return tables, pl.read_parquet(root / "world" / "truth" / "recording" / "*.parquet")


def mixed(staged: tuple[dict[str, pl.DataFrame], pl.DataFrame]) -> int:
    """Return the recordings that hold records of several true ones."""
    tables, truth = staged
    count = evaluate(link(tables["source_recording"], tables["source_artist"]), truth)["mixed_clusters"]
    assert isinstance(count, int)
    return count


def test_mixed_recordings_grow_a_hundredfold_without_the_guards(staged: tuple[dict[str, pl.DataFrame], pl.DataFrame]) -> None:
    """A world of this size has none or one with the guards. None counts as one, so that the comparison is meaningful."""
    kept = mixed(staged)
    with disable_guards():
        assert not are_guards_on()
        unguarded = mixed(staged)
    assert are_guards_on()
    assert kept <= 2
    assert unguarded >= GROWTH * max(1, kept)
