"""Relational CSV set (`bp_track.csv`, `bp_artist.csv`, `bp_artist_track.csv` ...) as delivered rows.

DuckDB reads (`find_csv_tables`) and joins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.platforms.store_a.version_4 import pair_genres
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES
from pipeline.dumps.readers.csv_tables import CsvForm, CsvTable, create_empty_table, load_table
from pipeline.dumps.staging.keyless_relations import reject_keyless_rows
from pipeline.dumps.staging.layout_expectations import split_names
from pipeline.dumps.staging.sorted_streams import nest_rows, pair_blocks
from pipeline.engine.duckdb_session import open_duckdb, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.delivered_records.record_store import DeliveredStore
    from pipeline.dumps.staging.staging_writer import StagingWriter

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
"""Columns of each table: our name -> its possible names in the file. The first one found counts."""
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
_OFTEN_ABSENT = ("catalog_number", "upc", "release_type", "track_url", "release_url")
_IGNORED = split_names("""
    track_number track_count
    artist_url label_url genre_url subgenre_url release_img updated_on song_count is_remixed bpm key_id label_id exclusive release_url
    track_url
""")
"""Known columns of the set that the catalog does not need."""
REQUIRED_TABLES = ("bp_track", "bp_artist", "bp_artist_track")
_ENTITY = {"bp_artist": "source_artist", "bp_label": "source_label", "bp_release": "source_release"}
_CREDITS = (("source_recording", "bp_artist_track", "track_id"), ("source_release", "bp_artist_release", "release_id"))
"""Tables of credits, with the key of the record that each credit belongs to."""
_NO_TEXT = pl.lit(None, dtype=pl.String)
_URL_SLUG = r"/(?:track|release)/([^/]+)/[0-9]+"
_TABLE_FILE = re.compile(r"(bp_[a-z_]+?)(?:[_-][0-9][0-9_-]*)?\.csv(?:" + "|".join(map(re.escape, COMPRESSED_SUFFIXES)) + ")?")


def find_csv_tables(dump: Path) -> dict[str, Path]:
    """Return the tables of the set below `dump`: `bp_track.csv`, `bp_genre_2023-09.csv`, `bp_artist.csv.gz` ..., by table name.

    DumpError when two files are of one table, because nothing says which of them counts.
    """
    found: dict[str, Path] = {}
    for path in [dump] if dump.is_file() else list_tree(dump, "bp_*.csv*"):
        # Exports carry a month in their names (`bp_genre_2023-09.csv`).
        match = _TABLE_FILE.fullmatch(path.name)
        if match and match[1] in TABLES:
            if match[1] in found:
                raise DumpError(f"{path}: a second file of table {match[1]} beside {found[match[1]].name}; leave one of them")
            found[match[1]] = path
    return found


def add_csv_set(tables: dict[str, Path], dump: Path, scratch: Path, store: DeliveredStore, out: StagingWriter) -> None:
    """Add the set to `store`. Raises DumpError when a table or a column is missing or a file cannot be read."""
    missing = [name for name in REQUIRED_TABLES if name not in tables]
    if missing:
        raise DumpError(f"{dump}: no {', '.join(f'{name}.csv' for name in missing)} beside {', '.join(sorted(tables))}; deliver them")
    # The tables name artists by id alone.
    store.has_references = True
    with open_duckdb(scratch / "csv_spill") as connection:
        loaded = {name: _load(connection, name, tables.get(name), dump, scratch, out) for name in TABLES}
        for entity, name, key in _CREDITS:
            reject_keyless_rows(connection, entity, name, {key: f"nullif(trim({key}), '')"}, out)
        for block in _read_nested(connection, "bp_track", "track_id", "bp_artist_track"):
            store.add("recording", _map_recordings(loaded["bp_track"].locate_rows(block)))
        for block in _read_nested(connection, "bp_release", "release_id", "bp_artist_release"):
            store.add("release", _map_releases(loaded["bp_release"].locate_rows(block)))
        for name, kind in (("bp_artist", "artist"), ("bp_label", "label")):
            for block in stream(connection, f"SELECT position, {kind}_id AS id, {kind}_name AS title FROM {name} ORDER BY position"):
                store.add(kind, loaded[name].locate_rows(block))


def _load(connection: duckdb.DuckDBPyConnection, name: str, path: Path | None, dump: Path, scratch: Path, out: StagingWriter) -> CsvTable:
    ids = [column for column in TABLES[name] if column.endswith("_id")]
    form = CsvForm(
        TABLES[name],
        REQUIRED[name],
        _ENTITY.get(name, "source_recording"),
        "docs/reference/formats/store_a.md",
        ids,
        optional=[column for column in TABLES[name] if column not in (*REQUIRED[name], *_OFTEN_ABSENT)],
        ignored=_IGNORED,
    )
    if path is None:
        return create_empty_table(connection, name, form)
    return load_table(connection, name, form, path, path.name if path == dump else str(path.relative_to(dump)), scratch, out)


def _read_nested(connection: duckdb.DuckDBPyConnection, name: str, key: str, credit_table: str) -> Iterator[pl.DataFrame]:
    """Yield rows of `name` in order with their credits, joined and sorted by DuckDB. Names are filled in later."""
    joined = {
        "bp_track": """
            LEFT JOIN (SELECT genre_id AS g, any_value(genre_name) AS genre FROM bp_genre GROUP BY 1) ON g = t.genre_id
            LEFT JOIN (SELECT subgenre_id AS s, any_value(subgenre_name) AS subgenre FROM bp_subgenre GROUP BY 1) ON s = t.subgenre_id
        """,
        "bp_release": "LEFT JOIN (SELECT label_id AS l, any_value(label_name) AS label_name FROM bp_label GROUP BY 1) ON l = t.label_id",
    }
    rows = stream(connection, f"SELECT * FROM {name} t {joined[name]} ORDER BY position")
    # A column of flags with gaps becomes `1.0` in data frames.
    remixer = "lower(trim(c.is_remixer)) IN ('1', '1.0', 't', 'true', 'yes')" if credit_table == "bp_artist_track" else "false"
    credit_rows = stream(
        connection,
        f"""
        SELECT t.position, c.artist_id, NULL::VARCHAR AS name, CASE WHEN {remixer} THEN 'remixer' ELSE 'primary' END AS role
        FROM {credit_table} c JOIN {name} t USING ({key}) GROUP BY t.position, c.artist_id, role ORDER BY t.position, role, min(c.position)
        """,
    )
    # The names of the artists are filled in from `bp_artist` when the store is staged.
    for block, credit in pair_blocks(rows, credit_rows, "position"):
        artists = nest_rows(block, credit, "position", ["artist_id", "name", "role"]) if credit.height else pl.lit([], dtype=CREDITS)
        yield block.with_columns(artists=artists)


def _map_recordings(block: pl.DataFrame) -> pl.DataFrame:
    genre = pair_genres(pl.col("genre"), pl.col("genre_id"), pl.col("subgenre"), pl.col("subgenre_id"))
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
        duration_ms=parse_duration_ms(pl.col("duration"), "ms"),
        slug=pl.col("track_url").str.extract(_URL_SLUG),
        genres=genre,
    )


def _map_releases(block: pl.DataFrame) -> pl.DataFrame:
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
