"""Tests of runs of single assets, as the Materialize button starts them: they need tables that match, or are refused."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl
import pytest

from catalog_store.memory_budget import MemoryBudget, get_budget, use_budget
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.publisher import rollback
from catalog_store.snapshot import verify
from catalog_store.tables import TABLES
from pipeline.definitions import build_definitions
from pipeline.defs import catalog_assets, identity_assets, linkage_assets, quality_assets
from pipeline.defs.dump_assets import build_landing_key, build_staging_key
from pipeline.defs.quality_assets import FIGURES_KEY
from pipeline.defs.resources import NIGHTLY, RECLASSIFY, CatalogResource
from pipeline.defs.snapshot_assets import SNAPSHOT
from pipeline.defs.table_steps import TableStep, build_table_key
from pipeline.dumps.intake.newest_dump import STAMP
from pipeline.engine.duckdb_session import open_duckdb
from pipeline.paths import BuildPaths
from pipeline.quality.id_drift import measure_id_drift
from tests.rebuild.nights import copy_of, table_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pipeline.quality.id_drift import IdDrift
    from tests.conftest import BuiltWorld


STEPS = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]
MAKERS = {build_table_key(table): step for step in STEPS for table in step.tables}


def key(name: str) -> dg.AssetKey:
    return build_table_key(TABLES[name])


def with_siblings(assets: Iterable[dg.AssetKey]) -> set[dg.AssetKey]:
    """Return all assets of the same steps, as the interface selects them."""
    return {sibling for asset in assets for sibling in (map(build_table_key, MAKERS[asset].tables) if asset in MAKERS else [asset])}


class DagsterCatalog:
    """Dagster over one catalog, with an instance that stores runs."""

    def __init__(self, catalog: Path, dumps: Path) -> None:
        self.catalog, self.dumps = catalog, dumps
        self.definitions = build_definitions({"catalog": CatalogResource(root=str(catalog), dumps=str(dumps))})
        self.instance = dg.DagsterInstance.ephemeral()

    def run(self, *assets: dg.AssetKey, job: str | None = None) -> str:
        """Materialise these assets in one run, and return why it failed; empty when it did not."""
        chosen = self.definitions.resolve_job_def(job) if job else self.definitions.resolve_implicit_global_asset_job_def()
        result = chosen.execute_in_process(
            asset_selection=sorted(with_siblings(assets)) or None, instance=self.instance, raise_on_error=False
        )
        said = [event.step_failure_data.error.to_string() for event in result.all_events if event.is_step_failure]
        assert bool(said) != result.success
        return "\n".join(said)


@pytest.fixture
def dagster_catalog(built_world: BuiltWorld, tmp_path: Path) -> Iterator[DagsterCatalog]:
    dumps, catalog = copy_of(built_world, tmp_path)
    made = DagsterCatalog(catalog, dumps)
    with made.instance:
        yield made


def test_unreadable_platform_stops_the_first_build_and_no_later_night(dagster_catalog: DagsterCatalog) -> None:
    paths = BuildPaths(dagster_catalog.catalog)
    for folder in (paths.staging("works"), paths.landing("works"), dagster_catalog.dumps / "works"):
        shutil.rmtree(folder)
    (dagster_catalog.dumps / "works" / "2031-01-01").mkdir(parents=True)
    (dagster_catalog.dumps / "works" / "2031-01-01" / "works.tsv").write_bytes(b"\x00\xff not a table")
    assert dagster_catalog.run(build_landing_key("works"), build_staging_key("works")) == ""
    last_event = dagster_catalog.instance.get_latest_materialization_event(build_staging_key("works"))
    assert last_event
    assert last_event.asset_materialization
    problem = str(last_event.asset_materialization.metadata["problem"].value)
    assert problem.startswith("no readable dump and nothing staged before")
    check = dg.AssetCheckKey(build_staging_key("works"), "newest_dump_is_in_use")
    [record] = dagster_catalog.instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
    assert record.event
    assert record.event.dagster_event
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "works" in str(evaluation.description)
    paths.current.unlink()
    shutil.rmtree(paths.snapshots)
    assert "nothing staged before" in dagster_catalog.run(build_staging_key("works"))


@pytest.mark.slow  # runs a whole nightly build
def test_tables_of_an_older_version_stay_in_use_while_no_dump_can_be_read(dagster_catalog: DagsterCatalog) -> None:
    staging = BuildPaths(dagster_catalog.catalog).staging("works")
    for later in ("source_legal_name", "source_title"):
        shutil.rmtree(staging / later)
    (staging / STAMP).write_text(json.dumps({"code": "older"}))
    for file in dagster_catalog.dumps.glob("works/**/*.tsv*"):
        file.write_bytes(b"\x00\xff not a table")
    shutil.rmtree(BuildPaths(dagster_catalog.catalog).landing("works"))
    assert dagster_catalog.run(build_landing_key("works"), build_staging_key("works")) == ""
    last_event = dagster_catalog.instance.get_latest_materialization_event(build_staging_key("works"))
    assert last_event
    assert last_event.asset_materialization
    assert last_event.asset_materialization.metadata["status"].value == "kept_last_good"
    assert not (staging / "source_title").exists()
    assert dagster_catalog.run(job=NIGHTLY) == ""


@pytest.mark.slow
def test_assets_materialised_one_by_one_give_the_same_catalog(dagster_catalog: DagsterCatalog) -> None:
    before, live = table_hashes(dagster_catalog.catalog), read_live_snapshot(dagster_catalog.catalog).id
    for asset in map(key, ("work", "recording_alias", "recording_genre", "track")):
        assert dagster_catalog.run(asset) == ""
    for asset in (FIGURES_KEY, SNAPSHOT):
        assert dagster_catalog.run(asset) == ""
    assert read_live_snapshot(dagster_catalog.catalog).id != live
    assert table_hashes(dagster_catalog.catalog) == before


def test_step_rejects_outdated_tables_and_names_the_asset_to_materialise(dagster_catalog: DagsterCatalog) -> None:
    assert dagster_catalog.run(key("edge")) == ""
    refused = dagster_catalog.run(key("track"))
    assert "table cluster was made from another table edge than there is now: materialise linkage/cluster first" in refused
    assert "nightly_build" in refused
    assert dagster_catalog.run(key("cluster")) == ""
    assert "table recording_member was made from another table cluster" in dagster_catalog.run(key("track"))


def test_snapshot_of_mismatched_tables_is_refused(dagster_catalog: DagsterCatalog) -> None:
    live = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(key("release")) == ""
    assert "was made from another table release than there is now" in dagster_catalog.run(SNAPSHOT)
    assert read_live_snapshot(dagster_catalog.catalog).id == live


@pytest.mark.slow
def test_dumps_staged_between_linkage_and_catalog_are_noticed(dagster_catalog: DagsterCatalog) -> None:
    (dagster_catalog.catalog / "work" / "staging" / "store_a" / STAMP).unlink()  # so that its dump is read again
    assert dagster_catalog.run(build_landing_key("store_a"), build_staging_key("store_a")) == ""
    refused = dagster_catalog.run(key("recording"))
    assert "table atom" in refused
    assert "was made from another staging of store_a than there is now" in refused
    assert "staging of store_a" in dagster_catalog.run(job=RECLASSIFY)


@pytest.mark.long
def test_restaging_a_dump_keeps_downstream_tables_valid(dagster_catalog: DagsterCatalog) -> None:
    assert dagster_catalog.run(build_landing_key("store_a"), build_staging_key("store_a")) == ""
    assert dagster_catalog.run(key("recording_genre")) == ""


def test_step_with_a_failed_check_blocks_later_steps(dagster_catalog: DagsterCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [
        dg.AssetCheckResult(check_name=f"{name}_keeps_its_spec", asset_key=key(name), passed=name != "platform_link")
        for name in ("platform_link", "external_redirect")
    ]
    with monkeypatch.context() as patched:
        patched.setattr("pipeline.defs.table_steps.run_asset_checks", lambda *_: iter(failing))
        assert "DagsterAssetCheckFailedError" in dagster_catalog.run(key("platform_link"))
    refused = dagster_catalog.run(FIGURES_KEY)
    assert "table platform_link is unfinished" in refused
    assert "one of its checks failed: materialise catalog/platform_link first" in refused


@pytest.mark.long
def test_rollback_between_two_steps_invalidates_the_tables(dagster_catalog: DagsterCatalog) -> None:
    first = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(job=RECLASSIFY) == ""
    assert dagster_catalog.run(key("work")) == ""
    rollback(dagster_catalog.catalog, first)
    refused = dagster_catalog.run(FIGURES_KEY)
    assert f"of the work folder is not that of the live snapshot {first} but" in refused
    assert "nightly_build" in refused


@pytest.mark.long
def test_tables_of_a_rolled_back_snapshot_are_not_published_again(dagster_catalog: DagsterCatalog) -> None:
    first = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(job=NIGHTLY) == ""
    second = read_live_snapshot(dagster_catalog.catalog).id
    rollback(dagster_catalog.catalog, first)
    assert f"is not that of the live snapshot {first} but that of {second}" in dagster_catalog.run(SNAPSHOT)
    assert read_live_snapshot(dagster_catalog.catalog).id == first
    assert dagster_catalog.run(job=NIGHTLY) == ""
    verify(read_live_snapshot(dagster_catalog.catalog).folder)


@pytest.mark.long
def test_reclassify_works_after_a_rollback_of_its_own_snapshot(dagster_catalog: DagsterCatalog) -> None:
    first = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(job=RECLASSIFY) == ""
    rollback(dagster_catalog.catalog, first)
    assert dagster_catalog.run(job=RECLASSIFY) == ""


@pytest.mark.parametrize("harm", [pytest.param("part", marks=pytest.mark.long), "table"])
def test_incomplete_table_blocks_later_steps(dagster_catalog: DagsterCatalog, harm: str) -> None:
    folder = dagster_catalog.catalog / "work" / "catalog" / "platform_link"
    if harm == "part":
        (folder / "part-00000.parquet").unlink()
    else:
        shutil.rmtree(folder)
    assert "table platform_link of the work folder is not as it was written" in dagster_catalog.run(FIGURES_KEY)
    assert dagster_catalog.run(key("platform_link")) == ""
    assert dagster_catalog.run(FIGURES_KEY) == ""


def test_lost_registry_stops_runs_of_dagster(dagster_catalog: DagsterCatalog) -> None:
    live = read_live_snapshot(dagster_catalog.catalog)
    (live.folder / live.manifest.tables["id_registry"].files[0].path).unlink()
    for refused in (dagster_catalog.run(key("artist_source")), dagster_catalog.run(job=RECLASSIFY)):
        assert "has no usable id registry" in refused
        assert "registry rebuild" in refused
    assert read_live_snapshot(dagster_catalog.catalog).id == live.id


def test_wish_for_full_linkage_survives_reclassify(dagster_catalog: DagsterCatalog) -> None:
    paths = BuildPaths(dagster_catalog.catalog)
    paths.ask_for_relink()  # as `build --relink` does, here killed at once
    first = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(job=RECLASSIFY) == ""
    assert read_live_snapshot(dagster_catalog.catalog).id != first
    assert paths.relink.exists()


def test_reclassify_refuses_unpublished_tables(dagster_catalog: DagsterCatalog) -> None:
    live = read_live_snapshot(dagster_catalog.catalog).id
    part = next((dagster_catalog.catalog / "work" / "catalog" / "recording").glob("*.parquet"))
    rows = pl.read_parquet(part)
    part.unlink()
    rows.head(-1).write_parquet(part)
    assert f"table recording of the work folder is not that of the live snapshot {live}" in dagster_catalog.run(job=RECLASSIFY)
    assert read_live_snapshot(dagster_catalog.catalog).id == live


def forget_state(catalog: Path) -> None:
    """Remove the state records, as in a catalog from before they existed."""
    shutil.rmtree(catalog / "work" / "state")
    for version in (catalog / "work" / "staging").rglob("version.txt"):
        version.unlink()
    live = read_live_snapshot(catalog).folder
    (live / "work_state.json").unlink()
    manifest = json.loads((live / "manifest.json").read_text())
    manifest["attachments"] = [file for file in manifest["attachments"] if file["path"] != "work_state.json"]
    for member in ("seal", "sequence"):  # in older catalogs these were missing, too
        manifest.pop(member, None)
    (live / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.long
def test_catalog_without_state_records_still_works(dagster_catalog: DagsterCatalog) -> None:
    forget_state(dagster_catalog.catalog)
    verify(read_live_snapshot(dagster_catalog.catalog).folder)
    first = read_live_snapshot(dagster_catalog.catalog).id
    assert dagster_catalog.run(job=RECLASSIFY) == ""
    assert dagster_catalog.run(build_landing_key("suggestions"), build_staging_key("suggestions")) == ""
    assert dagster_catalog.run(job=RECLASSIFY) == ""
    assert dagster_catalog.run(key("platform_link")) == ""
    assert dagster_catalog.run(FIGURES_KEY) == ""
    rollback(dagster_catalog.catalog, first)
    assert dagster_catalog.run(job=NIGHTLY) == ""
    assert dagster_catalog.run(job=RECLASSIFY) == ""


@pytest.mark.long
def test_catalog_without_state_records_is_refused_if_its_tables_are_not_live(dagster_catalog: DagsterCatalog) -> None:
    forget_state(dagster_catalog.catalog)
    part = next((dagster_catalog.catalog / "work" / "linkage" / "edge").glob("*.parquet"))
    rows = pl.read_parquet(part)
    part.unlink()
    rows.head(-1).write_parquet(part)
    assert "was never made, or by a build that is not live" in dagster_catalog.run(key("track"))
    assert dagster_catalog.run(job=NIGHTLY) == ""


def upstream(assets: tuple[dg.AssetKey, ...]) -> set[dg.AssetKey]:
    return with_siblings(assets).union(*(upstream(MAKERS[asset].after) for asset in assets if asset in MAKERS))


WRITTEN_BEFORE = {"artist": "artist_source", "label": "label_source", "recording_release": "release"}
"""Table -> the table whose step writes it first. A later step counts in it, or is the first that can check it."""


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step_reads_only_its_declared_inputs(built_world: BuiltWorld, tmp_path: Path, step: TableStep) -> None:
    catalog = tmp_path / "catalog"
    shutil.copytree(built_world.catalog, catalog, symlinks=True)
    paths, read = BuildPaths(catalog), upstream(step.after)
    for table in (table for other in STEPS for table in other.tables if build_table_key(table) not in read):
        if table.name not in WRITTEN_BEFORE or key(WRITTEN_BEFORE[table.name]) not in read:
            shutil.rmtree(paths.table(table.name))
    for staging in (catalog / "work" / "staging").iterdir():
        if build_staging_key(staging.name) not in read:
            shutil.rmtree(staging)
    step.run(paths)
    for table in step.tables:
        assert pl.read_parquet(paths.table(table.name)).equals(pl.read_parquet(BuildPaths(built_world.catalog).table(table.name)))


def test_gate_that_runs_out_of_memory_runs_again_alone(
    dagster_catalog: DagsterCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    processes = []

    def measure(paths: BuildPaths) -> IdDrift | None:
        processes.append(get_budget().processes)
        if len(processes) == 1:
            with use_budget(MemoryBudget(4_000_000)), open_duckdb(tmp_path / "spill") as connection:
                connection.sql("SELECT list(i) FROM range(1_000_000) r(i)").fetchall()
        return measure_id_drift(paths)

    monkeypatch.setattr("catalog_store.memory_budget.count_processors", lambda: 2)
    monkeypatch.setattr(quality_assets, "measure_id_drift", measure)
    assert dagster_catalog.run(FIGURES_KEY) == ""
    assert processes == [2, 1]
