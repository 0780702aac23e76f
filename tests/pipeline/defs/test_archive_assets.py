"""Back-fills over real folders: a date fills its own partition, and tonight's dump and staging stay as they are."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from pipeline.definitions import build_definitions
from pipeline.defs.archive_assets import name_partitions
from pipeline.defs.dump_assets import build_landing_key, build_staging_key
from pipeline.defs.dump_sensors import name_sensor
from pipeline.defs.resources import CatalogResource
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import BuiltWorld

OLD, NEW = "2026-01-05", "2026-01-12"
KEYS = [dg.AssetKey([layer, "store_a"]) for layer in ("archived_dump", "archived_staging")]


class Archive:
    """The definitions over an upstream with two dumps of store_a."""

    def __init__(self, root: Path, dumps: Path, instance: dg.DagsterInstance) -> None:
        self.paths, self.dumps, self.instance = BuildPaths(root), dumps, instance
        self.resource = CatalogResource(root=str(root), dumps=str(dumps))
        self.definitions = build_definitions({"catalog": self.resource})

    def look(self) -> list[str]:
        """Evaluate the sensor, and return the dates that it adds."""
        sensor = self.definitions.resolve_sensor_def(name_sensor("store_a"))
        with dg.build_sensor_context(instance=self.instance, resources={"catalog": self.resource}) as context:
            tick = sensor.evaluate_tick(context)
        added = [day for request in tick.dynamic_partitions_requests or () for day in request.partition_keys]
        self.instance.add_dynamic_partitions(name_partitions("store_a"), added)
        return added

    def fill(self, day: str) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(asset_selection=KEYS, instance=self.instance, partition_key=day, raise_on_error=False)


@pytest.fixture
def archive(built_world: BuiltWorld, tmp_path: Path) -> Iterator[Archive]:
    [delivered] = [folder for folder in (built_world.dumps / "store_a").iterdir() if folder.is_dir()]
    for day in (OLD, NEW):
        shutil.copytree(delivered, tmp_path / "dumps" / "store_a" / day)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Archive(tmp_path / "catalog", tmp_path / "dumps", instance)


def test_a_back_fill_fills_its_own_partition_and_never_tonights_input(archive: Archive) -> None:
    assert archive.look() == [OLD, NEW]
    assert archive.look() == []
    assert archive.fill(OLD).success
    paths = archive.paths
    assert [folder.name for folder in paths.archived_dumps("store_a").iterdir() if folder.is_dir()] == [OLD]
    assert (paths.archived_staging("store_a", OLD) / "source_recording").is_dir()
    assert not paths.landing("store_a").exists()
    assert not paths.staging("store_a").exists()
    filled = archive.instance.get_materialized_partitions(KEYS[1])
    assert filled == {OLD}
    # The ordinary operation goes on with the newest dump.
    job = archive.definitions.resolve_implicit_global_asset_job_def()
    tonight = [build_landing_key("store_a"), build_staging_key("store_a")]
    assert job.execute_in_process(asset_selection=tonight, instance=archive.instance).success
    assert [folder.name for folder in paths.landing("store_a").iterdir() if folder.is_dir()] == [NEW]
    assert archive.instance.get_materialized_partitions(KEYS[1]) == {OLD}


def test_a_broken_dump_fails_its_partition_alone_and_is_filled_when_mended(archive: Archive) -> None:
    archive.look()
    whole = {path: path.read_bytes() for path in (archive.dumps / "store_a" / OLD).rglob("*") if path.is_file()}
    for path in whole:
        path.write_bytes(b"\x1f\x8bcut")
    failed = archive.fill(OLD)
    assert not failed.success
    [failure] = [event for event in failed.all_events if event.is_step_failure]
    assert "store_a, dump of 2026-01-05" in str(failure.step_failure_data.user_failure_data.description)
    assert not archive.paths.archived_staging("store_a", OLD).exists()
    assert archive.fill(NEW).success
    for path, content in whole.items():
        path.write_bytes(content)
    assert archive.fill(OLD).success
    assert archive.instance.get_materialized_partitions(KEYS[1]) == {OLD, NEW}


def test_a_date_that_upstream_lacks_is_refused_with_the_dates_that_it_shows(archive: Archive) -> None:
    archive.instance.add_dynamic_partitions(name_partitions("store_a"), ["2025-12-31"])
    failed = archive.fill("2025-12-31")
    [failure] = [event for event in failed.all_events if event.is_step_failure]
    assert f"shows {OLD}, {NEW}" in str(failure.step_failure_data.user_failure_data.description)


def test_a_date_far_in_the_future_is_not_offered_and_its_back_fill_says_why(archive: Archive) -> None:
    (archive.dumps / "store_a" / OLD).rename(archive.dumps / "store_a" / "2062-01-05")
    assert archive.look() == [NEW]
    archive.instance.add_dynamic_partitions(name_partitions("store_a"), ["2062-01-05"])
    [failure] = [event for event in archive.fill("2062-01-05").all_events if event.is_step_failure]
    assert f"shows {NEW}; far in the future, so not read: 2062-01-05/" in str(failure.step_failure_data.user_failure_data.description)
