"""Writes `serving.sqlite` from the tables of a snapshot, with memory bounded by one block of tracks and DuckDB's limit.

Every table is filled in key order (see schema.py); what does not lie on disk in that order is sorted by DuckDB, which spills. The wire
lines are in bodies.py. What must not live here: asking.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from catalog_store.platforms import LINK_SOURCES
from catalog_store.serving.bodies import SAMPLES, companions, compress, lines, train
from catalog_store.serving.keys import EXTERNAL_ID_FORMS, isrc_code_sql
from catalog_store.serving.schema import DDL, FILE_NAME, FORMAT_VERSION, REDIRECT_KINDS
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table, sql_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROWS_PER_BLOCK = 50_000
"""Tracks encoded at once: about 100 MB of Python and Arrow objects."""
_SORT_MEMORY = "1GB"
_SORTED_FROM = ("recording", "recording_isrc", "platform_link", "external_redirect", "work", "work_recording", "redirect", "genre")


def build_serving(tables: Mapping[str, Path], folder: Path) -> None:
    """Write FILE_NAME into `folder` (which exists) from the catalog tables `tables`."""
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as file:
        # The file is thrown away when anything fails, and flushed by the publisher: no journal, no syncs.
        file.execute("PRAGMA journal_mode = OFF")
        file.execute("PRAGMA synchronous = OFF")
        file.executescript(DDL)
        file.execute("BEGIN")
        _write_tracks(file, tables)
        with closing(duckdb.connect(config={"memory_limit": _SORT_MEMORY, "temp_directory": str(folder / ".sorting")})) as sorter:
            for name in _SORTED_FROM:
                sorter.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {sql_source(tables[name])}')
            for table, query in _sorted_tables():
                for rows in _blocks(sorter, query):
                    file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        file.execute("COMMIT")


def _write_tracks(file: sqlite3.Connection, tables: Mapping[str, Path]) -> None:
    ids = scan_table(TABLES["track"], tables["track"]).select("recording_id").collect().to_series()
    step = max(1, len(ids) // SAMPLES)
    dictionary = train(_lines_of(tables, pl.col("recording_id").is_in(ids.gather_every(step).implode())))
    file.execute("INSERT INTO meta VALUES ('dictionary', ?), ('format_version', ?)", (dictionary, FORMAT_VERSION))
    for first in range(0, len(ids), ROWS_PER_BLOCK):
        block = ids.slice(first, ROWS_PER_BLOCK)
        frames = compress(_lines_of(tables, pl.col("recording_id").is_between(block[0], block[-1])), dictionary)
        file.executemany("INSERT INTO track VALUES (?, ?)", zip(block.to_list(), frames, strict=True))


def _lines_of(tables: Mapping[str, Path], chosen: pl.Expr) -> list[bytes]:
    tracks, recordings, links = (
        scan_table(TABLES[name], tables[name]).filter(chosen).collect() for name in ("track", "recording", "platform_link")
    )
    return lines(tracks, companions(recordings, links))


def _sorted_tables() -> Iterator[tuple[str, str]]:
    """(table, DuckDB query for its rows in key order) for every table but `meta` and `track`, in the order of insertion."""
    yield "isrc", f"SELECT {isrc_code_sql('isrc')} AS code, recording_id FROM recording_isrc ORDER BY code"
    for position, platform in enumerate(LINK_SOURCES):
        for condition, key in EXTERNAL_ID_FORMS:
            yield "external_id", _external_ids(position, platform, condition, key)
    yield from _WORK_QUERIES
    for position, kind in enumerate(REDIRECT_KINDS):
        yield "redirect", f"SELECT {position}, old_id, new_id FROM redirect WHERE kind = '{kind}' ORDER BY old_id"
    yield "genre", "SELECT genre_id, name, type, CASE WHEN type = 'subgenre' THEN main_name END FROM genre ORDER BY genre_id"


_WORK_QUERIES = (
    (
        "work",
        """SELECT substr(iswc, 2)::BIGINT AS code, any_value(title), count(w.iswc)
FROM work LEFT JOIN work_recording w USING (iswc) GROUP BY code ORDER BY code""",
    ),
    (
        "work_recording",
        """SELECT substr(iswc, 2)::BIGINT AS code,
    row_number() OVER (PARTITION BY iswc ORDER BY popularity DESC, recording_id) - 1 AS rank, recording_id
FROM work_recording JOIN recording USING (recording_id) ORDER BY code, rank""",
    ),
    ("recording_work", "SELECT recording_id, substr(iswc, 2)::BIGINT AS code FROM work_recording ORDER BY recording_id, code"),
)


def _external_ids(position: int, platform: str, condition: str, key: str) -> str:
    """Ids of one platform in one stored form, with the retired ids that now stand for them; an id in use is never overruled."""
    return f"""WITH live AS (
    SELECT external_id, recording_id, popularity FROM platform_link JOIN recording USING (recording_id) WHERE source = '{platform}'
), retired AS (
    SELECT old_id AS external_id, new_id FROM external_redirect WHERE source = '{platform}'
), known AS (
    SELECT * FROM live
    UNION ALL
    SELECT r.external_id, recording_id, popularity
    FROM (FROM retired ANTI JOIN live USING (external_id)) r JOIN live l ON l.external_id = new_id
)
SELECT {position}, {key} AS stored, row_number() OVER (PARTITION BY external_id ORDER BY popularity DESC, recording_id) - 1 AS rank,
    recording_id
FROM known WHERE {condition} ORDER BY stored, rank"""


def _blocks(sorter: duckdb.DuckDBPyConnection, query: str) -> Iterator[list[tuple[object, ...]]]:
    sorter.execute(query)
    while rows := sorter.fetchmany(ROWS_PER_BLOCK):
        yield rows
