from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from pipeline.paths import BuildPaths
from pipeline.quality.build_figures import read_published_figures
from pipeline.quality.code_loss import CodeLoss, count_code_losses
from tests.rebuild.nights import published_copy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld


def test_first_build_loses_no_codes(tmp_path: Path) -> None:
    assert count_code_losses(BuildPaths(tmp_path)) == []


def test_the_live_snapshot_holds_its_own_codes(built_world: BuiltWorld) -> None:
    found = {loss.kind: loss for loss in count_code_losses(BuildPaths(built_world.catalog))}
    assert all(loss.lost == 0 and loss.were > 0 for loss in found.values())
    assert set(found) == {"ISRC", "ISWC", "barcode"}


def test_missing_codes_are_counted_despite_new_ones(built_world: BuiltWorld, tmp_path: Path) -> None:
    paths = BuildPaths(published_copy(built_world, tmp_path))
    for table in ("recording_isrc", "work", "release"):
        paths.table(table).mkdir(parents=True)
    live, work = f"{built_world.catalog}/current/tables".replace("'", "''"), "work"
    new = "SELECT * REPLACE (replace(isrc, 'A', 'B') AS isrc)"
    duckdb.execute(f"COPY ({new} FROM '{live}/recording_isrc/*.parquet') TO '{paths.table('recording_isrc')}/part-000000.parquet'")
    duckdb.execute(f"COPY (FROM '{live}/{work}/*.parquet' WHERE false) TO '{paths.table('work')}/part-000000.parquet'")
    duckdb.execute(f"COPY (FROM '{live}/release/*.parquet') TO '{paths.table('release')}/part-000000.parquet'")
    codes = {row[0] for row in duckdb.execute(f"SELECT isrc FROM '{live}/recording_isrc/*.parquet'").fetchall()}
    gone = codes - {code.replace("A", "B") for code in codes}
    works = duckdb.execute(f"SELECT count(DISTINCT iswc) FROM '{live}/{work}/*.parquet'").fetchall()[0][0]
    isrcs, iswcs, barcodes = count_code_losses(paths)
    assert isrcs == CodeLoss("ISRC", len(codes), len(gone))
    assert (iswcs.were, iswcs.lost, barcodes.lost) == (works, works, 0)


def test_every_platform_counts_what_it_staged(built_world: BuiltWorld) -> None:
    figures = read_published_figures(BuildPaths(built_world.catalog))
    assert figures["staged", "streamsvc_b.source_recording"] == figures["intake", "streamsvc_b.source_recording.staged"]
    assert figures["filled", "streamsvc_b.source_recording.isrcs"] > 0
    assert {name.partition(".")[0] for topic, name in figures if topic == "staged"} >= {"catalog_a", "works", "fingerprints"}
