"""DuckDB with a bounded appetite: a memory limit, a place to spill to, rows in the order of the input, results as a stream of frames.

Every connection of the pipeline that joins or sorts more than a block of a dump is opened here. What must not live here: SQL.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from pipeline.engine.local import worker_count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY_LIMIT = "2GB"
"""Of DuckDB's own buffers; what lies above is spilled. The process stays below 4 GB with a block of frames beside it."""
ROWS_PER_BLOCK = 250_000
"""Rows that are handed over at a time: some 100 MB of nested frames."""


@contextmanager
def bounded_duckdb(spill: Path, memory_limit: str = MEMORY_LIMIT) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database that spills into `spill` (created, and left to the caller to remove)."""
    spill.mkdir(parents=True, exist_ok=True)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "temp_directory": str(spill),
        "threads": worker_count(),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(config=settings)
    try:
        yield connection
    finally:
        connection.close()


def stream(connection: duckdb.DuckDBPyConnection, sql: str, rows: int = ROWS_PER_BLOCK) -> Iterator[pl.DataFrame]:
    """The result of `sql` in frames of up to `rows` rows. Each call has a cursor of its own: several results can be read in turns."""
    with connection.cursor() as cursor:
        for batch in cursor.sql(sql).to_arrow_reader(rows):
            yield pl.DataFrame(pl.from_arrow(batch))


def frame(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """The whole result of a query whose answer is known to be small."""
    return pl.DataFrame(pl.from_arrow(connection.sql(sql).to_arrow_table()))
