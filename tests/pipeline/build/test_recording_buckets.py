from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from catalog_store.memory_budget import MemoryBudget, use_budget
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, write_table
from pipeline.build import recording_buckets, recording_ranges, recordings
from pipeline.build.artists import build_artists
from pipeline.build.labels import build_labels
from pipeline.build.links import build_links
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.engine import number_index
from pipeline.linkage import staged_records
from tests.rotten_files import rot

from .conftest import credit

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import World

TABLE_NAMES = ("recording", "recording_artist", "recording_isrc", "recording_provenance")
PLATFORMS = ("catalog_a", "catalog_b", "store_a", "streamsvc_a", "streamsvc_b", "streamsvc_c")


def add_recordings(world: World, count: int) -> None:
    """Add recordings of two platforms each, on a release of the one, with a code of the other that sorts against the ids."""
    for number in range(1, count + 1):
        first, second = PLATFORMS[number % 6], PLATFORMS[(number + 1) % 6]
        artist = credit(f"Artist {number % 3}", f"a{number % 3}")
        world.recording(number, first, f"x{number}", f"Song {number}", artist, isrcs=[f"USAAA26{count - number:05d}"])
        world.recording(number, second, f"y{number}", f"Song {number}", artist, duration_ms=200_000 + number)
        world.release(second, f"r{number}", f"Album {number % 2}", artist, tracks=(f"y{number}",), release_date=f"20{number:02d}-02-03")


def build(world: World) -> dict[str, pl.DataFrame]:
    paths = world.write()
    build_artists(paths)
    build_labels(paths)
    build_releases(paths)
    build_recordings(paths)
    return {name: world.read(name) for name in TABLE_NAMES}


def hash_parts(world: World) -> dict[str, str]:
    return {
        f"{name}/{part.name}": sha256(part.read_bytes()).hexdigest() for name in TABLE_NAMES for part in list_parts(world.paths.table(name))
    }


@pytest.mark.parametrize(("ids", "rows"), [(3, 2), (5, 30)])
def test_the_size_of_ranges_slices_and_index_parts_changes_no_row(
    world: World, monkeypatch: pytest.MonkeyPatch, ids: int, rows: int
) -> None:
    add_recordings(world, 11)
    whole = build(world)
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", ids)
    monkeypatch.setattr(number_index, "ENTRIES_PER_PART", rows)
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", rows)
    monkeypatch.setattr(recording_buckets, "CODES_PER_PART", rows)
    build_recordings(world.paths)
    assert whole["recording"].height == 11
    for name in TABLE_NAMES:
        assert_frame_equal(world.read(name), whole[name])


def test_a_range_that_does_not_fit_into_memory_is_halved_to_the_same_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    add_recordings(world, 11)
    build(world)
    whole, query, sizes = hash_parts(world), recordings._query_rows, []

    def query_little(inputs: dict[str, pl.DataFrame], last_day: str, spill: Path) -> dict[str, pl.DataFrame]:
        sizes.append(inputs["source_member"]["recording_id"].n_unique())
        if sizes[-1] > 2:
            raise duckdb.OutOfMemoryException("no room")
        return query(inputs, last_day, spill)

    monkeypatch.setattr(recordings, "_query_rows", query_little)
    build_recordings(world.paths)
    assert max(sizes) == 11
    assert sum(size for size in sizes if size <= 2) == 11
    assert hash_parts(world) == whole


def test_one_recording_that_does_not_fit_into_memory_is_an_error(world: World) -> None:
    add_recordings(world, 3)
    build(world)
    with use_budget(MemoryBudget(100_000)), pytest.raises(duckdb.OutOfMemoryException):
        build_recordings(world.paths)
    assert not (world.paths.root / "work" / "spill" / "recordings").exists()


def test_a_range_without_a_recording_has_no_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 4)
    for number in (3, 17):
        world.recording(number, "store_a", f"x{number}", f"Song {number}", credit("Nova", "a1"))
    tables = build(world)
    assert tables["recording"]["recording_id"].to_list() == [3, 17]
    assert len(list_parts(world.paths.table("recording"))) == 2


def test_each_range_of_ids_is_a_part_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 4)
    add_recordings(world, 9)
    build(world)
    ids = [pl.read_parquet(part)["recording_id"].to_list() for part in list_parts(world.paths.table("recording"))]
    assert ids == [[1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_codes_keep_their_order_over_all_ranges(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_ranges, "RECORDINGS_PER_RANGE", 2)
    add_recordings(world, 9)
    codes = build(world)["recording_isrc"]
    assert codes["isrc"].is_sorted()
    assert codes["recording_id"].to_list() == list(range(9, 0, -1))


def test_an_empty_catalog_has_empty_tables(world: World) -> None:
    world.add("source_artist", "catalog_a", external_id="1", name="Nova")
    tables = build(world)
    assert [tables[name].height for name in TABLE_NAMES] == [0, 0, 0, 0]


def test_records_without_their_atom_are_refused_with_a_remedy(world: World) -> None:
    add_recordings(world, 3)
    build(world)
    write_table(TABLES["atom"], world.paths.table("atom"), world.read("atom").head(2))
    with pytest.raises(ValueError, match=r"atom_member.*names 4 records of atoms that .*atom.* lacks: link again"):
        build_recordings(world.paths)


def test_killed_step_leaves_no_rows(world: World) -> None:
    add_recordings(world, 3)
    whole = build(world)
    spill: Path = world.paths.root / "work" / "spill" / "recordings" / "member"
    spill.mkdir(parents=True)
    (spill / "run-000000000.arrow").write_bytes(b"half a run")
    build_recordings(world.paths)
    assert_frame_equal(world.read("recording"), whole["recording"])
    assert not spill.exists()


def test_the_rows_of_a_pool_are_those_of_one_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    add_recordings(world, 5)
    build(world)
    whole = hash_parts(world)
    monkeypatch.setattr(recording_ranges, "ROWS_FOR_A_POOL", 0)
    build_recordings(world.paths)
    assert hash_parts(world) == whole


def test_stages_share_one_index_of_records_until_the_records_change(world: World) -> None:
    add_recordings(world, 5)
    build(world)
    held = world.paths.root / "work" / "carried" / "recording_index"
    (first,) = held.iterdir()
    written = (first / "part-00000.npy").stat().st_mtime_ns
    build_links(world.paths)
    assert (first / "part-00000.npy").stat().st_mtime_ns == written
    world.recording(9, "store_a", "z9", "Song 9", credit("Nova", "n"))
    assert build(world)["recording"].height == 6
    (second,) = held.iterdir()
    assert second != first


@pytest.mark.parametrize("harm", ["rotten", "gone", "no checksums"])
def test_damaged_index_of_records_is_made_again(world: World, harm: str) -> None:
    add_recordings(world, 5)
    expected = build(world)["recording"]
    (folder,) = (world.paths.root / "work" / "carried" / "recording_index").iterdir()
    part = folder / "part-00000.npy"
    content = part.read_bytes()
    if harm == "rotten":
        rot(part, 0.9)
    else:
        (part if harm == "gone" else folder / "checksums.json").unlink()
    assert build(world)["recording"].equals(expected)
    assert part.read_bytes() == content
