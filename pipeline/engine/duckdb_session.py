"""DuckDB in bounded memory: the budget of its process, a folder to spill to, rows in the order of the input, results as a stream of frames.

Every connection of the pipeline that joins or sorts more than a block of a dump is opened here. The callers bring the queries.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from catalog_store.memory_budget import get_budget
from pipeline.engine.full_disk import is_full_disk
from pipeline.engine.pool import count_workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

ROWS_PER_BLOCK = 250_000
"""Rows that are handed over at a time: about 100 MB of nested frames."""


class MemoryShortageError(Exception):
    """A step does not fit into the memory of the build, not even alone. The message says which, and the setting that helps."""


@contextmanager
def open_duckdb(spill: Path, memory_limit: str | None = None, *, file: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database that spills into `spill`. Creates the folder; the caller removes it.

    `memory_limit` is that of DuckDB's buffers (default: `get_budget().database_limit`). With blocks of the result beside its buffers the
    process stays within its budget (`get_budget().process_bytes`).

    `file`: a new file of the tables (default: they are in memory). DuckDB writes a table of a file once, compressed. A spilled table in
    memory is written as it is, and again each time it was read.
    """
    spill.mkdir(parents=True, exist_ok=True)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit or get_budget().database_limit,
        "temp_directory": str(spill),
        "threads": count_workers(),
        # A build needs no network: DuckDB must not fetch an extension because a query names an unknown function.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(str(file or ":memory:"), config=settings)
    # Nobody opens the file again.
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    # DuckDB takes a pool worker for an interactive session, because its main module is not a file, and would draw on standard output.
    connection.execute("SET enable_progress_bar = false")
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def use_all_memory(connection: duckdb.DuckDBPyConnection, step: str) -> Iterator[None]:
    """Run a block in which `step` is tried again after it ran out of memory: with the shares of all processes, and with one thread.

    No other process may work meanwhile. Each thread pins buffers of its own, so one thread needs the least.

    Raises:
        MemoryShortageError: when the block runs out of memory, too.
        duckdb.OutOfMemoryException: when the disk has no room for spilled rows.
    """
    budget = get_budget()
    log.warning("%s: %s do not suffice, so it runs again with %s", step, budget.database_limit, budget.lone_database_limit)
    connection.execute(f"SET memory_limit = '{budget.lone_database_limit}'")
    connection.execute("SET threads = 1")
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        if is_full_disk(error):
            raise
        message = f"{step} needs more than {budget.lone_database_limit}, DuckDB's part of the memory of a build: raise CATALOG_MEMORY"
        raise MemoryShortageError(message) from error
    finally:
        connection.execute(f"SET threads = {count_workers()}")
        connection.execute(f"SET memory_limit = '{budget.database_limit}'")


def stream(connection: duckdb.DuckDBPyConnection, sql: str, rows: int = ROWS_PER_BLOCK) -> Iterator[pl.DataFrame]:
    """Yield the result of `sql` in frames of up to `rows` rows. Each call has its own cursor, so results can be read in turns."""
    # A second query on one connection would end the stream of the first.
    with connection.cursor() as cursor:
        for batch in cursor.sql(sql).to_arrow_reader(rows):
            yield pl.DataFrame(pl.from_arrow(batch))


def read_frame(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """Return the whole result of a query whose answer is known to be small."""
    return pl.DataFrame(pl.from_arrow(connection.sql(sql).to_arrow_table()))
