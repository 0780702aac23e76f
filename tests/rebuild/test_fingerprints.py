"""Tests of the way from the fingerprint database to the published index: answers, and the cost of one more day."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import dagster as dg
import numpy as np
import polars as pl
import pytest

from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import Matcher
from catalog_store.snapshot import read_manifest, verify
from pipeline.definitions import build_definitions
from pipeline.defs.resources import NIGHTLY, CatalogResource
from pipeline.defs.snapshot_assets import RECOGNITION
from simulator import SimulationSettings, write_world
from simulator.fingerprint_items import copy_items
from tests.commands import run_pipeline
from tests.conftest import WORLD_RECORDINGS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow


def chosen(catalog: Path, name: str = "work/catalog") -> pl.DataFrame:
    rows = pl.read_parquet(catalog / name / "recording_fingerprint" / "*.parquet")
    items = pl.read_parquet(catalog / "work/staging/fingerprints/*/source_fingerprint/*.parquet")
    return rows.join(items.select("fingerprint_key", "items"), on="fingerprint_key")


def test_fingerprints_lead_to_the_recordings_they_are_of(built_world: BuiltWorld) -> None:
    answer = json.loads(run_pipeline("evaluate", "--catalog", built_world.catalog, "--truth", built_world.dumps).stdout)
    assert answer["fingerprints"]["fingerprints"] > 50
    assert answer["fingerprints"]["precision"] > 0.97
    assert answer["fingerprints"]["recall"] > 0.95


def test_the_published_index_answers_clips_of_all_its_fingerprints(built_world: BuiltWorld) -> None:
    folder = (built_world.catalog / "current").resolve()
    matcher = Matcher(Index.open(folder / "serving" / "recognition"))
    rows = chosen(built_world.catalog, "current/tables")
    for recording, items in rows.filter(pl.col("items").list.len() >= 400).select("recording_id", "items").iter_rows():
        clip = copy_items(np.array(items[150:380], dtype=np.uint32), np.random.default_rng(recording))
        assert recording in {match.recording_id for match in matcher.match([clip]).matches}
    assert any(file.path.startswith("serving/recognition/base/") for file in read_manifest(folder).serving)
    verify(folder, contents="serving/recognition")


@pytest.fixture(scope="module")
def next_day(built_world: BuiltWorld, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """Build the same world a day later, because linkage reads fingerprints too; return the catalog root and the output of the index."""
    base = tmp_path_factory.mktemp("next_day")
    settings = SimulationSettings(recordings=WORLD_RECORDINGS, seed=7, fingerprint_coverage=0.7, fingerprint_days=5)
    write_world(settings, base / "dumps")
    shutil.copytree(built_world.catalog, base / "catalog", symlinks=True)
    resource = CatalogResource(root=str(base / "catalog"), dumps=str(base / "dumps"))
    job = build_definitions({"catalog": resource}).resolve_job_def(NIGHTLY)
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance)
        assert result.success
        event = instance.get_latest_materialization_event(RECOGNITION)
    assert event is not None
    assert event.asset_materialization is not None
    return base / "catalog", {name: value.value for name, value in event.asset_materialization.metadata.items()}


def test_a_night_reads_the_new_day_alone(built_world: BuiltWorld, next_day: tuple[Path, dict[str, object]]) -> None:
    staged = {path.name for path in (next_day[0] / "work/staging/fingerprints").iterdir()}
    before = {path.name for path in (built_world.catalog / "work/staging/fingerprints").iterdir()}
    assert staged - before == {"2024-12-07"}


def test_night_indexes_only_new_fingerprints(built_world: BuiltWorld, next_day: tuple[Path, dict[str, object]]) -> None:
    catalog, said = next_day
    old, new = chosen(built_world.catalog), chosen(catalog)
    fresh = new.join(old, on="fingerprint_key", how="anti")
    assert said["indexed_anew"] == fresh.height > 0
    assert said["segments_taken_over"] == 1
    base = "recognition/base/posting_words.npy"
    assert (catalog / "work" / base).samefile((catalog / "current").resolve() / "serving" / base)
    matcher = Matcher(Index.open(catalog / "work" / "recognition"))
    for recording, items in fresh.filter(pl.col("items").list.len() >= 400).select("recording_id", "items").iter_rows():
        clip = copy_items(np.array(items[150:380], dtype=np.uint32), np.random.default_rng(recording))
        assert recording in {match.recording_id for match in matcher.match([clip]).matches}
