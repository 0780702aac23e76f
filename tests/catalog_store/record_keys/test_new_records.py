"""Tests of the file of new records that staging writes: the records that the previous staging did not hold.

A night that needs more finds it among all records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.record_keys.content_hash import LINKED_COLUMNS, compute_content_hash
from catalog_store.record_keys.new_records import FILE, NewRecords, read_new_records
from catalog_store.tables import TABLES
from pipeline.dumps.staging.staging_writer import StagingWriter
from pipeline.linkage.staged_records import read_records_with
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from pathlib import Path

PLATFORM = "store_a"


def records(*titles: str, popularity: float = 0.5) -> pl.DataFrame:
    rows = [
        {
            "platform": PLATFORM,
            "external_id": title.split()[0],
            "link_id": title.split()[0],
            "title": title,
            "artists": [{"artist_id": "7", "name": "Cher", "role": "primary"}],
            "isrcs": [],
            "is_video": False,
            "traits": [],
            "popularity": popularity,
        }
        for title in titles
    ]
    return TABLES["source_recording"].conform(pl.DataFrame(rows))


def stage(paths: BuildPaths, rows: pl.DataFrame) -> Path:
    folder = paths.staging(PLATFORM)
    with StagingWriter(PLATFORM, folder) as out:
        out.count_read("source_recording", rows.height)
        out.write("source_recording", rows)
    return folder


def linked(*titles: str) -> pl.DataFrame:
    return records(*titles).with_columns(content_hash=compute_content_hash()).select(*LINKED_COLUMNS, "content_hash").sort("content_hash")


FIRST = [f"{number} Halo" for number in range(40)]


@pytest.fixture
def paths(tmp_path: Path) -> BuildPaths:
    """Staged once."""
    paths = BuildPaths(tmp_path)
    stage(paths, records(*FIRST))
    return paths


def test_records_of_the_previous_staging_are_not_new(paths: BuildPaths) -> None:
    assert read_new_records(paths.staging(PLATFORM)) is None
    folder = stage(paths, records(*FIRST[:-1], "39 Hello", popularity=0.9))
    laid_aside = read_new_records(folder)
    assert laid_aside is not None
    assert laid_aside.equals(linked("39 Hello"))


def test_too_many_new_records_write_no_file(paths: BuildPaths) -> None:
    folder = stage(paths, records(*FIRST[:-2], "38 Hello", "39 Hello"))
    assert not (folder / FILE).exists()


@pytest.mark.parametrize("file", ["laid aside", "gone"])
def test_records_are_found_at_any_place(file: str, paths: BuildPaths) -> None:
    folder = stage(paths, records(*FIRST[:-1], "39 Hello"))
    if file == "gone":
        (folder / FILE).unlink()
    wanted = linked("39 Hello", "3 Halo", "4 Goodbye")
    assert read_records_with(paths, wanted["content_hash"]).sort("content_hash").equals(linked("39 Hello", "3 Halo"))


def test_linkage_reads_only_the_new_records_when_they_are_enough(paths: BuildPaths) -> None:
    folder = stage(paths, records(*FIRST[:-1], "39 Hello"))
    (folder / "source_recording" / "part-00000.parquet").write_bytes(b"no table")
    assert read_records_with(paths, linked("39 Hello")["content_hash"]).equals(linked("39 Hello"))


def test_a_torn_table_of_the_night_before_costs_the_shortcut_and_nothing_else(paths: BuildPaths) -> None:
    (paths.staging(PLATFORM) / "source_recording" / "part-00000.parquet").write_bytes(b"no table")
    folder = stage(paths, records(*FIRST[:-1], "39 Hello"))
    assert read_new_records(folder) is None
    assert read_records_with(paths, linked("39 Hello")["content_hash"]).equals(linked("39 Hello"))


def test_waiting_records_do_not_keep_the_texts_of_their_part(paths: BuildPaths) -> None:
    first = [f"{number} Halo of a title that is too long to be part of a view" for number in range(4_000)]
    found = NewRecords(stage(paths, records(*first)))
    found.gather(records(*first[1:], "5000 Sun").with_columns(content_hash=compute_content_hash()))
    (waiting,) = found._found
    assert waiting["title"].to_list() == ["5000 Sun"]
    assert waiting.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size() < 10_000
