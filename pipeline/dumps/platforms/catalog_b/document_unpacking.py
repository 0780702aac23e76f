"""JSON documents unpacked into the tables that `table_unpacking.py` makes of archives, block by block in bounded memory.

The same record is in many documents (a recording in each release that it is on, an artist in each credit): documents of their own go
before parts, then the first one counts. Out of scope: which row means what (`document_tables.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.sql_text import quote_text
from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.catalog_b.document_tables import DATE_SHAPE, KEYS, MACROS, STEPS, TABLES
from pipeline.dumps.platforms.catalog_b.documents import read_documents
from pipeline.dumps.platforms.catalog_b.table_layouts import MEMBERS
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.engine.duckdb_session import open_duckdb, read_frame

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

RECORDS = ("recording", "artist", "release", "label", "work")
"""Tables in which a second document of one id is a reject (see `relations.py`). Parts of documents are replaced without a reject."""
_NUMBERS = ("length", "position", "track_count", "count")
_LATER = 1 << 60
"""Above every line number, so that parts sort after whole documents."""
_PLACES = {"source_file": pl.String(), "place": pl.String(), "is_part": pl.Boolean()}


def unpack_documents(files: list[Path], dump: Path, work: Path, out: StagingWriter) -> None:
    """Write `<work>/<table>/part-*.parquet` for every table of MEMBERS, with `source_file` and `place`. DumpError: no documents."""
    loose = work / "loose"
    for table in MEMBERS:
        folders = [work / table, *([loose / table] if table in TABLES else [])]
        for folder in folders:
            folder.mkdir(parents=True)
        pl.DataFrame(schema=_build_schema(table)).write_parquet(folders[-1] / "part-000000.parquet")
    rows: Counter[str] = Counter()
    with open_duckdb(work / "spill") as connection:
        connection.execute(MACROS)
        for part, documents in enumerate(read_documents(files, dump, out), start=1):
            rows["document"] += documents.height
            if documents.height:
                numbered = documents.with_row_index("n")
                _unpack_block(connection, numbered, loose, part, rows)
                _reject_dates(connection, numbered, out)
        if not rows["document"]:
            raise DumpError(f"{dump}: no document in {', '.join(file.name for file in files[:5])}; see docs/reference/formats/catalog_b.md")
        for table in TABLES:
            _keep_one(connection, table, loose, work)
    out.report(f"{rows['document']:,} documents are unpacked")


def _build_schema(table: str) -> pl.Schema:
    """Return the schema of a table as in archives, with ids as texts."""
    types = {name: pl.String() if dtype == pl.Int32() and name not in _NUMBERS else dtype for name, dtype in MEMBERS[table].schema.items()}
    return pl.Schema({**types, **({"id": pl.String()} if table == "track" else {}), **_PLACES})


def _unpack_block(connection: duckdb.DuckDBPyConnection, documents: pl.DataFrame, loose: Path, part: int, rows: Counter[str]) -> None:
    connection.register("delivered", documents.to_arrow())
    connection.execute("CREATE OR REPLACE TEMP TABLE document AS SELECT * FROM delivered")
    connection.unregister("delivered")
    for step, sql in STEPS.items():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {step} AS {sql}")
    for table, sql in TABLES.items():
        found = _add_places(read_frame(connection, sql), documents)
        # Line numbers of our own: they give the rows of all documents one order and one name for rejects.
        first = rows[table] + 1
        rows[table] += found.height
        present = {
            "is_part": pl.lit(value=False),
            **{name: pl.col(name) for name in found.columns},
            "line": pl.int_range(first, first + pl.len()),
        }
        columns = [present.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in _build_schema(table).items()]
        if found.height:
            path = loose / table / f"part-{part:06d}.parquet"
            found.select(columns).write_parquet(path, compression="zstd", compression_level=1)


def _add_places(found: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return rows in the order of the documents, with `source_file` and `place` of each."""
    return found.sort("n", maintain_order=True).join(
        documents.select("n", "source_file", "place"), on="n", how="left", maintain_order="left"
    )


def _reject_dates(connection: duckdb.DuckDBPyConnection, documents: pl.DataFrame, out: StagingWriter) -> None:
    bad = read_frame(
        connection,
        f"SELECT n, release AS record_id, date AS value FROM event WHERE trim(date) <> '' AND NOT regexp_full_match(date, '{DATE_SHAPE}')",
    )
    out.write_rejects(
        _add_places(bad, documents)
        .drop("n")
        .with_columns(
            entity=pl.lit("source_release"), severity=pl.lit("field"), reason=pl.lit(Reason.INVALID_DATE.value), field=pl.lit("date")
        )
    )


def _keep_one(connection: duckdb.DuckDBPyConnection, table: str, loose: Path, work: Path) -> None:
    """Keep one of several equal rows. DuckDB groups by key and spills."""
    keys = ", ".join(KEYS.get(table, ("id",)))
    source = f"read_parquet({quote_text(loose / table / 'part-*.parquet')})"
    # A record of its own always stays, so that a repeated one is found and rejected. Of parts the first counts, and only if no record of
    # its own has the id.
    if table in RECORDS:
        kept = f"""
            NOT is_part OR id IS NULL OR line IN (
                SELECT min(line) FROM {source} ANTI JOIN (SELECT id FROM {source} WHERE NOT is_part) own USING (id)
                WHERE is_part GROUP BY id
            )
        """
    else:
        kept = f"line IN (SELECT min(line + {_LATER} * is_part::BIGINT) % {_LATER} FROM {source} GROUP BY {keys})"
    connection.execute(
        f"COPY (SELECT * EXCLUDE (is_part) FROM {source} WHERE {kept} ORDER BY line) TO {quote_text(work / table / 'part-00000.parquet')} "
        "(FORMAT parquet, COMPRESSION zstd)"
    )
