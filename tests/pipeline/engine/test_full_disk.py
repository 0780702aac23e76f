"""Tests that a full disk is recognised behind the errors of every library that writes for a build."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pytest

from catalog_store.memory_budget import MemoryBudget, use_budget
from pipeline.engine.duckdb_session import open_duckdb, use_all_memory
from pipeline.engine.full_disk import is_full_disk

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = Path("/dev/full")
"""A file of the system that is always full."""
SORTED_ROWS = "SELECT count(*) FROM (SELECT hash(n) AS h FROM range(4_000_000) AS t(n) ORDER BY h LIMIT 3_999_999)"


def fill_sqlite() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA max_page_count = 2")
    database.execute("CREATE TABLE label AS SELECT zeroblob(100000)")


def spill(folder: Path) -> None:
    """Sort more rows than fit into memory, on a disk with next to no room."""
    with open_duckdb(folder, "30MB") as connection:
        connection.execute("SET max_temp_directory_size = '1MB'")
        connection.execute(SORTED_ROWS)


@pytest.mark.parametrize(
    "write",
    [
        lambda: FULL.write_bytes(b"x"),
        lambda: pl.DataFrame({"n": range(1_000_000)}).write_parquet(FULL),
        lambda: pl.DataFrame({"n": range(1_000_000)}).write_ipc(FULL),
        lambda: duckdb.sql(f"COPY (SELECT * FROM range(1_000_000)) TO '{FULL}' (FORMAT csv, USE_TMP_FILE false)"),
        fill_sqlite,
    ],
    ids=["Python", "Parquet", "Arrow", "DuckDB", "SQLite"],
)
def test_error_of_a_library_that_writes_to_a_full_disk_is_recognised(write: Callable[[], object]) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has its own
        write()
    assert is_full_disk(raised.value)


def test_spilling_to_a_full_disk_is_no_shortage_of_memory(tmp_path: Path) -> None:
    with pytest.raises(duckdb.OutOfMemoryException) as raised:
        spill(tmp_path)
    assert is_full_disk(raised.value)
    with (
        use_budget(MemoryBudget(60_000_000)),
        open_duckdb(tmp_path) as connection,
        pytest.raises(duckdb.OutOfMemoryException),
        use_all_memory(connection, "labels"),
    ):
        spill(tmp_path)


def test_text_of_the_catalog_in_an_error_is_no_full_disk() -> None:
    assert not is_full_disk(ValueError("No space left on device"))
    with pytest.raises(duckdb.Error) as raised:
        duckdb.sql("SELECT 'disk full'::INT").fetchall()
    assert not is_full_disk(raised.value)
    with pytest.raises(ValueError, match="cannot reshape") as other:
        np.zeros(3).reshape(2, 2)
    assert not is_full_disk(other.value)
