"""Tests of odd and hostile SQLite and Parquet files: read in bounded memory and time, refused by name, or rejected."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from pipeline.dumps.errors import DumpError
from pipeline.dumps.readers import parquet_files
from pipeline.dumps.readers.parquet_files import KEPT_CHARACTERS, read_batches
from tests.pipeline.dumps.intake.confined import stage_confined

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pipeline.dumps.conftest import Case

PARQUET = ["streamsvc_a parquet", "streamsvc_b feed"]


@pytest.fixture
def database(case: Callable[[str], Case]) -> Case:
    return case("streamsvc_a sqlite")


def recordings(damaged: Case) -> pl.DataFrame:
    return pl.read_parquet(damaged.folder / "source_recording" / "*.parquet").sort("external_id")


@pytest.fixture
def unsettled(database: Case) -> Case:
    """Return a copy of a database that was made during a write: the last change is in the log beside it."""
    original = database.dump.parent / "export.sqlite3"
    database.file.rename(original)
    with sqlite3.connect(original) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("UPDATE tracks SET name = 'changed' WHERE rowid = 1")
        connection.commit()
        for path in original.parent.glob("export.sqlite3*"):
            if path.is_file():
                shutil.copy(path, database.dump)
    connection.close()
    for path in original.parent.glob("export.sqlite3*"):
        path.unlink()
    return database


def test_database_with_a_log_of_changes_beside_it_is_refused(unsettled: Case) -> None:
    said = unsettled.refusal()
    assert "export.sqlite3-wal" in said
    assert "wal_checkpoint" in said


def test_database_is_read_with_its_changes_once_they_are_settled(unsettled: Case) -> None:
    with pytest.raises(DumpError):
        unsettled.stage()
    connection = sqlite3.connect(unsettled.file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    unsettled.stage()
    assert "changed" in recordings(unsettled)["title"].to_list()


def test_database_with_a_hot_journal_is_refused_and_with_a_settled_one_read(database: Case) -> None:
    journal = database.dump / "export.sqlite3-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    assert "export.sqlite3-journal" in database.refusal()
    journal.write_bytes(bytes(512))
    database.stage()


def test_row_ids_far_apart_are_read_like_others(database: Case) -> None:
    database.stage()
    before = recordings(database)
    with sqlite3.connect(database.file) as connection:
        last = connection.execute("SELECT max(rowid) FROM tracks").fetchone()[0]
        for table, column in (("tracks", "rowid"), ("track_artists", "track_rowid")):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE CAST({column} AS INTEGER) = ?", (2**62, last))
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE CAST({column} AS INTEGER) = 1", (-(2**62),))
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE CAST({column} AS INTEGER) = 2", (2**61,))
    connection.close()
    assert stage_confined("streamsvc_a", database.dump, database.folder) == ""
    assert_frame_equal(recordings(database), before)


def test_sparse_row_ids_are_cut_into_blocks_of_rows(database: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    database.stage()
    before = recordings(database)
    with sqlite3.connect(database.file) as connection:
        connection.execute("UPDATE tracks SET rowid = rowid * 1000000007")
        connection.execute("UPDATE track_artists SET track_rowid = track_rowid * 1000000007")
    connection.close()
    monkeypatch.setattr("pipeline.dumps.platforms.streamsvc_a.sqlite_export.ROWS_PER_BLOCK", 7)
    database.stage()
    assert_frame_equal(recordings(database), before)


def test_view_in_the_place_of_a_table_is_refused(database: Case) -> None:
    with sqlite3.connect(database.file) as connection:
        connection.execute("ALTER TABLE artist_genres RENAME TO kept")
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 AS rowid, i AS artist_rowid, 'x' AS genre FROM n"
        )
        connection.execute(f"CREATE VIEW artist_genres AS {endless}")
    connection.close()
    assert "artist_genres is a view" in database.refusal()


def test_value_larger_than_a_row_may_be_is_refused(database: Case) -> None:
    with sqlite3.connect(database.file) as connection:
        connection.execute("UPDATE tracks SET name = CAST(zeroblob(70000000) AS TEXT) WHERE rowid = 1")
    connection.close()
    assert "export.sqlite3" in database.refusal()


NO_TEXTS = [
    pl.Series([["Name"]]),
    pl.Series([{"title": "Name"}]),
    pl.Series([b"Name"]),
    pl.Series([b"\xff\xfe"]),
    pl.Series([[{"a": ["Name"]}]]),
]


@pytest.mark.parametrize("form", PARQUET)
@pytest.mark.parametrize("values", NO_TEXTS, ids=str)
def test_title_column_that_holds_no_text_is_refused_by_its_type(case: Callable[[str], Case], form: str, values: pl.Series) -> None:
    damaged = case(form)
    frame = pl.read_parquet(damaged.file)
    column = next(name for name in ("nameDefault", "name") if name in frame.columns)
    frame.with_columns(values.new_from_index(0, frame.height).alias(column)).write_parquet(damaged.file)
    said = damaged.refusal()
    assert "wrong_type" in said
    assert damaged.file.name in said
    assert column.lower() in said.lower()


@pytest.mark.parametrize("form", PARQUET)
@pytest.mark.parametrize("values", NO_TEXTS, ids=str)
def test_optional_column_that_holds_no_text_is_left_out_and_rejected(case: Callable[[str], Case], form: str, values: pl.Series) -> None:
    damaged = case(form)
    frame = pl.read_parquet(damaged.file)
    column = "popularity" if form == "streamsvc_a parquet" else "isrc"
    frame.with_columns(values.new_from_index(0, frame.height).alias(column)).write_parquet(damaged.file)
    wrong = damaged.rejects().filter(reason="wrong_type")
    assert wrong.select("severity", "field", "place").rows() == [("field", column, "whole column")]
    file = damaged.file.name
    assert file in wrong["source_file"][0]


def repeat_in_dictionary(damaged: Case, text: str, rows: int) -> None:
    """Write a file with one long name that all rows share: a few kilobytes on disk."""
    table = pq.read_table(damaged.file)
    columns = {name: table[name].take(pa.array([0] * rows)) for name in table.column_names}
    name = next(name for name in ("nameDefault", "name") if name in columns)
    columns[name] = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    columns["id"] = pa.array([f"{number}" for number in range(rows)])
    pq.write_table(pa.table(columns), damaged.file, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30)


@pytest.mark.parametrize("form", [PARQUET[0], pytest.param(PARQUET[1], marks=pytest.mark.long)])
def test_dictionary_bomb_is_read_or_refused_within_bounded_memory(case: Callable[[str], Case], form: str) -> None:
    damaged = case(form)
    before = damaged.file.read_bytes()
    repeat_in_dictionary(damaged, "x" * (20 << 20), 400)
    assert damaged.file.stat().st_size < 1 << 20
    said = stage_confined(damaged.platform, damaged.dump, damaged.folder)
    assert said.startswith("DumpError"), said
    damaged.file.write_bytes(before)
    damaged.stage()
    assert recordings(damaged).height


@pytest.mark.parametrize("form", PARQUET)
def test_column_that_announces_more_than_memory_holds_is_refused_unread(
    case: Callable[[str], Case], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = case(form)
    monkeypatch.setattr(parquet_files, "LARGEST_CHUNK_BYTES", 100)
    said = damaged.refusal()
    assert "at most 100 can be read" in said
    assert damaged.file.name in said


def test_batches_hold_all_rows_in_order_and_cut_long_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "BATCH_BYTES", 1 << 20)
    long = "y" * (KEPT_CHARACTERS + 10)
    texts = [long if number % 3 else f"{number}" for number in range(1_000)]
    frame = pl.DataFrame({"number": range(1_000), "text": texts, "nested": [[{"a": text}] for text in texts]})
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=300)
    found = list(read_batches(tmp_path / "x.parquet", 400))
    assert len(found) > 3
    whole = pl.concat(found)
    assert whole["number"].to_list() == list(range(1_000))
    assert whole["text"].to_list() == [text[:KEPT_CHARACTERS] for text in texts]
    assert whole["nested"].to_list() == frame["nested"].to_list()
