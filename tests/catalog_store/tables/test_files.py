from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import (
    EvenTableWriter,
    TableWriter,
    count_part_rows,
    count_rows,
    list_parts,
    measure_bytes,
    read_table,
    render_sql_source,
    scan_table,
    write_table,
)
from tests.unreadable_folders import refuse_listing

if TYPE_CHECKING:
    from pathlib import Path

LABEL = TABLES["label"]


def rows(*ids: int) -> pl.DataFrame:
    return LABEL.conform(pl.DataFrame({"label_id": ids, "name": [f"L{number}" for number in ids], "release_count": 1}))


def test_parts_are_written_in_call_order_and_read_back_in_it(tmp_path: Path) -> None:
    with TableWriter(LABEL, tmp_path / "label") as writer:
        writer.write(rows(3, 1))
        writer.write(rows().clear())
        writer.write(rows(2))
    assert [path.name for path in list_parts(tmp_path / "label")] == ["part-00000.parquet", "part-00001.parquet"]
    assert read_table(LABEL, tmp_path / "label")["label_id"].to_list() == [3, 1, 2]
    assert writer.rows == count_rows(tmp_path / "label") == 3


@pytest.mark.parametrize("frames", [[range(7)], [range(2), range(2, 7)], [[number] for number in range(7)]])
def test_even_parts_have_the_rows_that_the_table_sets_however_frames_are_cut(tmp_path: Path, frames: list[list[int]]) -> None:
    with EvenTableWriter(replace(LABEL, rows_per_part=3), tmp_path / "label") as writer:
        for ids in frames:
            writer.append(rows(*ids))
    assert [count_part_rows(path) for path in list_parts(tmp_path / "label")] == [3, 3, 1]
    assert read_table(LABEL, tmp_path / "label")["label_id"].to_list() == list(range(7))


def test_a_single_frame_is_sorted_by_the_tables_order(tmp_path: Path) -> None:
    assert write_table(LABEL, tmp_path / "label", rows(3, 1, 2)) == 3
    assert read_table(LABEL, tmp_path / "label")["label_id"].to_list() == [1, 2, 3]


def test_several_frames_are_taken_as_sorted(tmp_path: Path) -> None:
    assert write_table(LABEL, tmp_path / "label", [rows(3), rows(1)]) == 2
    assert read_table(LABEL, tmp_path / "label")["label_id"].to_list() == [3, 1]


def test_an_empty_table_is_one_part_without_rows(tmp_path: Path) -> None:
    write_table(LABEL, tmp_path / "label", [])
    assert len(list_parts(tmp_path / "label")) == 1
    assert read_table(LABEL, tmp_path / "label").schema == LABEL.polars_schema


def test_nothing_is_visible_before_the_end_and_nothing_changes_on_failure(tmp_path: Path) -> None:
    folder = tmp_path / "label"
    write_table(LABEL, folder, rows(1))

    def fail() -> None:
        with TableWriter(LABEL, folder) as writer:
            writer.write(rows(2))
            assert read_table(LABEL, folder)["label_id"].to_list() == [1]
            raise RuntimeError("broken in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert read_table(LABEL, folder)["label_id"].to_list() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["label"]


def test_leftovers_of_a_killed_writer_are_cleared(tmp_path: Path) -> None:
    (tmp_path / "label.pending").mkdir()
    (tmp_path / "label.pending" / "part-00007.parquet").write_bytes(b"half")
    write_table(LABEL, tmp_path / "label", rows(1))
    assert count_rows(tmp_path / "label") == 1


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_table(LABEL, tmp_path / name, rows(*range(1, 2_000)))
    assert list_parts(tmp_path / "one")[0].read_bytes() == list_parts(tmp_path / "two")[0].read_bytes()
    assert measure_bytes(tmp_path / "one") == list_parts(tmp_path / "one")[0].stat().st_size


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="missing columns"):
        write_table(
            LABEL,
            tmp_path / "label",
            pl.DataFrame({"label_id": [1]}).with_columns(colour=pl.lit("red")).select("colour", "label_id").sort("label_id"),
        )
    assert not (tmp_path / "label").exists()


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no table at .*nothing"):
        scan_table(LABEL, tmp_path / "nothing")


def test_table_that_a_snapshot_has_lost_is_told_from_one_that_was_never_built(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").touch()
    with pytest.raises(FileNotFoundError, match=r"the snapshot has lost it: roll back"):
        scan_table(LABEL, tmp_path / "tables" / "label")
    with pytest.raises(FileNotFoundError, match="build the stage that writes it first"):
        scan_table(LABEL, tmp_path / "work" / "catalog" / "label")


def test_duckdb_reads_the_same_rows_also_below_a_quoted_path(tmp_path: Path) -> None:
    folder = tmp_path / "it's" / "label"
    write_table(LABEL, folder, rows(1, 2))
    assert duckdb.sql(f"SELECT label_id FROM {render_sql_source(folder)} ORDER BY 1").fetchall() == [(1,), (2,)]


def test_unreadable_table_is_an_error_and_no_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-00000.parquet").write_bytes(b"1234")
    assert measure_bytes(tmp_path) == 4
    refuse_listing(monkeypatch, tmp_path / "table")
    with pytest.raises(PermissionError):
        list_parts(tmp_path / "table")
    with pytest.raises(PermissionError):
        measure_bytes(tmp_path)
