"""Sensors over real folders: a new dump is noticed once it is whole, landed by the run they ask for, and followed by the rest."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from catalog_store.platforms import INPUTS
from catalog_store.tables import TABLES
from pipeline.definitions import build_definitions
from pipeline.defs.dead_run_sensor import SENSOR as DEAD_RUN_SENSOR
from pipeline.defs.dump_assets import YOUNG, build_landing_key, build_staging_key
from pipeline.defs.dump_sensors import REBUILD, name_sensor
from pipeline.defs.resources import CatalogResource
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.table_steps import build_table_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dagster._core.definitions.asset_daemon_cursor import AssetDaemonCursor

    from tests.conftest import BuiltWorld


class Watched:
    """The sensors over a folder of dumps."""

    def __init__(self, dumps: Path, root: Path, instance: dg.DagsterInstance, sources: str | None = None) -> None:
        self.instance = instance
        places = {"sources": sources} if sources else {"dumps": str(dumps)}
        self.resource = CatalogResource(root=str(root), **places)
        self.definitions = build_definitions({"catalog": self.resource})
        self.cursors: dict[str, str | None] = {}

    def look(self, platform: str) -> str | dg.RunRequest:
        """Evaluate the platform's sensor, and return the run that it asks for or why it asks for none."""
        sensor = self.definitions.resolve_sensor_def(name_sensor(platform))
        cursor = self.cursors.get(platform)
        with dg.build_sensor_context(instance=self.instance, cursor=cursor, resources={"catalog": self.resource}) as context:
            tick = sensor.evaluate_tick(context)
        self.cursors[platform] = tick.cursor
        return tick.run_requests[0] if tick.run_requests else str(tick.skip_message)

    def run(self, *keys: dg.AssetKey) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(asset_selection=list(keys), instance=self.instance)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def watched(built_world: BuiltWorld, tmp_path: Path, instance: dg.DagsterInstance) -> Watched:
    shutil.copytree(built_world.dumps / "store_a", tmp_path / "dumps" / "store_a")
    return Watched(tmp_path / "dumps", tmp_path / "catalog", instance)


def test_sensor_asks_for_a_run_when_two_looks_show_the_same_new_dump(watched: Watched) -> None:
    assert "next look" in str(watched.look("store_a"))
    asked = watched.look("store_a")
    assert isinstance(asked, dg.RunRequest)
    assert watched.run(build_landing_key("store_a"), build_staging_key("store_a")).success
    assert watched.look("store_a") == "the newest dump has landed"


def test_dump_that_is_still_being_written_is_not_asked_for(watched: Watched, tmp_path: Path) -> None:
    watched.look("store_a")
    dump = max((tmp_path / "dumps" / "store_a").iterdir())
    (dump / "more.csv").write_text("id\n")
    assert "next look" in str(watched.look("store_a"))
    (dump / "more.csv").write_text("id\n1\n")
    assert "next look" in str(watched.look("store_a"))
    assert isinstance(watched.look("store_a"), dg.RunRequest)


def test_failed_fetch_is_asked_for_again_at_most_once_an_hour(watched: Watched) -> None:
    watched.look("store_a")
    first, second = watched.look("store_a"), watched.look("store_a")
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.run_key
    assert first.run_key.endswith(f"{datetime.now(UTC):%Y-%m-%dT%H}") or first.run_key != second.run_key


def test_unreadable_upstream_is_reported_and_starts_no_run(watched: Watched, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "dumps" / "store_a")
    (tmp_path / "dumps" / "store_a").mkdir()
    assert "the folder is empty" in str(watched.look("store_a"))
    assert watched.look("works") == "no source is named"


def test_days_and_folders_in_place_are_watched_too(tmp_path: Path, instance: dg.DagsterInstance, built_world: BuiltWorld) -> None:
    shutil.copytree(built_world.dumps / "fingerprints", tmp_path / "dumps" / "fingerprints")
    (tmp_path / "dumps" / "audio").mkdir()
    (tmp_path / "dumps" / "audio" / "mapping.csv").write_text("file,isrc,platform,external_id,artist,title\n")
    watched = Watched(tmp_path / "dumps", tmp_path / "catalog", instance)
    for platform in ("fingerprints", "audio"):
        assert "next look" in str(watched.look(platform))
        assert isinstance(watched.look(platform), dg.RunRequest)
    assert watched.run(build_landing_key("fingerprints"), build_staging_key("fingerprints")).success
    assert watched.look("fingerprints") == "the newest dump has landed"


class Rebuild:
    """The sensor that rebuilds everything after staging."""

    def __init__(self, definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
        self.definitions, self.instance = definitions, instance
        beside = ("landing", "staging", "archived_dump", "archived_staging")
        self.behind = {key for key in definitions.resolve_asset_graph().get_all_asset_keys() if key.path[0] not in beside}
        self.cursor: AssetDaemonCursor | None = None

    def look(self) -> set[dg.AssetKey]:
        """Evaluate the sensor, and return the assets that it asks for."""
        chosen = dg.AssetSelection.assets(*self.behind)
        found = dg.evaluate_automation_conditions(self.definitions, self.instance, chosen, cursor=self.cursor)
        self.cursor = found.cursor
        return {key for key in self.behind if found.get_num_requested(key)}

    def report_made(self, *keys: dg.AssetKey) -> None:
        for key in keys:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(key))


STORE_A = (build_landing_key("store_a"), build_staging_key("store_a"))


@pytest.mark.slow
def test_everything_behind_staging_is_rebuilt_in_one_run_when_the_tables_of_one_platform_changed(
    watched: Watched, instance: dg.DagsterInstance
) -> None:
    rebuild = Rebuild(watched.definitions, instance)
    assert rebuild.look() == set(), "a catalog that no run has made is left to the nightly build"
    watched.run(*STORE_A)
    asked = rebuild.look()
    assert {build_table_key(TABLES["atom"]), build_table_key(TABLES["track"]), SNAPSHOT} <= asked
    assert asked == rebuild.behind
    rebuild.report_made(*rebuild.behind)
    assert rebuild.look() == set()


@pytest.mark.slow
def test_nothing_is_rebuilt_when_the_same_tables_are_staged_again_or_a_table_is_made_by_itself(
    watched: Watched, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    rebuild = Rebuild(watched.definitions, instance)
    watched.run(*STORE_A)
    rebuild.look()
    for file in (tmp_path / "dumps" / "store_a").rglob("*.gz"):
        file.write_bytes(b"")
    watched.run(*STORE_A)
    assert rebuild.look() == set(), "a broken dump leaves the tables as they are"
    rebuild.report_made(build_table_key(TABLES["recording"]))
    assert rebuild.look() == set(), "whoever looks into one table does not publish"


def test_every_input_has_a_sensor_that_is_off_until_switched_on(watched: Watched) -> None:
    sensors = {sensor.name: sensor for sensor in watched.definitions.sensors or () if sensor.name != DEAD_RUN_SENSOR}
    assert set(sensors) == {REBUILD, *map(name_sensor, INPUTS)}
    assert {sensor.default_status for sensor in sensors.values()} == {dg.DefaultSensorStatus.STOPPED}


@pytest.mark.parametrize(("days", "is_young"), [(None, True), (400, True), (3, False)])
def test_old_dump_warns_by_the_limit_of_its_source(
    built_world: BuiltWorld, tmp_path: Path, instance: dg.DagsterInstance, days: int | None, *, is_young: bool
) -> None:
    upstream = tmp_path / "upstream"
    dump = max((built_world.dumps / "store_a").iterdir())
    shutil.copytree(dump, upstream / f"{datetime.now(UTC).date() - timedelta(days=4)}")
    limit = f", fresh_days: {days}" if days else ""
    (tmp_path / "sources.yaml").write_text(f"sources:\n  store_a: {{location: {upstream}{limit}}}\n")
    watched = Watched(upstream, tmp_path / "catalog", instance, str(tmp_path / "sources.yaml"))
    result = watched.run(build_landing_key("store_a"))
    [check] = [one for one in result.get_asset_check_evaluations() if one.check_name == YOUNG]
    assert check.passed is is_young
    assert check.severity is dg.AssetCheckSeverity.WARN
    if not is_young:
        assert check.description == "the dump in use is 4 days old, 3 are allowed: ask the platform for a newer one"
