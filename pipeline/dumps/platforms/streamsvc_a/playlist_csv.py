"""Exported playlists: CSV or TSV files with one row per entry, a track with its album and artists as plain text.

The same track on several playlists is one record, the first whole row of it. Out of scope: CSV syntax (`csv_tables.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_tree
from catalog_store.sql_text import quote_text
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.platforms.streamsvc_a.track_conforming import stage_albums, stage_artists, stage_tracks
from pipeline.dumps.readers.compressed_files import COMPRESSED_SUFFIXES
from pipeline.dumps.readers.csv_tables import CsvForm, load_table
from pipeline.dumps.staging.record_checks import RowRule, nullify_blank, split_rows
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.engine.duckdb_session import open_duckdb, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

SUFFIXES = (".csv", ".tsv")
FORM = CsvForm(
    {
        "uri": ("track_id", "Track URI"),
        "name": ("track_name", "Track Name"),
        "artist_names": ("track_artist", "Artist Name(s)"),
        "artist_uris": ("Artist URI(s)",),
        "album_uri": ("track_album_id", "Album URI"),
        "album_name": ("track_album_name", "Album Name"),
        "album_artist_names": ("Album Artist Name(s)",),
        "album_artist_uris": ("Album Artist URI(s)",),
        "release_date": ("track_album_release_date", "Album Release Date"),
        "disc_number": ("Disc Number",),
        "track_number": ("Track Number",),
        "duration_ms": ("duration_ms", "Track Duration (ms)"),
        "explicit": ("Explicit",),
        "popularity": ("track_popularity", "Popularity"),
        "isrc": ("ISRC",),
    },
    ("uri", "name", "artist_names"),
    "source_recording",
    "docs/reference/formats/streamsvc_a.md",
    optional=("album_uri", "album_name", "release_date", "duration_ms", "popularity"),
    part="playlists",
    ignored=(
        *("playlist_*", "danceability", "energy", "key", "loudness", "mode", "speechiness", "acousticness", "instrumentalness", "liveness"),
        *(
            "valence",
            "tempo",
            "Album Image URL",
            "Track Preview URL",
            "Added By",
            "Added At",
            "Artist Genres",
            "Label",
            "Copyrights",
            "time_signature",
        ),
    ),
)
"""Two known exports: one with ids and audio features, one with URIs and codes."""
_NUMBERS = ("duration_ms", "popularity")
_MACROS = r"""
CREATE MACRO id_of(uri) AS nullif(regexp_replace(trim(uri), '^spotify:(track|album|artist):', ''), '');
CREATE MACRO credits(names, uris) AS CASE
    WHEN len(string_split(names, ',')) = len(string_split(uris, ','))
    THEN [{'artist_id': id_of(c[2]), 'name': trim(c[1]), 'role': 'primary'}
        FOR c IN list_zip(string_split(names, ','), string_split(uris, ','))]
    WHEN trim(names) <> ''
    THEN [{'artist_id': CASE WHEN trim(uris) <> '' AND NOT contains(uris, ',') THEN id_of(uris) END, 'name': names, 'role': 'primary'}] END;
"""
"""Names hold commas themselves: they are split only when there are as many ids."""
_TRACKS = """
    SELECT position, source_file, place, id_of(uri) AS id, name, NULL::VARCHAR AS version, isrc, duration_ms, popularity, explicit,
        starts_with(uri, 'spotify:local:')::VARCHAR AS is_local, disc_number, track_number, id_of(album_uri) AS album_ref,
        CASE WHEN trim(album_name) <> '' THEN id_of(album_uri) END AS album_id, credits(artist_names, artist_uris) AS artists,
        NULL::VARCHAR AS lost_artists
    FROM entry
    WHERE trim(uri) = '' OR uri IS NULL OR position IN (SELECT min(position) FROM entry GROUP BY id_of(uri)) ORDER BY position
"""
_ALBUMS = """
    SELECT position, source_file, place, id_of(album_uri) AS id, album_name AS name, NULL::VARCHAR AS album_type, NULL::VARCHAR AS upc,
        NULL::VARCHAR AS label, NULL::VARCHAR AS popularity, release_date, NULL::VARCHAR AS release_date_precision,
        NULL::VARCHAR AS total_tracks, credits(album_artist_names, album_artist_uris) AS artists, NULL::VARCHAR AS lost_artists
    FROM entry WHERE position IN (
        SELECT min(position) FROM entry WHERE trim(album_uri) <> '' AND trim(album_name) <> '' GROUP BY id_of(album_uri)
    )
    ORDER BY position
"""
_ARTISTS = """
    SELECT min(position) AS position, arg_min(source_file, position) AS source_file, arg_min(place, position) AS place,
        artist.artist_id AS id, arg_min(artist.name, position) AS name, NULL::VARCHAR AS popularity
    FROM (
        SELECT position, source_file, place, unnest(credits(artist_names, artist_uris)) AS artist FROM entry
        UNION ALL
        SELECT position, source_file, place, unnest(credits(album_artist_names, album_artist_uris)) FROM entry
    )
    WHERE artist.artist_id <> '' AND artist.name <> '' GROUP BY artist.artist_id ORDER BY position, id
"""


def find_playlist_files(dump: Path) -> list[Path]:
    """Return the CSV and TSV files of the dump, compressed or not, in order of path."""
    return [
        path
        for path in list_tree(dump)
        if path.is_file() and (path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path).suffix.lower() in SUFFIXES
    ]


def stage_playlists(files: list[Path], dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage the tracks of playlists. DumpError when a file lacks ids, titles or artists, or cannot be read.

    Rows that are shifted (a text where a number or a date belongs: an unquoted separator) are rejected. Each track is read once: an entry
    that names it again is not a record.
    """
    entries = scratch / "entries"
    entries.mkdir()
    position = 0
    with open_duckdb(scratch / "spill") as connection:
        # File by file into Parquet, so that no more than one CSV is in memory.
        for number, path in enumerate(files):
            table = load_table(connection, f"file_{number}", FORM, path, str(path.relative_to(dump)), scratch, out)
            for part, rows in enumerate(stream(connection, f"SELECT * FROM {table.name} ORDER BY position")):
                whole, rejects = split_rows(table.locate_rows(rows), FORM.entity, "uri", [RowRule(Reason.BROKEN_RECORD, _is_shifted())])
                out.count_read(FORM.entity, rejects.height)
                out.write_rejects(rejects)
                numbered = whole.with_columns(position=pl.int_range(position, position + pl.len(), dtype=pl.Int64))
                numbered.write_parquet(entries / f"part-{number:04d}-{part:06d}.parquet", compression="lz4")
                position += whole.height
            connection.execute(f"DROP TABLE {table.name}")
            out.report(f"{table.source_file}: read")
        if not position:
            why = out.first_reject or "only headings"
            raise DumpError(f"{dump}: none of {len(files)} CSV files has a usable row ({why}); see {FORM.notes}")
        connection.execute(f"{_MACROS} CREATE VIEW entry AS SELECT * FROM read_parquet({quote_text(entries / 'part-*.parquet')})")
        # The queries return each id once, so no row is a repeated one.
        once = pl.DataFrame(schema={"id": pl.String, "first": pl.Int64})
        for block in stream(connection, _TRACKS):
            out.count_read(FORM.entity, block.height)
            stage_tracks(_cast_credits(block), once, out)
        for block in stream(connection, _ALBUMS):
            stage_albums(_cast_credits(block), once, out)
        for block in stream(connection, _ARTISTS):
            stage_artists(block, once, out)


def _is_shifted() -> pl.Expr:
    # A cell with an unquoted comma moves all later cells. Numbers and dates show it, texts do not.
    misplaced = [
        nullify_blank(name).is_not_null() & nullify_blank(name).str.strip_chars().cast(pl.Float64, strict=False).is_null()
        for name in _NUMBERS
    ]
    return pl.any_horizontal(*misplaced, ~nullify_blank("release_date").str.contains(r"^\s*\d"))


def _cast_credits(block: pl.DataFrame) -> pl.DataFrame:
    return block.with_columns(pl.col("artists").cast(CREDITS))
