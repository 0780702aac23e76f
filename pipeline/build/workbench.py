"""DuckDB connection of a stage over the tables of all earlier stages, with a method that turns a query into a table.

A query may name each staging table (all platforms together), and each linkage and catalog table that exists. `write` writes the tables of
a stage in their declared order. This module knows no query about the data.
"""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, pairwise
from textwrap import shorten
from typing import TYPE_CHECKING, TypeVar

import duckdb
import polars as pl

from catalog_store import row_shuffle
from catalog_store.folder_listing import list_folder
from catalog_store.memory_budget import get_budget
from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.remembered_texts import Recall, TextMemory
from catalog_store.sql_text import quote_list
from catalog_store.tables import ALL_TABLES, TABLES
from catalog_store.tables.atoms import ATOM_TABLES, render_live_atoms_sql
from catalog_store.tables.files import EvenTableWriter, list_parts, measure_parts, render_sql_source
from pipeline.build.step_fingerprint import hash_program
from pipeline.engine.checkpoints import open_checkpoints
from pipeline.engine.duckdb_session import ROWS_PER_BLOCK, open_duckdb, read_frame, stream, use_all_memory
from pipeline.engine.pool import start_workers
from pipeline.engine.progress import enter_section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from catalog_store.tables.spec import Table
    from pipeline.engine.checkpoints import Checkpoints
    from pipeline.paths import BuildPaths


Result = TypeVar("Result")

SHOWN_CHARACTERS = 120
"""Characters of a query that a message shows."""

_SESSION = "duckdb"
_WORD = re.compile(r"\w+")

ROWS_PER_JOIN = 2_000_000
"""Rows that a query of `keep_parts` joins and groups at a time. 1 GB of DuckDB did not hold the groups of 10 million recordings."""
ROWS_OF_NUMBERS = 4
"""Rows of three numbers that take the memory of one row with texts. Such steps have larger parts, because each part reads a whole table."""
LEAST_BUFFERS = "64MB"
"""Buffers that `drop_buffers` leaves."""
TEXTS_PER_BUCKET = 250_000
"""Texts that `map_texts` works on at a time: with their results some 100 MB."""
TEXTS_FOR_A_POOL = 500_000
"""Texts from which on workers pay: 5 to 20 CPU-s, and a worker takes one to start."""


def open_text_memory(paths: BuildPaths) -> TextMemory:
    """Return the texts that earlier builds of this program have read."""
    return TextMemory.open(paths.root / "work" / "carried" / "texts", hash_program(), anew=paths.relink.exists())


class QuerySteps:
    """Named steps of SQL on one connection. They live until it closes and may spill to disk."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Take a connection that nobody else uses."""
        self.connection = connection
        # Joins run in the order in which they are written. DuckDB 2.0's optimizer sees that all tables share `platform` and joins releases
        # with members on it alone, all with all: 31 s at 5,000 recordings.
        connection.execute("SET disabled_optimizers = 'join_order'")

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run a query, for results of a few rows."""
        return self.connection.execute(sql)

    def stream(self, sql: str, rows: int = ROWS_PER_BLOCK) -> Iterator[pl.DataFrame]:
        """Yield the result of `sql` in frames of up to `rows` rows."""
        return stream(self.connection, sql, rows)

    def keep(self, name: str, sql: str) -> None:
        """Materialise a named step of the stage."""
        self.execute(f'CREATE OR REPLACE TABLE "{name}" AS {sql}')

    def keep_parts(self, name: str, sql: str, rows: int) -> None:
        """Materialise a named step part by part, for joins of `rows` rows whose groups do not fit into memory together.

        `sql` has the places {part} and {parts}: it returns the rows whose number is {part} modulo {parts}.
        """
        parts = 1 + rows // ROWS_PER_JOIN
        self.keep_in_turn(name, (_choose_part(sql, part, parts) for part in range(parts)))

    def keep_platforms(self, name: str, sql: str, rows: int = 0, platforms: Sequence[str] = CATALOG_PLATFORMS) -> None:
        """Materialise a named step a platform at a time, each in parts as `keep_parts` does.

        `sql` has the place {platform} besides. Staging tables are in the order of platforms, as are steps that were made in this way: a
        query that names one reads no other. `rows`: those of all platforms together. A part of the largest platform then has up to some
        three times ROWS_PER_JOIN. `platforms`: all that the rows may have.
        """
        parts = 1 + rows // (ROWS_PER_JOIN * len(CATALOG_PLATFORMS))
        queries = (sql.replace("{platform}", platform) for platform in platforms)
        self.keep_in_turn(name, (_choose_part(query, part, parts) for query in queries for part in range(parts)))

    def keep_ranges(self, name: str, sql: str, end: int, rows: int) -> None:
        """Materialise a named step in ranges of numbers from 0 to below `end`, for joins of `rows` rows as `keep_parts` does.

        `sql` has the places {first} and {last}, the bounds of a range. A step that was made in such ranges is read in them without the
        rest, because DuckDB knows the least and the largest number of each group of rows. Each part of `keep_parts` reads all rows.
        """
        self.keep_in_turn(name, cut_ranges(sql, end, rows))

    def keep_in_turn(self, name: str, queries: Iterable[str]) -> None:
        """Materialise a named step from the results of several queries, one at least."""
        for number, sql in enumerate(queries):
            if number == 0:
                self.keep(name, sql)
            else:
                self.execute(f'INSERT INTO "{name}" {sql}')

    def read_parts(self, sql: str, rows: int) -> pl.DataFrame:
        """Return the results of `sql`, which reads a part as for `keep_parts`, one after the other."""
        parts = 1 + rows // ROWS_PER_JOIN
        return pl.concat([self.read_frame(_choose_part(sql, part, parts)) for part in range(parts)])

    def count(self, name: str) -> int:
        """Return the rows of a named step or a table."""
        return int(self.read_frame(f'SELECT count(*) FROM "{name}"').item())

    def drop(self, *names: str) -> None:
        """Drop steps that no later query reads, because held steps spill."""
        for name in names:
            self.connection.execute(f'DROP TABLE "{name}"')

    def load(self, name: str, rows: pl.DataFrame) -> None:
        """Make a frame a named step of the stage."""
        # A copy: DuckDB can spill a table of its own, but not a registered frame, which also stays outside its memory limit.
        self.connection.register("_loaded", rows.to_arrow())
        self.keep(name, "SELECT * FROM _loaded")
        self.connection.unregister("_loaded")

    def load_blocks(self, name: str, blocks: Iterable[pl.DataFrame]) -> None:
        """Make frames a named step of the stage, one after the other; there must be one at least, which may be empty."""
        for number, rows in enumerate(blocks):
            if number == 0:
                self.load(name, rows)
            else:
                self.append(name, rows)

    def append(self, name: str, rows: pl.DataFrame) -> None:
        """Append a frame to a named step of the same columns."""
        self.connection.register("_loaded", rows.to_arrow())
        self.connection.execute(f'INSERT INTO "{name}" SELECT * FROM _loaded').fetchall()
        self.connection.unregister("_loaded")

    def derive(self, name: str, sql: str, function: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Make a named step out of the rows of `sql`, each block through `function`: for texts that only Polars can read."""
        empty = function(self.read_frame(f"SELECT * FROM ({sql}) LIMIT 0"))
        self.load_blocks(name, chain([empty], map(function, self.stream(sql))))

    def show(self, name: str, rows: pl.DataFrame) -> None:
        """Make a frame a named step without a copy. It stays in memory, outside DuckDB's limit, until the connection closes."""
        self.connection.register(name, rows.to_arrow())

    def read_frame(self, sql: str) -> pl.DataFrame:
        """Return the whole result of `sql`, for columns that are meant to fit into memory (ids, keys, counts)."""
        return read_frame(self.connection, sql)


class Workbench(QuerySteps):
    """The steps of a stage over the tables of all earlier stages.

    A step that runs out of memory runs again with the memory of all processes (`use_all_memory`): no worker is busy while a query runs.

    A killed stage makes its named steps again. It goes on behind the tables that it has written and behind the finished inputs of its
    `checkpoints`: buckets of texts, and blocks that a stage runs itself.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, paths: BuildPaths, stage: str, checkpoints: Checkpoints) -> None:
        """Show no table yet. A view opens all parts of its table, and a stage reads few tables."""
        super().__init__(connection)
        self.paths = paths
        self.stage = stage
        self.checkpoints = checkpoints
        self.spill = name_spill_folder(paths, stage)
        self._hidden = {table.name: table for table in ALL_TABLES}
        self._unreadable: dict[str, duckdb.Error] = {}

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run a query, for results of a few rows."""
        self.show_inputs(sql)
        return self._run(sql, super().execute)

    def keep(self, name: str, sql: str) -> None:
        """Materialise a named step of the stage, a section of its progress."""
        # A name that begins so is a part of a step.
        if not name.startswith("_"):
            enter_section(name)
        super().keep(name, sql)

    def stream(self, sql: str, rows: int = ROWS_PER_BLOCK) -> Iterator[pl.DataFrame]:
        """Yield the result of `sql` in frames of up to `rows` rows."""
        self.show_inputs(sql)
        return super().stream(sql, rows)

    def read_frame(self, sql: str) -> pl.DataFrame:
        """Return the whole result of `sql`, for columns that are meant to fit into memory (ids, keys, counts)."""
        self.show_inputs(sql)
        return self._run(sql, super().read_frame)

    def _run(self, sql: str, query: Callable[[str], Result]) -> Result:
        try:
            return query(sql)
        except duckdb.CatalogException as error:
            # The message of DuckDB says that there is no such table, and not why.
            named = [name for name in self._unreadable if name in str(error)]
            if named:
                raise self._unreadable[named[0]] from error
            raise
        except duckdb.OutOfMemoryException:
            with use_all_memory(self.connection, self._describe(sql)):
                return query(sql)

    def _describe(self, sql: str) -> str:
        return f"{self.stage}: {shorten(sql, SHOWN_CHARACTERS)}"

    def drop_buffers(self) -> None:
        """Give DuckDB's buffers back to the system, before much work outside of it. Later queries fill them again."""
        # The tables are in a file, so this writes nothing. Buffers that a result on its way needs cannot go.
        with suppress(duckdb.OutOfMemoryException):
            self.connection.execute(f"SET memory_limit = '{LEAST_BUFFERS}'")
        self.connection.execute(f"SET memory_limit = '{get_budget().database_limit}'")

    def show_inputs(self, text: str) -> None:
        """Make a view of each table that a text names; a staging table that no platform has staged is an empty table."""
        for name in self._hidden.keys() & {*_WORD.findall(text)}:
            table = self._hidden.pop(name)
            if source := self._source_sql(table):
                # Names of tables that are no input may be words of the text. A parallel step may replace such a table between the listing
                # of its parts and their opening, and a loss of power may have torn it. The query tells whether it is an input.
                try:
                    self._show(table, source)
                except duckdb.Error as error:
                    self._unreadable[name] = error
            elif table.layer == "staging":
                self.connection.execute(table.render_ddl())

    def _show(self, table: Table, source: str) -> None:
        self._hidden.pop(table.name, None)
        self.connection.execute(f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT * FROM {source}')

    def _source_sql(self, table: Table) -> str | None:
        # The parts of the atom tables still hold the rows of deleted atoms; the view leaves them out.
        if table.name in ATOM_TABLES and self.paths.table(table.name).is_dir():
            return f"({render_live_atoms_sql(table.name, self.paths.table)})"
        if table.layer != "staging":
            folder = self.paths.table(table.name)
            return render_sql_source(folder) if list_folder(folder, "part-*.parquet") else None
        files = [file for folder in self.paths.staged(table.name) for file in list_parts(folder)]
        return f"read_parquet({quote_list(files)})" if files else None

    def derive_texts(self, name: str, sql: str, function: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Make a named step as `derive` does, for a function that `TextMemory.recall` accepts: a night reads new texts only."""
        self.load_blocks(name, self.map_texts(name, sql, partial(_recall_all, function)))

    def map_texts(self, name: str, sql: str, function: Callable[[pl.DataFrame, Recall], pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Yield `function(texts, recall)` for the distinct rows of `sql`, in buckets; many texts are read by workers.

        A bucket tells repeated rows apart, so a query of many texts needs no DISTINCT, which would hold them all.

        `recall` calls a function of texts and remembers its results. `function` must be picklable. A bucket has the same texts night after
        night, however many there are in all. There is one at least, which may be empty.
        """
        empty = self.read_frame(f"SELECT * FROM ({sql}) LIMIT 0")
        columns = ", ".join(f'"{column}"' for column in empty.columns)
        self.keep("_text", f"SELECT *, hash({columns}) AS _hash FROM ({sql})")
        rows = self.count("_text")
        buckets = 1 << (rows // TEXTS_PER_BUCKET).bit_length()
        # One pass sends all texts to their buckets. A query for each of 128 buckets took 6 minutes.
        runs = self.spill / f"{name}-texts"
        # A killed build may have cut the same texts into more runs, whose last ones would stay.
        shutil.rmtree(runs, ignore_errors=True)
        for number, block in enumerate(self.stream(f"SELECT {columns}, _hash % {buckets} AS _bucket FROM _text")):
            row_shuffle.write_run(runs, number, block.drop("_bucket"), block["_bucket"])
        self.drop("_text")
        names = [f"{self.stage}-{name}-{buckets}-{number}" for number in range(buckets)]
        memory = open_text_memory(self.paths)
        work = partial(_read_bucket, memory, function, self.spill, runs, empty)
        with start_workers(is_small=rows < TEXTS_FOR_A_POOL) as pool:
            read = self.checkpoints.run(name, work, list(enumerate(names)), pool)
        shutil.rmtree(runs, ignore_errors=True)
        memory.keep_only(f"{self.stage}-{name}", names)
        yield from map(read_spilled, read)

    def write(self, name: str, sql: str) -> int:
        """Write the result of `sql` as table `name`, in the table's order, show it to later queries and return the row count.

        The columns of `sql` must be those of the table (absent nullable ones become null).
        """
        return self._write_once(name, lambda: [sql])

    def write_in_turn(self, name: str, queries: list[str]) -> int:
        """Write table `name` as `write` does, from the results of several queries, which follow each other in the table's order."""
        return self._write_once(name, lambda: queries)

    def _write_once(self, name: str, list_queries: Callable[[], list[str]]) -> int:
        """Write a table, unless a killed build has."""
        folder = self.paths.table(name)

        def write() -> tuple[int, dict[str, int]]:
            rows = self._write(name, list_queries())
            return rows, measure_parts(folder)

        rows, parts = self.checkpoints.run_once(f"write_{name}", write)
        # Nothing but its mark says that a table in the work folder is that of this stage.
        if measure_parts(folder) != parts:
            rows, _ = write()
        self._show(TABLES[name], render_sql_source(folder))
        return rows

    def _write(self, name: str, queries: list[str]) -> int:
        table = TABLES[name]
        try:
            rows = self._write_rows(table, queries)
        except duckdb.OutOfMemoryException:
            with use_all_memory(self.connection, self._describe(name)):
                rows = self._write_rows(table, map(self._materialise, queries))
        return rows

    def _write_rows(self, table: Table, queries: Iterable[str]) -> int:
        # The engine's batches depend on its threads. Parts of a fixed size give equal bytes for equal rows.
        with EvenTableWriter(table, self.paths.table(table.name)) as writer:
            for sql in queries:
                for frame in self.stream(order_sql(table, sql), table.rows_per_part):
                    writer.append(frame)
        self.connection.execute("DROP TABLE IF EXISTS _unsorted")
        return writer.rows

    def _materialise(self, sql: str) -> str:
        """Return a query for the rows of `sql`, which are a step now. A sort after joins then has the memory without the joins."""
        super().execute(f"CREATE OR REPLACE TABLE _unsorted AS {sql}")
        return "SELECT * FROM _unsorted"


def cut_ranges(sql: str, end: int, rows: int) -> list[str]:
    """Return the queries of `keep_ranges`."""
    parts = 1 + rows // ROWS_PER_JOIN
    bounds = [end * part // parts for part in range(parts + 1)]
    return [sql.replace("{first}", str(first)).replace("{last}", str(after - 1)) for first, after in pairwise(bounds)]


def _choose_part(sql: str, part: int, parts: int) -> str:
    # Regular expressions have braces, too, so `format` does not serve.
    return sql.replace("{parts}", str(parts)).replace("{part}", str(part))


def _recall_all(function: Callable[[pl.DataFrame], pl.DataFrame], texts: pl.DataFrame, recall: Recall) -> pl.DataFrame:
    return recall(texts, function)


def _read_bucket(
    memory: TextMemory,
    function: Callable[[pl.DataFrame, Recall], pl.DataFrame],
    folder: Path,
    runs: Path,
    empty: pl.DataFrame,
    job: tuple[int, str],
) -> Path:
    number, bucket = job
    texts = row_shuffle.read_bucket(runs, number).unique(maintain_order=True)
    # A shuffle without any row knows no columns.
    texts = texts if texts.width else empty
    return spill_frame(folder / f"{bucket}.arrow", function(texts, partial(memory.recall, bucket)))


def spill_frame(file: Path, rows: pl.DataFrame) -> Path:
    """Write the result of a finished input, and return the file."""
    with write_aside(file) as pending:
        rows.write_ipc(pending, compression="lz4")
    return file


def read_spilled(file: Path) -> pl.DataFrame:
    """Return what `spill_frame` has written."""
    return pl.read_ipc(file)


def order_sql(table: Table, sql: str) -> str:
    """Return `sql` in the table's order. For reproducible bytes its rows must be unique in the order's columns."""
    order = ", ".join(f'"{column}" NULLS FIRST' for column in table.order)
    return f"SELECT * FROM ({sql}) ORDER BY {order}"


def name_spill_folder(paths: BuildPaths, stage: str) -> Path:
    """Return the folder of the data that a stage spills."""
    return paths.root / "work" / "spill" / stage


@contextmanager
def open_workbench(paths: BuildPaths, stage: str) -> Iterator[Workbench]:
    """Open the workbench of `stage`; its spilled data is removed when it closes. Only a kill or an interruption leaves the folder."""
    with open_checkpoints(name_spill_folder(paths, stage)) as checkpoints:
        # DuckDB spills into a folder of its own: what a killed process left there belongs to no connection.
        session = checkpoints.folder / _SESSION
        shutil.rmtree(session, ignore_errors=True)
        with open_duckdb(session, file=session / "steps.duckdb") as connection:
            yield Workbench(connection, paths, stage, checkpoints)
