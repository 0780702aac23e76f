"""The relational layout: tables as Parquet files (or exported from SQLite, see `sqlite_export`), joined in bounded memory.

DuckDB joins and sorts by row id and spills to disk; blocks of tracks and of their credits then run side by side and are nested in Polars.
A re-export may call the row key `row_id`, number the credits (`index_in_track`) and hold every value as text.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from catalog_store.folder_listing import list_tree
from catalog_store.memory_budget import get_budget
from catalog_store.sql_text import quote_text
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.platforms.streamsvc_a.track_conforming import stage_albums, stage_artists, stage_genres, stage_tracks
from pipeline.dumps.readers.parquet_files import KEPT_CHARACTERS, require_bounded
from pipeline.dumps.staging.keyless_relations import reject_keyless_rows
from pipeline.dumps.staging.layout_expectations import Expected, split_names
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.sorted_streams import nest_rows, pair_blocks
from pipeline.engine.duckdb_session import open_duckdb, read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

COLUMNS = {
    "tracks": [
        "rowid",
        "id",
        "name",
        "album_rowid",
        "track_number",
        "external_id_isrc",
        "popularity",
        "disc_number",
        "duration_ms",
        "explicit",
    ],
    "albums": [
        "rowid",
        "id",
        "name",
        "album_type",
        "external_id_upc",
        "external_id_ean",
        "label",
        "popularity",
        "release_date",
        "release_date_precision",
        "total_tracks",
    ],
    "artists": ["rowid", "id", "name", "popularity"],
    "track_artists": ["track_rowid", "artist_rowid", "index_in_track"],
    "artist_albums": ["artist_rowid", "album_rowid", "is_appears_on", "index_in_album"],
    "artist_genres": ["artist_rowid", "genre"],
    "track_files": ["track_id", "artist_roles", "original_title", "version_title"],
}
"""Columns that are read of each table. `available_markets` and the image tables hold nothing that the catalog keeps."""
REQUIRED_TABLES = ("tracks", "albums", "artists", "track_artists")
REQUIRED_COLUMNS = {
    "tracks": ("rowid", "id", "name", "album_rowid", "external_id_isrc", "duration_ms"),
    "albums": ("rowid", "id", "name"),
    "artists": ("rowid", "id", "name"),
    "track_artists": ("track_rowid", "artist_rowid"),
    "artist_albums": ("artist_rowid", "album_rowid"),
    "artist_genres": ("artist_rowid", "genre"),
    "track_files": ("track_id",),
}
_OTHER_NAMES = {
    "rowid": ("row_id",),
    "track_rowid": ("track_row_id",),
    "artist_rowid": ("artist_row_id",),
    "album_rowid": ("album_row_id",),
}
_ENTITIES = {
    "tracks": "source_recording",
    "albums": "source_release",
    "artists": "source_artist",
    "track_artists": "source_recording",
    "artist_albums": "source_release",
    "artist_genres": "source_genre",
    "track_files": "source_recording",
}
_NO_TEXT = re.compile(r"^(STRUCT|MAP|UNION|BLOB|VARIANT|BIT)|\]$")
"""Types of DuckDB whose cast to text is not the text of the dump."""
_SHOWN_CHARACTERS = 100
_IGNORED = split_names("""
    rowid row_id fetched_at followers_total available_markets_rowid available_markets_row_id available_markets external_id_amgid
    external_id_ean external_id_upc copyright_c copyright_p preview_url is_implicit_appears_on is_appears_on language_of_performance
    alternatives filename file_row_number popularity
""")
"""Columns that the tables are known to have and that say nothing that the catalog keeps."""
_OFTEN_ABSENT = ("index_in_track", "index_in_album", "external_id_ean")
_RELATIONS = {
    "track_artists": ("track_rowid", "artist_rowid"),
    "artist_albums": ("album_rowid", "artist_rowid"),
    "artist_genres": ("artist_rowid",),
}
"""Tables whose rows only relate others, with their keys, which are numbers."""
_PART_SUFFIX = re.compile(r"[-_.](?:part[-_.]?)?\d+.*$")
_ROLE_PREFIX = "artist_role_"


@dataclass(frozen=True)
class SourceTable:
    """A table of the dump: its Parquet files, and the file name that rejects give for a record (null: each file's own)."""

    name: str
    files: tuple[Path, ...]
    source_file: str | None = None


def find_parquet_tables(dump: Path) -> dict[str, SourceTable]:
    """Return the tables found below `dump`, as `<table>.parquet`, `<table>-0001.parquet` or `<table>/*.parquet`."""
    found: dict[str, list[Path]] = {}
    for path in list_tree(dump, "*.parquet"):
        for name in (_PART_SUFFIX.sub("", path.stem), path.parent.name):
            if name in COLUMNS:
                found.setdefault(name, []).append(path)
                break
    return {name: SourceTable(name, tuple(files)) for name, files in found.items()}


def list_expected_columns(table: str) -> Expected:
    """Return the columns that a table is expected to have."""
    required = {name: _OTHER_NAMES.get(name, ()) for name in REQUIRED_COLUMNS[table]}
    optional = {name: _OTHER_NAMES.get(name, ()) for name in COLUMNS[table] if name not in (*required, *_OFTEN_ABSENT)}
    return Expected(required, optional, (*_IGNORED, *_OFTEN_ABSENT))


def stage_tables(tables: dict[str, SourceTable], dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage the relational dump; DumpError when a required table or column is missing or a file is not a Parquet file."""
    missing = [name for name in REQUIRED_TABLES if name not in tables]
    if missing:
        raise DumpError(
            f"{dump}: no table {', '.join(missing)} among {', '.join(sorted(tables)) or 'the files'}; deliver the missing files"
        )
    with _name_damaged_file(tables), open_duckdb(scratch / "spill", get_budget().staging_database_limit) as connection:
        for name in COLUMNS:
            _create_view(connection, name, tables.get(name), dump, out)
        for table, keys in _RELATIONS.items():
            reject_keyless_rows(connection, _ENTITIES[table], table, {key: _KEY.format(key) for key in keys}, out)
        duplicates = _find_duplicates(connection, "tracks")
        for block in _read_tracks(connection):
            out.count_read("source_recording", block.height)
            stage_tracks(block, duplicates, out)
        out.report("tracks are staged")
        duplicates = _find_duplicates(connection, "albums")
        for block in _read_albums(connection):
            out.count_read("source_release", block.height)
            stage_albums(block, duplicates, out)
        out.report("albums are staged")
        duplicates = _find_duplicates(connection, "artists")
        for block in _read_artists(connection):
            out.count_read("source_artist", block.height)
            stage_artists(block, duplicates, out)
        doubled = 0
        for block in _read_genres(connection):
            stage_genres(block, out)
            doubled += int(block["doubled"].sum())
        out.reject_doubled("source_genre", "artist_genres", doubled)
        out.report("artists are staged")


@contextmanager
def _name_damaged_file(tables: dict[str, SourceTable]) -> Iterator[None]:
    """Find the damaged file after a database error.

    The database does not always name the file of a damaged page, so each file is read once more.
    """
    try:
        yield
    # The fault is with this machine. Reading all files once more would only delay the report.
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error:
        for path in (path for table in tables.values() for path in table.files):
            rows = 0
            try:
                with pq.ParquetFile(path) as file:
                    for batch in file.iter_batches():
                        rows += batch.num_rows
            except (pa.ArrowException, OSError) as error:
                raise DumpError(
                    f"{path}: not a readable Parquet file after row {rows} ({error}); fetch it again and compare its checksum"
                ) from error
        raise


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, table: SourceTable | None, dump: Path, out: StagingWriter) -> None:
    """Create a view `name` with exactly COLUMNS as text, `position` and `source_file`; without rows when the dump has no such table.

    Texts longer than KEPT_CHARACTERS are cut, so that no join repeats them. A column of lists, structs or bytes holds no text: it is left
    out, with a reject for all of it. DumpError when a required column is missing or of such a type.
    """
    if table is None:
        columns = ", ".join(f'NULL::VARCHAR AS "{column}"' for column in COLUMNS[name])
        connection.execute(f"CREATE VIEW {name} AS SELECT {columns}, 0::BIGINT AS place_in_file, '' AS source_file WHERE false")
        return
    files = ", ".join(quote_text(path) for path in table.files)
    # union_by_name: parts of a re-export may list their columns in different orders.
    scan = f"read_parquet([{files}], filename = true, file_row_number = true, union_by_name = true)"
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    except Exception as error:
        names = ", ".join(str(path.relative_to(dump)) if path.is_relative_to(dump) else path.name for path in table.files[:5])
        raise DumpError(f"{dump}: table {name} ({names}) cannot be read ({error}); fetch its files again") from error
    for path in table.files:
        require_bounded(path, {other for column in COLUMNS[name] for other in (column, *_OTHER_NAMES.get(column, ()))})
    present = {row[0].lower(): row[0] for row in described}
    types = {row[0]: row[1] for row in described}
    if table.source_file is None:  # the columns of a database were looked at when it was exported
        out.use(*table.files)
        out.expect(f"table {name}", present.values(), list_expected_columns(name), place=table.files[0])
    taken = []
    for column in COLUMNS[name]:
        known = next((present[other] for other in (column, *_OTHER_NAMES.get(column, ())) if other in present), None)
        if known is not None and _NO_TEXT.search(types[known]):
            if column in REQUIRED_COLUMNS[name]:
                raise DumpError(
                    f"{table.files[0]}: wrong_type: column {known} of table {name} holds {types[known][:_SHOWN_CHARACTERS]}, not text or "
                    "numbers; the platform has changed its layout: compare docs/reference/formats/streamsvc_a.md"
                )
            source_file = table.source_file or table.files[0].name
            value = types[known][:_SHOWN_CHARACTERS]
            out.reject(_ENTITIES[name], Reason.WRONG_TYPE, source_file=source_file, place="whole column", field=known, value=value)
            known = None
        # Everything as text: one reading serves numbers stored as text, as in re-exports, and numbers.
        text = f'CAST("{known}" AS VARCHAR)'
        cut = f"CASE WHEN strlen({text}) > {KEPT_CHARACTERS} THEN left({text}, {KEPT_CHARACTERS}) ELSE {text} END"
        taken.append(f'{cut if known else "NULL::VARCHAR"} AS "{column}"')
    source = f"substr(filename, {len(str(dump)) + 2})" if table.source_file is None else quote_text(table.source_file)
    # Blocks of an exported table are one file to the dump: rows of a later block come after those of an earlier one.
    block = "regexp_extract(filename, '-([0-9]+)[.]parquet$', 1)::BIGINT" if table.source_file is not None else "0"
    place = f"{block} * (1::BIGINT << 40) + file_row_number"
    connection.execute(f"CREATE VIEW {name} AS SELECT {', '.join(taken)}, {place} AS place_in_file, {source} AS source_file FROM {scan}")


_KEY = "TRY_CAST({} AS BIGINT)"
_POSITION = f"{_KEY.format('t.rowid')} AS position, t.source_file, concat('rowid ', coalesce(t.rowid, '?')) AS place"
_FIRST = f"{{'key': {_KEY.format('rowid')}, 'file': source_file, 'row': place_in_file}}"
_NAMED = """(
    SELECT {key} AS key, id, name
    FROM {table} WHERE trim(id) <> '' AND trim(name) <> ''
    QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY source_file, place_in_file) = 1
)"""
_NAMED_ARTISTS, _NAMED_ALBUMS = (_NAMED.format(key=_KEY.format("rowid"), table=table) for table in ("artists", "albums"))


def _find_duplicates(connection: duckdb.DuckDBPyConnection, table: str) -> pl.DataFrame:
    """Return the ids that occur more than once, with the place of the `first`."""
    # The key of the first row is a struct of row id, file and place, because a row id repeats when a file is delivered twice.
    first = f"SELECT id, min({_FIRST}) AS f FROM {table} WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
    return read_frame(connection, f"SELECT id, concat_ws(' ', coalesce(f.key::VARCHAR, '?'), f.file, f.row) AS first FROM ({first})")


def _number_rows(block: pl.DataFrame) -> pl.DataFrame:
    """Return `block` with positions that no two rows share. Row ids repeat when a file, or a row, is delivered twice."""
    parts = (pl.col("position").cast(pl.String).fill_null("?"), pl.col("source_file"), pl.col("place_in_file").cast(pl.String))
    return block.with_columns(position=pl.concat_str(parts, separator=" ")).drop("place_in_file")


def _read_tracks(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    tracks = stream(
        connection,
        f"""
        SELECT {_POSITION}, t.id, t.name AS full_name, f.original_title, f.version_title, f.artist_roles, t.external_id_isrc AS isrc,
            t.duration_ms, t.popularity, t.explicit, NULL::VARCHAR AS is_local, t.disc_number, t.track_number,
            t.album_rowid AS album_ref, a.id AS album_id, t.place_in_file
        FROM tracks t
        LEFT JOIN {_NAMED_ALBUMS} a ON a.key = {_KEY.format("t.album_rowid")}
        LEFT JOIN (SELECT track_id, min(artist_roles) AS artist_roles, min(original_title) AS original_title,
            min(version_title) AS version_title FROM track_files GROUP BY track_id) f ON f.track_id = t.id
        ORDER BY position, t.source_file, t.place_in_file
        """,
    )
    credit_rows = stream(
        connection,
        f"""
        SELECT {_KEY.format("c.track_rowid")} AS position, c.artist_rowid, a.id AS artist_id, a.name
        FROM track_artists c LEFT JOIN {_NAMED_ARTISTS} a ON a.key = {_KEY.format("c.artist_rowid")}
        WHERE {_KEY.format("c.track_rowid")} IS NOT NULL
        ORDER BY position, {_KEY.format("c.index_in_track")} NULLS LAST, c.source_file, c.place_in_file
        """,
    )
    for block, rows in pair_blocks(tracks, credit_rows, "position"):
        # `name` holds title and version in one text. The side table has them apart, but not for every track.
        kept_apart = (pl.col("original_title").str.strip_chars() != "") & (pl.col("version_title").str.strip_chars() != "")
        titled = block.with_columns(
            name=pl.when(kept_apart).then(pl.col("original_title")).otherwise(pl.col("full_name")),
            version=pl.when(kept_apart).then(pl.col("version_title")),
        )
        yield _number_rows(_add_credits(titled, rows))


def _read_albums(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    albums = stream(
        connection,
        f"""
        SELECT {_POSITION}, t.id, t.name, t.album_type, coalesce(nullif(trim(t.external_id_upc), ''), t.external_id_ean) AS upc, t.label,
            t.popularity, t.release_date, t.release_date_precision, t.total_tracks, t.place_in_file
        FROM albums t ORDER BY position, t.source_file, t.place_in_file
        """,
    )
    credit_rows = stream(
        connection,
        f"""
        SELECT {_KEY.format("c.album_rowid")} AS position, c.artist_rowid, a.id AS artist_id, a.name
        FROM artist_albums c LEFT JOIN {_NAMED_ARTISTS} a ON a.key = {_KEY.format("c.artist_rowid")}
        WHERE {_KEY.format("c.album_rowid")} IS NOT NULL AND coalesce(lower(c.is_appears_on), '0') NOT IN ('1', 'true')
        ORDER BY position, {_KEY.format("c.index_in_album")} NULLS LAST, c.source_file, c.place_in_file
        """,
    )
    for block, rows in pair_blocks(albums, credit_rows, "position"):
        yield _number_rows(_add_credits(block, rows))


def _add_credits(block: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `block` with the columns `artists` and `lost_artists` (the references that lead nowhere, as one text)."""
    if rows.is_empty():
        return block.with_columns(artists=pl.lit([], dtype=CREDITS), lost_artists=pl.lit(None, dtype=pl.String))
    lost = rows.filter(pl.col("artist_id").is_null()).group_by("position").agg(lost_artists=pl.col("artist_rowid").str.join(","))
    # An artist who is credited twice on a track counts once.
    rows = rows.filter(pl.col("artist_id").is_not_null()).unique(["position", "artist_id"], keep="first", maintain_order=True)
    rows = rows.with_columns(role=pl.lit("primary"))
    if "artist_roles" in block.columns:
        rows = _add_roles(rows, block)
    artists = nest_rows(block, rows, "position", ["artist_id", "name", "role"])
    return block.with_columns(artists=artists).join(lost, on="position", how="left", maintain_order="left")


def _add_roles(rows: pl.DataFrame, block: pl.DataFrame) -> pl.DataFrame:
    """Set the roles that `artist_roles` gives to remixers and featured artists: a JSON array beside the credits, or one of objects."""
    # Roles are JSON, read one by one in Python. The filter leaves the few tracks that have a guest or a remixer.
    worded = block.filter(pl.col("artist_roles").str.contains("(?i)remix|featur")).select("position", "artist_roles")
    if worded.is_empty():
        return rows
    stated = [(position, index, who, role) for position, words in worded.iter_rows() for index, who, role in read_roles(words)]
    schema = {"position": pl.Int64, "index": pl.Int64, "artist_id": pl.String, "stated_role": pl.String}
    roles = pl.DataFrame(stated, schema=schema, orient="row")
    by_place = roles.filter(pl.col("artist_id").is_null()).select("position", "index", by_place="stated_role")
    by_name = (
        roles.filter(pl.col("artist_id").is_not_null())
        .select("position", "artist_id", by_name="stated_role")
        .unique(["position", "artist_id"], keep="first")
    )
    return (
        rows.with_columns(index=pl.int_range(pl.len()).over("position"))
        .join(by_place, on=["position", "index"], how="left", maintain_order="left")
        .join(by_name, on=["position", "artist_id"], how="left", maintain_order="left")
        # A role that names its artist is certain; one by place depends on the order of the credits.
        .with_columns(role=pl.coalesce("by_name", "by_place", "role"))
        .drop("index", "by_place", "by_name")
    )


def read_roles(words: str) -> list[tuple[int, str | None, str]]:
    """Return (place of the credit, artist id or None, role) of `["main_artist", "remixer"]` or `[{"artist_id": ..., "role": ...}]`."""
    try:
        entries = json.loads(words)
    except ValueError:
        return []
    read = []
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        who = entry.get("artist_id", entry.get("id")) if isinstance(entry, dict) else None
        role_text = (
            json.dumps(entry.get("role", entry.get("roles")) if isinstance(entry, dict) else entry).lower().replace(_ROLE_PREFIX, "")
        )
        if "remixer" in role_text:
            read.append((index, who, "remixer"))
        elif "featured" in role_text:
            read.append((index, who, "featured"))
    return read


def _read_artists(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    rows = stream(
        connection,
        f"SELECT {_POSITION}, t.id, t.name, t.popularity, t.place_in_file FROM artists t ORDER BY position, t.source_file, t.place_in_file",
    )
    return map(_number_rows, rows)


def _read_genres(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    """Yield the genre words of artists, each once; `doubled` counts the other rows with the same word."""
    return stream(
        connection,
        f"""
        SELECT a.id AS artist_id, (row_number() OVER (PARTITION BY a.key ORDER BY g.first) - 1) AS position, g.genre, g.doubled
        FROM (
            SELECT {_KEY.format("artist_rowid")} AS key, genre, min({{'file': source_file, 'row': place_in_file}}) AS first,
                count(*) - 1 AS doubled
            FROM artist_genres GROUP BY 1, 2
        ) g JOIN {_NAMED_ARTISTS} a ON a.key = g.key
        ORDER BY a.key, position
        """,
    )
