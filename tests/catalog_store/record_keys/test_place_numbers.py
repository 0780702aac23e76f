"""Tests that the files beside releases and tracks agree with the tables.

A file that does not fit or cannot be read is ignored, and the tables answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.record_keys import place_numbers as laid_down
from catalog_store.record_keys.numbers import number_record
from catalog_store.record_keys.place_numbers import FOLDER, read_place_numbers, select_barcoded, select_placed, write_all_place_numbers
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.dumps.staging.staging_writer import StagingWriter

if TYPE_CHECKING:
    from pathlib import Path

PLATFORM = "store_a"
GTIN = "04006381333931"


def releases(*codes: str | None) -> pl.DataFrame:
    rows = [
        {"platform": PLATFORM, "release_id": f"r{number}", "title": "Album", "artists": [], "gtin": code, "is_compilation": False}
        for number, code in enumerate(codes)
    ]
    return TABLES["source_release"].conform(pl.DataFrame([{**row, "is_official": True} for row in rows]))


def tracks(*spots: tuple[int | None, int | None]) -> pl.DataFrame:
    rows = [
        {"platform": PLATFORM, "release_id": "r0", "external_id": f"t{number}", "disc_number": disc, "track_number": track}
        for number, (disc, track) in enumerate(spots)
    ]
    schema = {name: TABLES["source_release_track"].polars_schema[name] for name in rows[0]}
    return TABLES["source_release_track"].conform(pl.DataFrame(rows, schema=schema))


OF, AT = releases(GTIN, None), tracks((1, 3), (None, 4), (2, 1023), (1, 1024), (64, 1), (1, None))


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    """Staged as adapters do it."""
    with StagingWriter(PLATFORM, tmp_path) as out:
        for name, rows in (("source_release", OF), ("source_release_track", AT)):
            out.count_read(name, rows.height)
            out.write(name, rows)
    return tmp_path


def numbers(staging: Path, name: str) -> pl.DataFrame:
    return pl.concat(read_place_numbers(staging, name))


def test_tracks_with_a_position_get_place_numbers() -> None:
    assert select_barcoded(OF)["gtin"].to_list() == [int(GTIN)]
    stands = select_placed(AT)
    assert stands["spot"].to_list() == [1024 + 3, 1024 + 4, 2 * 1024 + 1023]
    assert stands["record"].to_list() == AT.select(number_record()).to_series().head(3).to_list()
    assert stands["release"].unique().to_list() == select_barcoded(OF)["release"].to_list()


def test_staging_writes_place_numbers_and_linkage_reads_no_tables(staging: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laid_down, "FORMS", {})
    assert numbers(staging, "source_release").equals(select_barcoded(OF))
    assert numbers(staging, "source_release_track").equals(select_placed(AT))


@pytest.mark.parametrize("harm", ["gone", "torn", "empty", "another part's", "of other code"])
def test_damaged_or_outdated_place_numbers_are_computed_from_the_tables(harm: str, staging: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = AT.with_columns(pl.col("track_number") + 1)
    for file in (staging / FOLDER).iterdir():
        if harm == "gone":
            file.unlink()
        elif harm in ("torn", "empty"):
            file.write_bytes(file.read_bytes()[:100] if harm == "torn" else b"")
        elif harm == "of other code":
            pl.DataFrame({"release": [0]}).write_ipc(file)
    if harm == "another part's":
        write_table(TABLES["source_release_track"], staging / "source_release_track", [moved])
    elif harm == "of other code":
        monkeypatch.setattr(laid_down, "_MADE_BY", "another")
    assert numbers(staging, "source_release").equals(select_barcoded(OF))
    assert numbers(staging, "source_release_track").equals(select_placed(moved if harm == "another part's" else AT))


def test_tables_that_others_have_staged_are_numbered_part_by_part(staging: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(TABLES["source_release_track"], staging / "source_release_track", [AT.head(1), AT.tail(-1)])
    write_all_place_numbers(staging)
    monkeypatch.setattr(laid_down, "FORMS", {})
    assert [rows.height for rows in read_place_numbers(staging, "source_release_track")] == [1, 2]
    assert numbers(staging, "source_release_track").equals(select_placed(AT))
