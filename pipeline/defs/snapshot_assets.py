"""The end of a build: the recognition index, and the snapshot that becomes the live one."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.publisher import find_unused_id, prune, publish
from catalog_store.serving.serving_build import ROWS_PER_BLOCK
from catalog_store.snapshot import Snapshot
from catalog_store.tables import CATALOG_TABLES, LINKAGE_TABLES, QUALITY_TABLES, TABLES
from catalog_store.tables.files import count_rows, measure_bytes
from pipeline.build.recognition import build_recognition, count_indexed_fingerprints
from pipeline.build.work_state import ATTACHMENT as STATE_FILE
from pipeline.build.workbench import open_text_memory
from pipeline.defs.plots import draw_bar_chart
from pipeline.defs.quality_assets import RECOGNITION, read_costs, read_materializations
from pipeline.defs.resources import CatalogResource, log
from pipeline.defs.step_limits import ALONE
from pipeline.defs.table_steps import build_table_key, build_usage_metadata
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.engine.progress import enter_section
from pipeline.engine.step_process import run_in_own_process
from pipeline.engine.usage import measure_usage
from pipeline.linkage.id_registry import read_next_ids
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import BuildCost, StepCost, add_build_cost
from pipeline.quality.build_figures import read_published_figures
from pipeline.quality.report.page import select_history

ATOM = build_table_key(TABLES["atom"])
FINGERPRINT = build_table_key(TABLES["recording_fingerprint"])
SNAPSHOT = dg.AssetKey(["snapshot", "live"])
PUBLISHED = (*LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES)
PARTS = (*(build_table_key(table) for table in PUBLISHED), RECOGNITION)
"""Asset keys of the contents of a snapshot."""


@dg.asset(
    key=RECOGNITION,
    deps=[FINGERPRINT],
    group_name="snapshot",
    op_tags=ALONE,
    description="The index that identifies audio: that of the live snapshot, continued with the fingerprints that are new.",
    check_specs=[dg.AssetCheckSpec("index_holds_every_fingerprint", asset=RECOGNITION, blocking=True)],
)
def recognition_index(catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
    """Reuse the segments of the live snapshot and index new fingerprints."""
    paths = catalog.paths
    with catalog.claim_for_step([RECOGNITION], [FINGERPRINT]) as running_step:
        with catalog.show_progress(RECOGNITION.to_python_identifier()), measure_usage(paths.list_spill_folders) as usage:
            facts = build_recognition(paths)
        catalog.report(f"recognition: {usage.seconds:.1f} s, {facts}")
        metadata = {**facts, "bytes": measure_bytes(paths.recognition), **build_usage_metadata(usage)}
        yield dg.MaterializeResult(asset_key=RECOGNITION, metadata=metadata)
        # The index is opened as the server opens it, which checks each segment, before a snapshot can hold it.
        found = count_indexed_fingerprints(paths.recognition)
        result = dg.AssetCheckResult(
            check_name="index_holds_every_fingerprint",
            asset_key=RECOGNITION,
            passed=found == facts["fingerprints"],
            metadata={"found": found},
        )
        running_step.finish([result])
    yield result


@dg.asset(
    key=SNAPSHOT,
    deps=PARTS,
    group_name="snapshot",
    op_tags=ALONE,
    kinds={"parquet", "duckdb", "sqlite"},
    check_specs=[dg.AssetCheckSpec("live_snapshot_is_this_build", asset=SNAPSHOT, blocking=True)],
)
def published_snapshot(context: dg.AssetExecutionContext, catalog: CatalogResource) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[type-arg]
    """Parquet tables, the analysts' DuckDB file, serving indexes and a manifest, made live by one atomic switch."""
    paths, root = catalog.paths, Path(catalog.root)
    snapshot_id = find_unused_id(root, datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ"))
    with (
        catalog.claim_for_step(inputs=PARTS) as running_step,
        catalog.show_progress(SNAPSHOT.to_python_identifier()),
        measure_usage(paths.list_spill_folders) as usage,
    ):
        # `reclassify` publishes tables that were linked before.
        is_linked_now = not running_step.is_published(ATOM)
        publish_build = partial(publish_tables, paths, snapshot_id, running_step.write_attachment())
        snapshot = run_in_own_process(SNAPSHOT.to_python_identifier(), publish_build) if catalog.is_large else publish_build()
        pruned = _prune_snapshots(catalog)
        # The wish to link everything again is fulfilled only now: a build that fails before must not lose it.
        if is_linked_now:
            paths.relink.unlink(missing_ok=True)
    # From here on the snapshot is live: what follows only describes it.
    rows = {name: table.rows for name, table in snapshot.manifest.tables.items()}
    platforms = dict(
        duckdb.execute(
            "SELECT source, count(*) FROM read_parquet(?) GROUP BY source ORDER BY 2 DESC, 1",
            [_build_parts_pattern(paths, "platform_link")],
        ).fetchall()
    )
    figures: dict[str, Any] = {**build_usage_metadata(usage)}
    own = StepCost(SNAPSHOT.to_python_identifier(), **figures)
    earlier = read_costs(read_materializations(context.instance), context.run.run_id)
    _keep_costs(catalog, BuildCost(snapshot_id, rows["recording"], (*earlier, own), select_history(read_published_figures(paths))))
    catalog.report(f"snapshot {snapshot_id} is live: {rows['recording']:,} recordings, {usage.seconds:.1f} s to publish")
    yield dg.MaterializeResult(
        asset_key=SNAPSHOT,
        metadata={
            "snapshot_id": snapshot_id,
            "folder": str(snapshot.folder),
            "report": dg.MetadataValue.path(snapshot.folder / "report.html"),
            "pruned": pruned,
            "rows": dg.MetadataValue.json(rows),
            "dagster/row_count": rows["recording"],
            "links_plot": dg.MetadataValue.md(draw_bar_chart("Recordings found on each platform", platforms)),
            **build_usage_metadata(usage),
        },
    )
    yield dg.AssetCheckResult(
        check_name="live_snapshot_is_this_build", asset_key=SNAPSHOT, passed=read_live_snapshot(root).id == snapshot_id
    )


def publish_tables(paths: BuildPaths, snapshot_id: str, state: Path) -> Snapshot:
    """Publish the tables of the build, with its reports and the file of its `state`."""
    tables = {table.name: paths.table(table.name) for table in PUBLISHED}
    # A small catalog has nothing to divide, and the imports of two workers cost more than its publish.
    with start_workers(is_small=count_rows(tables["recording"]) <= ROWS_PER_BLOCK) as pool:
        return publish(
            tables,
            paths.root,
            snapshot_id=snapshot_id,
            next_ids=read_next_ids(paths),
            recognition=paths.recognition,
            attachments={"report.html": paths.report, "rows.html": paths.row_report, "genres.html": paths.genre_report, STATE_FILE: state},
            report=_report_section,
            run=partial(map_ordered, pool=pool),
            anew=paths.relink.exists(),
            texts=open_text_memory(paths),
        )


def _report_section(line: str) -> None:
    """Log a step of publishing, which is a section of the progress."""
    enter_section(line)
    log.info(line)


def _prune_snapshots(catalog: CatalogResource) -> list[str]:
    """Remove old snapshots and return their ids."""
    # A failure does not fail the build, which is live already.
    try:
        return prune(Path(catalog.root), catalog.keep_snapshots, report=catalog.report)
    except OSError as error:
        catalog.report(f"warning: old snapshots cannot be removed: {error}: the next build tries again")
        return []


def _keep_costs(catalog: CatalogResource, cost: BuildCost) -> None:
    """Keep the cost of the build for the reports of the next ones."""
    # A failure does not fail the build, which is live already.
    try:
        add_build_cost(catalog.paths.costs, cost)
    except OSError as error:
        catalog.report(f"warning: the cost of this build cannot be kept: {error}: the next report compares with the build before")


def _build_parts_pattern(paths: BuildPaths, name: str) -> str:
    return str(paths.table(name) / "part-*.parquet")


def build_snapshot_assets() -> list[dg.AssetsDefinition]:
    """Return the recognition index and the snapshot."""
    return [recognition_index, published_snapshot]
