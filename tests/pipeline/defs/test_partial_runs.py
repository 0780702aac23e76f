"""Runs of single assets, as the Materialize button starts them: they build on tables that belong together, or are refused."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest

from catalog_store.publisher import live_snapshot, rollback
from catalog_store.snapshot import verify
from catalog_store.tables import TABLES
from pipeline.definitions import build_definitions
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.dump_assets import landing_key, staging_key
from pipeline.defs.jobs import NIGHTLY
from pipeline.defs.quality_assets import FIGURES_KEY
from pipeline.defs.resources import RECLASSIFY, CatalogResource
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.table_steps import TableStep, table_key
from pipeline.dumps.intake.newest_dump import STAMP
from pipeline.paths import BuildPaths
from tests.rebuild.nights import copy_of, table_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.conftest import BuiltWorld


STEPS = [*linkage_assets.steps(), *identity_assets.steps(), *catalog_assets.steps()]
MAKERS = {table_key(table): step for step in STEPS for table in step.tables}


def key(name: str) -> dg.AssetKey:
    return table_key(TABLES[name])


def with_siblings(assets: Iterable[dg.AssetKey]) -> set[dg.AssetKey]:
    """As the interface selects them: what one step makes is made together."""
    return {sibling for asset in assets for sibling in (map(table_key, MAKERS[asset].tables) if asset in MAKERS else [asset])}


class Front:
    """Dagster over one catalog, with an instance that remembers runs."""

    def __init__(self, catalog: Path, dumps: Path, home: Path) -> None:
        home.mkdir()
        self.catalog, self.dumps = catalog, dumps
        self.definitions = build_definitions({"catalog": CatalogResource(root=str(catalog), dumps=str(dumps))})
        self.instance = dg.DagsterInstance.local_temp(str(home))

    def run(self, *assets: dg.AssetKey, job: str | None = None) -> str:
        """Materialise these assets in a run of their own; why it failed, empty when it did not."""
        chosen = self.definitions.resolve_job_def(job) if job else self.definitions.resolve_implicit_global_asset_job_def()
        result = chosen.execute_in_process(
            asset_selection=sorted(with_siblings(assets)) or None, instance=self.instance, raise_on_error=False
        )
        said = [event.step_failure_data.error.to_string() for event in result.all_events if event.is_step_failure]
        assert bool(said) != result.success
        return "\n".join(said)


@pytest.fixture
def front(built_world: BuiltWorld, tmp_path: Path) -> Iterator[Front]:
    dumps, catalog = copy_of(built_world, tmp_path)
    made = Front(catalog, dumps, tmp_path / "home")
    with made.instance:
        yield made


def test_a_platform_that_never_could_be_read_stops_the_first_build_and_no_later_night(front: Front) -> None:
    paths = BuildPaths(front.catalog)
    for folder in (paths.staging("works"), paths.landing("works"), front.dumps / "works"):
        shutil.rmtree(folder)
    (front.dumps / "works" / "2031-01-01").mkdir(parents=True)
    (front.dumps / "works" / "2031-01-01" / "works.tsv").write_bytes(b"\x00\xff not a table")
    assert front.run(landing_key("works"), staging_key("works")) == ""
    told = front.instance.get_latest_materialization_event(staging_key("works"))
    assert told
    assert told.asset_materialization
    assert "nothing staged before" in str(told.asset_materialization.metadata["problem"].value)
    paths.current.unlink()
    shutil.rmtree(paths.snapshots)
    assert "nothing staged before" in front.run(staging_key("works"))


def test_assets_materialised_one_by_one_end_in_the_same_catalog(front: Front) -> None:
    before, live = table_hashes(front.catalog), live_snapshot(front.catalog).id
    for asset in (key("work"), key("recording_genre"), key("track"), FIGURES_KEY, SNAPSHOT):
        assert front.run(asset) == ""
    assert live_snapshot(front.catalog).id != live
    assert table_hashes(front.catalog) == before


def test_a_step_refuses_tables_that_were_made_from_older_ones_and_names_what_to_materialise(front: Front) -> None:
    assert front.run(key("edge")) == ""
    refused = front.run(key("track"))
    assert "table cluster was made from another table edge than there is now: materialise linkage/cluster first" in refused
    assert "nightly_build" in refused
    assert front.run(key("cluster")) == ""
    assert "table recording_member was made from another table cluster" in front.run(key("track"))


def test_a_snapshot_of_tables_that_do_not_belong_together_is_refused(front: Front) -> None:
    live = live_snapshot(front.catalog).id
    assert front.run(key("release")) == ""
    assert "was made from another table release than there is now" in front.run(SNAPSHOT)
    assert live_snapshot(front.catalog).id == live


def test_dumps_staged_between_linkage_and_catalog_are_noticed(front: Front) -> None:
    (front.catalog / "work" / "staging" / "store_a" / STAMP).unlink()  # so that its dump is read anew
    assert front.run(landing_key("store_a"), staging_key("store_a")) == ""
    refused = front.run(key("recording"))
    assert "table atom" in refused
    assert "was made from another staging of store_a than there is now" in refused
    assert "staging of store_a" in front.run(job=RECLASSIFY)


@pytest.mark.long
def test_staging_the_same_dump_again_changes_nothing_for_the_tables_behind(front: Front) -> None:
    assert front.run(landing_key("store_a"), staging_key("store_a")) == ""
    assert front.run(key("recording_genre")) == ""


def test_a_step_whose_check_failed_is_not_built_upon(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [
        dg.AssetCheckResult(check_name=f"{name}_keeps_its_spec", asset_key=key(name), passed=name != "work")
        for name in ("work", "work_recording")
    ]
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.defs.table_steps.run_asset_checks", lambda *_: iter(failing))
        assert "DagsterAssetCheckFailedError" in front.run(key("work"))
    refused = front.run(FIGURES_KEY)
    assert "table work is unfinished" in refused
    assert "one of its checks failed: materialise catalog/work first" in refused


@pytest.mark.long
def test_a_rollback_between_two_steps_counts(front: Front) -> None:
    first = live_snapshot(front.catalog).id
    assert front.run(job=RECLASSIFY) == ""
    assert front.run(key("work")) == ""
    rollback(front.catalog, first)
    refused = front.run(FIGURES_KEY)
    assert f"of the work folder is not that of the live snapshot {first} but" in refused
    assert "nightly_build" in refused


@pytest.mark.long
def test_what_a_rolled_back_snapshot_held_is_not_published_again_by_parts(front: Front) -> None:
    first = live_snapshot(front.catalog).id
    assert front.run(job=NIGHTLY) == ""
    second = live_snapshot(front.catalog).id
    rollback(front.catalog, first)
    assert f"is not that of the live snapshot {first} but that of {second}" in front.run(SNAPSHOT)
    assert live_snapshot(front.catalog).id == first
    assert front.run(job=NIGHTLY) == ""
    verify(live_snapshot(front.catalog).folder)


@pytest.mark.long
def test_classifying_anew_goes_on_after_its_own_snapshot_was_rolled_back(front: Front) -> None:
    first = live_snapshot(front.catalog).id
    assert front.run(job=RECLASSIFY) == ""
    rollback(front.catalog, first)
    assert front.run(job=RECLASSIFY) == ""


@pytest.mark.parametrize("harm", [pytest.param("part", marks=pytest.mark.long), "table"])
def test_a_table_that_lacks_what_its_step_wrote_is_not_built_upon(front: Front, harm: str) -> None:
    folder = front.catalog / "work" / "catalog" / "work_recording"
    if harm == "part":
        (folder / "part-00000.parquet").unlink()
    else:
        shutil.rmtree(folder)
    assert "table work_recording of the work folder is not as it was written" in front.run(FIGURES_KEY)
    assert front.run(key("work")) == ""
    assert front.run(FIGURES_KEY) == ""


def test_a_lost_registry_stops_runs_of_dagster_too(front: Front) -> None:
    live = live_snapshot(front.catalog)
    (live.folder / live.manifest.tables["id_registry"].files[0].path).unlink()
    for refused in (front.run(key("artist_source")), front.run(job=RECLASSIFY)):
        assert "has no usable id registry" in refused
        assert "registry rebuild" in refused
    assert live_snapshot(front.catalog).id == live.id


def test_tables_that_were_never_published_are_not_classified_anew_by_the_job(front: Front) -> None:
    live = live_snapshot(front.catalog).id
    part = next((front.catalog / "work" / "catalog" / "recording").glob("*.parquet"))
    rows = pl.read_parquet(part)
    part.unlink()
    rows.head(-1).write_parquet(part)
    assert f"table recording of the work folder is not that of the live snapshot {live}" in front.run(job=RECLASSIFY)
    assert live_snapshot(front.catalog).id == live


def forget_state(catalog: Path) -> None:
    """As a build left it before there were records of what tables were made from."""
    shutil.rmtree(catalog / "work" / "state")
    for version in (catalog / "work" / "staging").rglob("version.txt"):
        version.unlink()
    live = live_snapshot(catalog).folder
    (live / "work_state.json").unlink()
    manifest = json.loads((live / "manifest.json").read_text())
    manifest["attachments"] = [file for file in manifest["attachments"] if file["path"] != "work_state.json"]
    for member in ("seal", "sequence"):  # nor were there these
        manifest.pop(member, None)
    (live / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.long
def test_a_catalog_from_before_there_were_records_goes_on_to_work(front: Front) -> None:
    forget_state(front.catalog)
    verify(live_snapshot(front.catalog).folder)
    first = live_snapshot(front.catalog).id
    assert front.run(job=RECLASSIFY) == ""
    assert front.run(landing_key("suggestions"), staging_key("suggestions")) == ""
    assert front.run(job=RECLASSIFY) == ""
    assert front.run(key("work")) == ""
    assert front.run(FIGURES_KEY) == ""
    rollback(front.catalog, first)
    assert front.run(job=NIGHTLY) == ""
    assert front.run(job=RECLASSIFY) == ""


@pytest.mark.long
def test_an_old_catalog_whose_work_is_not_what_is_live_is_not_adopted(front: Front) -> None:
    forget_state(front.catalog)
    part = next((front.catalog / "work" / "linkage" / "edge").glob("*.parquet"))
    rows = pl.read_parquet(part)
    part.unlink()
    rows.head(-1).write_parquet(part)
    assert "was never made, or by a build that is not live" in front.run(key("track"))
    assert front.run(job=NIGHTLY) == ""


def upstream(assets: tuple[dg.AssetKey, ...]) -> set[dg.AssetKey]:
    return with_siblings(assets).union(*(upstream(MAKERS[asset].after) for asset in assets if asset in MAKERS))


WRITTEN_BEFORE = {"artist": "artist_source", "label": "label_source", "recording_release": "release"}
"""Tables that the step of another one writes first: a later step counts in them, or is the first that can check them."""


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_reads_only_what_it_says(built_world: BuiltWorld, tmp_path: Path, step: TableStep) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(built_world.catalog, catalog, symlinks=True)
    paths, read = BuildPaths(catalog), upstream(step.after)
    for table in (table for other in STEPS for table in other.tables if table_key(table) not in read):
        if table.name not in WRITTEN_BEFORE or key(WRITTEN_BEFORE[table.name]) not in read:
            shutil.rmtree(paths.table(table.name))
    for staging in (catalog / "work" / "staging").iterdir():
        if staging_key(staging.name) not in read:
            shutil.rmtree(staging)
    step.run(paths)
    for table in step.tables:
        assert pl.read_parquet(paths.table(table.name)).equals(pl.read_parquet(BuildPaths(built_world.catalog).table(table.name)))
