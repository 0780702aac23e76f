"""The relational CSV set (`bp_track.csv`, `bp_artist.csv`, `bp_artist_track.csv` ...) -> delivered rows.

DuckDB reads and joins; a line that does not fit its table is a reject. Compressed files are unpacked first: DuckDB does not compare their
checksums.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl

from pipeline.dumps.compressed import COMPRESSED_SUFFIXES, DumpFile, blocks
from pipeline.dumps.credits import CREDITS
from pipeline.dumps.durations import clock_ms, whole_ms
from pipeline.dumps.errors import DumpError
from pipeline.dumps.rejects import Reason
from pipeline.dumps.sorted_streams import nested, side_by_side
from pipeline.dumps.store_a.version_4 import genre_and_parent
from pipeline.engine.duckdb_session import bounded_duckdb, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.dumps.delivered.store import DeliveredStore
    from pipeline.dumps.staging_writer import StagingWriter

TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "bp_track": {
        "track_id": ("track_id", "id"),
        "title": ("title", "track_title", "track_name", "name"),
        "mix": ("mix", "mix_name"),
        "isrc": ("isrc",),
        "duration": ("duration_ms", "length_ms", "duration", "length"),
        "genre_id": ("genre_id",),
        "subgenre_id": ("subgenre_id",),
        "release_id": ("release_id",),
        "release_date": ("release_date",),
        "track_url": ("track_url", "url"),
    },
    "bp_artist": {"artist_id": ("artist_id", "id"), "artist_name": ("artist_name", "name")},
    "bp_artist_track": {"artist_id": ("artist_id",), "track_id": ("track_id",), "is_remixer": ("is_remixer",)},
    "bp_label": {"label_id": ("label_id", "id"), "label_name": ("label_name", "name")},
    "bp_genre": {"genre_id": ("genre_id", "id"), "genre_name": ("genre_name", "name")},
    "bp_subgenre": {"subgenre_id": ("subgenre_id", "id"), "subgenre_name": ("subgenre_name", "name"), "genre_id": ("genre_id",)},
    "bp_release": {
        "release_id": ("release_id", "id"),
        "title": ("release_title", "release_name", "title", "name"),
        "release_date": ("release_date",),
        "label_id": ("label_id",),
        "catalog_number": ("catalog_number", "catalogue_number"),
        "upc": ("upc",),
        "release_type": ("release_type", "type"),
        "release_url": ("release_url", "url"),
    },
    "bp_artist_release": {"artist_id": ("artist_id",), "release_id": ("release_id",)},
}
"""What is read of each table: our name of a column -> the names it may have in the file, the first found counts."""
REQUIRED = {
    "bp_track": ("track_id", "title"),
    "bp_artist": ("artist_id", "artist_name"),
    "bp_artist_track": ("artist_id", "track_id"),
    "bp_label": ("label_id", "label_name"),
    "bp_genre": ("genre_id", "genre_name"),
    "bp_subgenre": ("subgenre_id", "subgenre_name"),
    "bp_release": ("release_id", "title"),
    "bp_artist_release": ("artist_id", "release_id"),
}
REQUIRED_TABLES = ("bp_track", "bp_artist", "bp_artist_track")
_ENTITY = {"bp_artist": "source_artist", "bp_label": "source_label", "bp_release": "source_release"}
_REASONS = {
    "MISSING COLUMNS": Reason.WRONG_COLUMN_COUNT,
    "TOO MANY COLUMNS": Reason.WRONG_COLUMN_COUNT,
    "INVALID ENCODING": Reason.INVALID_UTF8,
}
_NO_TEXT = pl.lit(None, dtype=pl.String)
_URL_SLUG = r"/(?:track|release)/([^/]+)/[0-9]+"


def csv_tables(dump: Path) -> dict[str, Path]:
    """The tables of the set below `dump`: `bp_track.csv`, `bp_genre_2023-09.csv`, `bp_artist.csv.gz` ..., by table name.

    DumpError when two files are of one table: which of them counts is not ours to guess.
    """
    found: dict[str, Path] = {}
    for path in [dump] if dump.is_file() else sorted(dump.rglob("bp_*.csv*")):
        match = re.match(r"(bp_[a-z_]+?)(?:[_-][0-9][0-9_-]*)?\.csv", path.name)
        if match and match[1] in TABLES:
            if match[1] in found:
                raise DumpError(f"{path}: a second file of table {match[1]} beside {found[match[1]].name}; leave one of them")
            found[match[1]] = path
    return found


def add_csv_set(tables: dict[str, Path], dump: Path, scratch: Path, store: DeliveredStore, out: StagingWriter) -> None:
    """Add the set to `store`; DumpError when a table or a column is missing or a file cannot be read."""
    missing = [name for name in REQUIRED_TABLES if name not in tables]
    if missing:
        raise DumpError(f"{dump}: no {', '.join(f'{name}.csv' for name in missing)} beside {', '.join(sorted(tables))}; deliver them")
    store.has_references = True
    with bounded_duckdb(scratch / "csv_spill") as connection:
        gaps = {name: _load(connection, name, tables.get(name), dump, scratch, out) for name in TABLES}
        places = {name: (_name_of(tables.get(name), dump), gaps[name]) for name in TABLES}
        for block in _nested(connection, "bp_track", "track_id", "bp_artist_track"):
            store.add("recording", _recordings(_placed(block, *places["bp_track"])))
        for block in _nested(connection, "bp_release", "release_id", "bp_artist_release"):
            store.add("release", _releases(_placed(block, *places["bp_release"])))
        for name, kind in (("bp_artist", "artist"), ("bp_label", "label")):
            for block in stream(connection, f"SELECT position, {kind}_id AS id, {kind}_name AS title FROM {name} ORDER BY position"):
                store.add(kind, _placed(block, *places[name]))


def _load(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path | None, dump: Path, scratch: Path, out: StagingWriter
) -> NDArray[np.int64]:
    """Create table `name` with the columns of TABLES as text and `position`; what does not fit goes to `reject`.

    Returns, for each record that does not fit, how many good ones stand before it.
    """
    columns = TABLES[name]
    if path is None:
        connection.execute(f"CREATE TABLE {name} (position BIGINT, {', '.join(f'{column} VARCHAR' for column in columns)})")
        return np.empty(0, dtype=np.int64)
    plain, header = _plain(path, scratch), _header(path)
    chosen = {column: next((known for known in names if known in header), None) for column, names in columns.items()}
    absent = [column for column in REQUIRED[name] if chosen[column] is None]
    if absent:
        raise DumpError(f"{path}: no column {', '.join(absent)} among {', '.join(header)}; see docs/formats/store_a.md")
    picked = ", ".join(f'"{known}" AS {column}' if known else f"NULL::VARCHAR AS {column}" for column, known in chosen.items())
    typed = ", ".join(f"{_text(column)}: 'VARCHAR'" for column in header)
    try:
        connection.execute(
            f"""
            CREATE TABLE {name} AS SELECT row_number() OVER () AS position, {picked} FROM read_csv({_text(str(plain))}, header = true,
                auto_detect = false, delim = ',', quote = '"', escape = '"', columns = {{{typed}}}, store_rejects = true,
                rejects_table = '{name}_errors', rejects_scan = '{name}_scan')
            """
        )
    except duckdb.Error as error:
        raise DumpError(f"{path}: cannot be read as CSV ({str(error).splitlines()[0]}); fetch it again") from error
    return _reject_errors(connection, name, _name_of(path, dump), out)


def _reject_errors(connection: duckdb.DuckDBPyConnection, name: str, source_file: str, out: StagingWriter) -> NDArray[np.int64]:
    """One reject per record that DuckDB could not read; its line counts records, the header being the first."""
    rows = connection.execute(
        f"SELECT line, min(error_type::VARCHAR), any_value(csv_line) FROM {name}_errors GROUP BY line ORDER BY line"
    ).fetchall()
    entity = _ENTITY.get(name, "source_recording")
    out.read(entity, len(rows))
    for line, error, text in rows:
        reason = _REASONS.get(error, Reason.BROKEN_RECORD)
        out.reject(entity, reason, source_file=source_file, place=f"record {line - 1}", excerpt=text)
    return np.array([line - 2 - index for index, (line, _, _) in enumerate(rows)], dtype=np.int64)


def _placed(block: pl.DataFrame, source_file: str, gaps: NDArray[np.int64]) -> pl.DataFrame:
    """`block` with `source_file` and `place`: the record number in the file, those that were rejected counted."""
    position = block["position"].to_numpy()
    numbers = position + np.searchsorted(gaps, position - 1, side="right")
    place = pl.format("record {}", pl.Series("number", numbers))
    return block.drop("position").with_columns(source_file=pl.lit(source_file), place=place)


def _nested(connection: duckdb.DuckDBPyConnection, name: str, key: str, credit_table: str) -> Iterator[pl.DataFrame]:
    """Rows of `name` in order with their credits (names are looked up later), joined and sorted by DuckDB."""
    joined = {
        "bp_track": """
            LEFT JOIN (SELECT genre_id AS g, any_value(genre_name) AS genre FROM bp_genre GROUP BY 1) ON g = t.genre_id
            LEFT JOIN (SELECT subgenre_id AS s, any_value(subgenre_name) AS subgenre FROM bp_subgenre GROUP BY 1) ON s = t.subgenre_id
        """,
        "bp_release": "LEFT JOIN (SELECT label_id AS l, any_value(label_name) AS label_name FROM bp_label GROUP BY 1) ON l = t.label_id",
    }
    rows = stream(connection, f"SELECT * FROM {name} t {joined[name]} ORDER BY position")
    remixer = "lower(c.is_remixer) IN ('1', 't', 'true')" if credit_table == "bp_artist_track" else "false"
    credit_rows = stream(
        connection,
        f"""
        SELECT t.position, c.artist_id, NULL::VARCHAR AS name, CASE WHEN {remixer} THEN 'remixer' ELSE 'primary' END AS role
        FROM {credit_table} c JOIN {name} t USING ({key}) ORDER BY t.position, role, c.position
        """,
    )
    for block, credit in side_by_side(rows, credit_rows, "position"):
        artists = nested(block, credit, "position", ["artist_id", "name", "role"]) if credit.height else pl.lit([], dtype=CREDITS)
        yield block.with_columns(artists=artists)


def _recordings(block: pl.DataFrame) -> pl.DataFrame:
    genre = genre_and_parent(pl.col("genre"), pl.col("genre_id"), pl.col("subgenre"), pl.col("subgenre_id"))
    return block.select(
        "source_file",
        "place",
        "title",
        "isrc",
        "duration",
        "release_id",
        "release_date",
        "artists",
        id="track_id",
        version="mix",
        duration_ms=pl.coalesce(whole_ms(pl.col("duration")), clock_ms(pl.col("duration"))),
        slug=pl.col("track_url").str.extract(_URL_SLUG),
        genres=genre,
    )


def _releases(block: pl.DataFrame) -> pl.DataFrame:
    return block.select(
        "source_file",
        "place",
        "title",
        "release_date",
        "label_id",
        "label_name",
        "catalog_number",
        "upc",
        "release_type",
        "artists",
        id="release_id",
        slug=pl.col("release_url").str.extract(_URL_SLUG),
    )


def _plain(path: Path, scratch: Path) -> Path:
    if path.suffix.lower() not in COMPRESSED_SUFFIXES:
        return path
    plain = scratch / path.stem
    with plain.open("wb") as file:
        for block in blocks(path):
            file.write(block)
    return plain


def _header(path: Path) -> list[str]:
    with DumpFile(path) as file:
        line = file.read(1 << 20).split(b"\n", 1)[0]
    return [name.strip().strip('"') for name in line.decode("utf-8-sig", "replace").split(",")]


def _name_of(path: Path | None, dump: Path) -> str:
    if path is None:
        return ""
    return path.name if path == dump else str(path.relative_to(dump))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
