"""Unpacked tables as relations of a bounded DuckDB: usable records, iteration in blocks, dangling references.

Every module that stages rows of catalog_b queries through `Relations`. Out of scope: what is staged from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import UUID_SHAPE
from catalog_store.sql_text import quote_text
from catalog_store.tables import TABLES
from pipeline.dumps.platforms.catalog_b.table_layouts import MEMBERS
from pipeline.dumps.staging.column_bounds import apply_bounds
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.engine.duckdb_session import read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

BLOCK_LINES = 500_000
"""Records that are joined at a time: their neighbours fit into memory, and 40 million of them make 80 scans of the smaller tables."""
BLOCK = "block"
"""Name of the relation that holds the records of the current block."""

_RECORDS = {
    "recording": "source_recording",
    "release": "source_release",
    "artist": "source_artist",
    "label": "source_label",
    "work": "source_work",
}


@dataclass(frozen=True)
class Relations:
    """All tables of `table_layouts.py` as views of the same names, with a `line` column. The five record tables lack rejected records."""

    connection: duckdb.DuckDBPyConnection
    out: StagingWriter
    place_folder: Path | None = None
    """Folder of tables whose rows have `source_file` and `place`. Without it, a row's place is its line in the member."""

    def read_rows(self, sql: str) -> Iterator[pl.DataFrame]:
        """Yield a large answer in frames, in the order of the query."""
        return stream(self.connection, sql)

    def read_all(self, sql: str) -> pl.DataFrame:
        """Return an answer that fits into memory."""
        return read_frame(self.connection, sql)

    def read_number(self, sql: str) -> int:
        """Return the one number of a query."""
        answer = self.connection.execute(sql).fetchall()[0][0]  # all: the connection refuses other work before a result is read out
        return int(answer or 0)

    def run(self, sql: str) -> None:
        """Run a statement without an answer."""
        self.connection.execute(sql)

    def create(self, name: str, rows: pl.DataFrame) -> None:
        """Create a relation from a frame."""
        self.connection.register("delivered_rows", rows.to_arrow())
        self.run(f"CREATE TABLE {name} AS SELECT * FROM delivered_rows")
        self.connection.unregister("delivered_rows")

    def iterate_blocks(self, table: str, lines: int = BLOCK_LINES) -> Iterator[int]:
        """Walk `table` in file order: at each step the view BLOCK holds its next `lines` lines. Yield the number of records in it.

        The count is taken before anything is joined, so that a join that loses or repeats records unbalances the books.
        """
        last = self.read_number(f"SELECT max(line) FROM {table}")
        # By line and not by OFFSET, which would read all rows before it again for each block.
        for start in range(1, last + 1, lines):
            self.run(f"CREATE OR REPLACE VIEW {BLOCK} AS SELECT * FROM {table} WHERE line >= {start} AND line < {start + lines}")
            yield self.read_number(f"SELECT count(*) FROM {BLOCK}")
            if last > lines:
                self.out.report(f"{table}: {min(start + lines - 1, last):,} of {last:,} lines staged")

    def write(self, entity: str, table: str, rows: pl.DataFrame) -> None:
        """Stage rows whose `line` is their line in `table`."""
        if self.place_folder is None:
            self.out.write(entity, rows.with_columns(source_file=pl.lit(f"mbdump/{table}")))
            return
        # Lines are numbers of our own: the place in the file is looked up for rejected records only.
        kept, rejects = apply_bounds(TABLES[entity], rows)
        for found in rejects:
            numbered = found.with_columns(line=pl.col("place").str.strip_prefix("line ").cast(pl.Int64)).drop("source_file", "place")
            self.out.write_rejects(self._add_places(numbered, _build_source(self.place_folder, table)).drop("line"))
        self.out.write(entity, kept)

    def reject_values(self, entity: str, table: str, field: str, reason: Reason, sql: str) -> None:
        """Add a `field` reject per row (line, record_id, value) of `sql`; the rows are in `table`."""
        for rows in self.read_rows(sql):
            self.reject_rows(entity, table, field, reason, rows)

    def reject_rows(self, entity: str, table: str, field: str, reason: Reason, rows: pl.DataFrame) -> None:
        """Add a `field` reject per given row (line, record_id, value)."""
        if rows.height:
            self.out.write_rejects(
                self._reject(rows.with_columns(reason=pl.lit(reason.value), field=pl.lit(field)), entity, table, "field")
            )

    def reject_dangling(self, entity: str, table: str, column: str, target: str, where: str = "TRUE") -> None:
        """Add a `field` reject per row of `table` whose `column` is the `id` of no staged row of `target`."""
        sql = (
            f"SELECT t.line, NULL::VARCHAR record_id, t.{column}::VARCHAR AS value FROM {table} t "
            f"ANTI JOIN {target} x ON t.{column} = x.id WHERE t.{column} IS NOT NULL AND {where} ORDER BY t.line"
        )
        self.reject_values(entity, table, f"{table}.{column}", Reason.DANGLING_REFERENCE, sql)

    def reject_records(self, entity: str, table: str, rows: pl.DataFrame) -> None:
        """Add a `row` reject per rejected record (line, record_id, value, reason)."""
        if rows.height:
            self.out.write_rejects(self._reject(rows, entity, table, "row"))

    def _reject(self, rows: pl.DataFrame, entity: str, table: str, severity: str) -> pl.DataFrame:
        named = (
            _add_member_places(rows, table)
            if self.place_folder is None
            else self._add_places(rows, _build_source(self.place_folder, table))
        )
        return named.drop("line").with_columns(entity=pl.lit(entity), severity=pl.lit(severity))

    def _add_places(self, rows: pl.DataFrame, source: str) -> pl.DataFrame:
        with self.connection.cursor() as cursor:
            cursor.register("wanted", rows.select("line").unique().to_arrow())
            found = read_frame(cursor, f"SELECT line, source_file, place FROM {source} SEMI JOIN wanted USING (line)")
        return rows.join(found, on="line", how="left", maintain_order="left")


def open_relations(connection: duckdb.DuckDBPyConnection, work: Path, out: StagingWriter, *, has_places: bool = False) -> Relations:
    """Create views over the unpacked tables below `work`. Rejects records without id or title, and second rows of an id."""
    relations = Relations(connection, out, work if has_places else None)
    for table, member in MEMBERS.items():
        is_keyed = table in _RECORDS or "id" in member.wanted
        relations.run(f"CREATE VIEW {f'delivered_{table}' if is_keyed else table} AS SELECT * FROM {_build_source(work, table)}")
        if table in _RECORDS:
            _leave_out(relations, table, _RECORDS[table])
        elif is_keyed:
            _keep_first(relations, table, member.entity)
    return relations


def _keep_first(relations: Relations, table: str, entity: str) -> None:
    """Create the view `table`: the first row of each id. Others refer to it by id; a second row would repeat each record in every join."""
    repeated = f"""
        SELECT line, NULL::VARCHAR AS record_id, id::VARCHAR AS value FROM delivered_{table} SEMI JOIN
            (SELECT id FROM delivered_{table} GROUP BY id HAVING count(*) > 1) USING (id)
        QUALIFY line > min(line) OVER (PARTITION BY id)
    """
    # A table and not a view: it is asked several times, and finding repeated ids groups all rows.
    relations.run(f"CREATE TABLE repeated_{table} AS {repeated} ORDER BY line")
    relations.reject_values(entity, table, f"{table}.id", Reason.DUPLICATE_ID, f"SELECT * FROM repeated_{table} ORDER BY line")
    kept = f"ANTI JOIN repeated_{table} USING (line)" if relations.read_number(f"SELECT count(*) FROM repeated_{table}") else ""
    relations.run(f"CREATE VIEW {table} AS SELECT * FROM delivered_{table} {kept}")


def _leave_out(relations: Relations, table: str, entity: str) -> None:
    delivered = f"delivered_{table}"
    relations.run(f"""
        CREATE TABLE out_{table} AS
        WITH twice AS (
            SELECT line, id, gid, name FROM {delivered} SEMI JOIN
                (SELECT id FROM {delivered} GROUP BY id HAVING count(*) > 1) USING (id)
            UNION
            SELECT line, id, gid, name FROM {delivered} SEMI JOIN
                (SELECT gid FROM {delivered} GROUP BY gid HAVING count(*) > 1) USING (gid)
        ),
        later AS (
            SELECT line FROM twice
            QUALIFY line > min(line) OVER (PARTITION BY id) OR line > min(line) OVER (PARTITION BY gid)
        )
        SELECT line, gid AS record_id, name AS value, CASE
            WHEN id IS NULL OR coalesce(gid, '') = '' THEN '{Reason.MISSING_ID.value}'
            WHEN NOT regexp_matches(gid, '{UUID_SHAPE}') THEN '{Reason.INVALID_ID.value}'
            WHEN trim(coalesce(name, '')) = '' THEN '{Reason.MISSING_TITLE.value}'
            ELSE '{Reason.DUPLICATE_ID.value}' END AS reason
        FROM {delivered}
        WHERE id IS NULL OR gid IS NULL OR NOT regexp_matches(gid, '{UUID_SHAPE}') OR trim(coalesce(name, '')) = ''
            OR line IN (SELECT line FROM later)
        ORDER BY line
    """)
    # Rejected records come into memory; they are few in any dump that is worth staging.
    rows = relations.read_all(f"SELECT * FROM out_{table} ORDER BY line")
    relations.reject_records(entity, table, rows)
    kept = delivered if rows.is_empty() else f"(SELECT * FROM {delivered} ANTI JOIN out_{table} USING (line))"
    relations.run(f"CREATE VIEW {table} AS SELECT * FROM {kept}")
    relations.out.count_read(entity, rows.height)


def _add_member_places(rows: pl.DataFrame, table: str) -> pl.DataFrame:
    return rows.with_columns(source_file=pl.lit(f"mbdump/{table}"), place=pl.format("line {}", "line"))


def _build_source(work: Path, table: str) -> str:
    return f"read_parquet({quote_text(work / table / 'part-*.parquet')})"
