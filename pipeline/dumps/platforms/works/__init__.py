"""Adapter of works: the composition data of a mechanical-rights collective, tab-separated tables in the layouts 1 and 2.0 of one standard.

`work_layouts` finds the files, and `manifest` checks them. `work_tables` writes them to a scratch folder with normalised codes. `stage`
joins them there. Rows follow the files. docs/reference/formats/works.md has the layouts and their oddities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.sql_text import quote_text
from pipeline.dumps.platforms.works.work_layouts import KINDS, TITLES
from pipeline.dumps.platforms.works.work_tables import unpack
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.scratch_folder import open_scratch_folder
from pipeline.engine.duckdb_session import open_duckdb, stream

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

WORK = "source_work"
LINK = "source_work_recording"
_IN_FILE_ORDER = "ORDER BY file, line"


def stage(dump: Path, out: StagingWriter) -> None:
    """Read the snapshot in `dump` or in its BWARM_* sub-folder. Raises DumpError when it is incomplete, damaged or of no known layout."""
    with open_scratch_folder(out) as work:
        unpack(dump, work, out)
        with open_duckdb(work / "spill") as connection:
            for kind in KINDS:
                source = f"read_parquet({quote_text(work / kind.name / 'part-*.parquet')})"
                connection.execute(f"CREATE VIEW delivered_{kind.name} AS SELECT * FROM {source}")
            _show_titles(connection, work)
            _keep_first(connection, "works", WORK, out)
            _keep_first(connection, "recordings", LINK, out)
            # A link that is delivered twice would give the same pair twice; two links of one id may well differ.
            _keep_first(connection, "links", LINK, out, "id, work, recording")
            _stage_works(connection, out)
            _stage_links(connection, out)


def _keep_first(connection: duckdb.DuckDBPyConnection, name: str, entity: str, out: StagingWriter, key: str = "id") -> None:
    """Create the view `name`: the first record of each key; later ones are rejected."""
    connection.execute(f"""
        CREATE TABLE repeated_{name} AS
        SELECT file, line, source_file, id FROM delivered_{name} SEMI JOIN
            (SELECT {key} FROM delivered_{name} GROUP BY {key} HAVING count(*) > 1) USING ({key})
        QUALIFY row_number() OVER (PARTITION BY {key} {_IN_FILE_ORDER}) > 1
    """)
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM delivered_{name} ANTI JOIN repeated_{name} USING (file, line)")
    for rows in stream(connection, f"SELECT * FROM repeated_{name} {_IN_FILE_ORDER}"):
        out.count_read(entity, rows.height)
        out.write_rejects(_build_row_rejects(rows, entity, Reason.DUPLICATE_ID).with_columns(rows["id"].alias("record_id")))


def _show_titles(connection: duckdb.DuckDBPyConnection, work: Path) -> None:
    """Create the view `titles`: the alternative titles of each work, none without a file of them."""
    source = f"read_parquet({quote_text(work / TITLES.name / 'part-*.parquet')})"
    delivered = source if (work / TITLES.name).is_dir() else "(SELECT '' AS work, '' AS title LIMIT 0)"
    connection.execute(
        f"CREATE VIEW titles AS SELECT work, list(DISTINCT title ORDER BY title) AS alternative_titles FROM {delivered} GROUP BY work"
    )


def _stage_works(connection: duckdb.DuckDBPyConnection, out: StagingWriter) -> None:
    works = stream(
        connection,
        "SELECT source_file, line, id AS work_id, iswcs, title, alternative_titles FROM works LEFT JOIN titles ON id = work "
        f"{_IN_FILE_ORDER}",
    )
    for rows in works:
        # A row per code is staged, so a row per code is counted as read: the books count staged rows.
        out.count_read(WORK, _count_rows(rows, "iswcs"))
        out.write(WORK, rows.explode("iswcs", empty_as_null=True).rename({"iswcs": "iswc"}))


def _stage_links(connection: duckdb.DuckDBPyConnection, out: StagingWriter) -> None:
    links = stream(
        connection,
        """
        SELECT l.file, l.line, l.source_file, l.id, l.work, l.recording, w.id AS work_id, r.id AS recording_id, r.isrcs AS isrc,
            r.title AS recording_title, r.artist AS artist_credit, r.duration_ms
        FROM links l LEFT JOIN works w ON l.work = w.id LEFT JOIN recordings r ON l.recording = r.id
        ORDER BY l.file, l.line
        """,
    )
    is_whole = pl.col("work_id").is_not_null() & pl.col("recording_id").is_not_null()
    for rows in links:
        lost = rows.filter(~is_whole)
        if lost.height:
            value = pl.format("work {}, recording {}", "work", "recording")
            rejects = _build_row_rejects(lost, LINK, Reason.DANGLING_REFERENCE)
            out.write_rejects(rejects.with_columns(lost["id"].alias("record_id"), lost.select(value=value)["value"]))
        kept = rows.filter(is_whole).select("source_file", "line", "work_id", "isrc", "recording_title", "artist_credit", "duration_ms")
        out.count_read(LINK, lost.height + _count_rows(kept, "isrc"))
        out.write(LINK, kept.explode("isrc", empty_as_null=True))


def _count_rows(rows: pl.DataFrame, codes: str) -> int:
    """Return one row per record and code; a record without codes is one row, too."""
    return int(rows.select(pl.col(codes).list.len().fill_null(0).clip(1).cast(pl.Int64).sum()).item())


def _build_row_rejects(rows: pl.DataFrame, entity: str, reason: Reason) -> pl.DataFrame:
    return rows.select(
        "source_file",
        place=pl.format("line {}", "line"),
        entity=pl.lit(entity),
        severity=pl.lit("row"),
        reason=pl.lit(reason.value),
    )
