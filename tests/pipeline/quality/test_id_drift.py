from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.paths import BuildPaths
from pipeline.quality.id_drift import IdDrift, measure_id_drift

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, frame: pl.DataFrame) -> None:
    target = folder / name
    target.mkdir(parents=True)
    frame.write_parquet(target / "part-00000.parquet")


def members(recordings: dict[int, str]) -> pl.DataFrame:
    rows = [("streamsvc_a", record, recording) for recording, records in recordings.items() for record in records.split()]
    return pl.DataFrame(rows, schema=TABLES["recording_member"].polars_schema, orient="row")


def catalog(root: Path, before: dict[int, str], now: dict[int, str], redirects: dict[int, int | None]) -> BuildPaths:
    paths = BuildPaths(root)
    for tables, recordings in ((paths.current / "tables", before), (None, now)):
        for name, frame in (("recording_member", members(recordings)), ("recording", pl.DataFrame({"recording_id": list(recordings)}))):
            write(tables or paths.table(name).parent, name, frame)
    rows = [("recording", old, new) for old, new in redirects.items()] + [("artist", 1, 2)]
    write(paths.table("redirect").parent, "redirect", pl.DataFrame(rows, schema=TABLES["redirect"].polars_schema, orient="row"))
    return paths


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    assert measure_id_drift(BuildPaths(tmp_path)) is None


def test_merges_splits_arrivals_and_departures_are_counted_apart(tmp_path: Path) -> None:
    before = {1: "a b c", 2: "d", 3: "e f", 4: "g", 5: "h"}
    now = {1: "a b c d", 3: "e", 5: "h i", 6: "f", 7: "k"}
    drift = measure_id_drift(catalog(tmp_path, before, now, {2: 1, 4: None}))
    assert drift == IdDrift(kept=3, new=2, split=1, merged=1, retired=1, records=7, moved=2)


def test_unchanged_build_moves_no_records(tmp_path: Path) -> None:
    recordings = {1: "a b", 2: "c"}
    assert measure_id_drift(catalog(tmp_path, recordings, recordings, {})) == IdDrift(
        kept=2, new=0, split=0, merged=0, retired=0, records=3, moved=0
    )
