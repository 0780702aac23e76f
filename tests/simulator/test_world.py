"""Tests that a world is reproducible, never overwrites another, and needs the same memory at any size."""

from __future__ import annotations

import gc
import hashlib
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from catalog_store.platforms import FINGERPRINTS, SOURCES
from pipeline.engine.pool import map_ordered
from simulator import SimulationSettings, write_world
from simulator.files import ROW_GROUP, Dump, ParquetSink
from simulator.world_part import Part


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_same_settings_give_identical_files_in_one_process_or_two(world: Path, world_settings: SimulationSettings, tmp_path: Path) -> None:
    write_world(world_settings, tmp_path / "again", map_blocks=partial(map_ordered, workers=2))
    assert digests(tmp_path / "again") == digests(world)


def test_another_seed_gives_another_world(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_world(SimulationSettings(recordings=300, seed=seed), tmp_path / str(seed))
    first, second = digests(tmp_path / "1"), digests(tmp_path / "2")
    same = {name for name in first if first[name] == second.get(name) and not name.startswith(("truth/artist", "truth/label"))}
    assert {Path(name).name for name in same} <= {"genres.ndjson.gz", "providers.ndjson.gz", "available_markets.parquet"}


def test_every_platform_has_a_dated_dump_and_nothing_is_left_over(world: Path) -> None:
    assert {path.name for path in world.iterdir()} == {*SOURCES, FINGERPRINTS, "truth", "alternative"}
    for platform in SOURCES:
        assert [path.name for path in (world / platform).iterdir()] == ["2026-11-01"]


def test_world_is_never_written_over_another(world: Path, world_settings: SimulationSettings) -> None:
    with pytest.raises(FileExistsError, match="not empty"):
        write_world(world_settings, world)


def test_world_of_one_recording_can_be_made(tmp_path: Path) -> None:
    counts = write_world(SimulationSettings(recordings=1), tmp_path / "one")
    assert set(counts) == set(SOURCES)
    assert pl.read_parquet(tmp_path / "one/truth/genre/*.parquet")["true_recording_id"].to_list() == [1]


def test_progress_is_reported_for_each_block(tmp_path: Path) -> None:
    progress: list[str] = []
    write_world(SimulationSettings(recordings=250, recordings_per_block=100), tmp_path / "progress", progress.append)
    assert [line.split(":")[0] for line in progress if line.startswith("block")] == ["block 1 of 3", "block 2 of 3", "block 3 of 3"]


def test_written_blocks_are_released(tmp_path: Path) -> None:
    alive: list[int] = []

    def count(_line: str) -> None:
        alive.append(sum(isinstance(thing, Part) for thing in gc.get_objects()))

    write_world(SimulationSettings(recordings=400, recordings_per_block=100), tmp_path / "blocks", count)
    assert max(alive) <= 2 * len(SOURCES)


def test_table_waits_for_one_row_group_at_most(tmp_path: Path) -> None:
    dump = Dump(tmp_path, {}, {})
    rows = pl.DataFrame({"n": range(ROW_GROUP // 2 + 1)})
    for _ in range(5):
        dump.add("table.parquet", rows)
    sink = dump._sinks["table.parquet"]
    assert isinstance(sink, ParquetSink)
    assert sum(part.num_rows for part in sink._waiting) < ROW_GROUP
    assert dump.close()["table.parquet"].lines == 5 * rows.height == pl.read_parquet(tmp_path / "table.parquet").height


def test_recordings_are_numbered_without_gaps_over_the_blocks(world: Path, world_settings: SimulationSettings) -> None:
    genre = pl.read_parquet(world / "truth/genre/*.parquet")
    assert genre["true_recording_id"].to_list() == list(range(1, world_settings.recordings + 1))
