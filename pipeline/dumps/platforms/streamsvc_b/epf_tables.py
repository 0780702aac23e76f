"""Blocks of songs, albums, artists and genres out of EPF tables.

An EPF song knows neither its ISRC nor its album nor its genre: `song_match`, `collection_song` and the like are joined by DuckDB, which
spills; genres exist for collections and artists only. Numbers are in square brackets at times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.sql_text import quote_list
from pipeline.dumps.fields.delivered_credits import CREDITS, join_names
from pipeline.dumps.fields.lists import list_entries
from pipeline.dumps.platforms.streamsvc_b.epf_export import COLUMNS, DEPENDENT, export
from pipeline.dumps.platforms.streamsvc_b.song_conforming import stage_albums, stage_artists, stage_genres, stage_places, stage_songs
from pipeline.dumps.staging.keyless_relations import reject_keyless_rows
from pipeline.dumps.staging.record_checks import RowRule, split_rows
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.dumps.staging.sorted_streams import nest_rows, pair_blocks
from pipeline.engine.duckdb_session import open_duckdb, read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from pipeline.dumps.staging.staging_writer import StagingWriter

_WHERE = "t.position, t.source_file, concat('record ', t.record) AS place"
_PRIMARY = "CASE WHEN lower(trim({}, '[] ')) IN ('1', 'true') THEN 0 ELSE 1 END"
_DATE = "coalesce(nullif(trim(t.original_release_date), ''), t.itunes_release_date) AS date"
ARTIST_TYPE, MUSIC_MEDIA = "1", "1"
"""Ids of performers among artist types and of music among media types."""


def stage_epf(dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage an EPF delivery. Raises DumpError when it has no songs, is incremental or is cut off."""
    files = export(dump, scratch, out)
    with open_duckdb(scratch / "spill") as connection:
        # EPF writes ids in square brackets at times; joins must not depend on that.
        connection.execute("CREATE MACRO key(x) AS TRY_CAST(trim(x, '[] ') AS BIGINT)")
        # Tables that were not delivered become empty views, so that every join below can name them.
        for table in COLUMNS:
            _create_view(connection, table, files.get(table, []))
        connection.execute(
            f"CREATE VIEW music AS SELECT * FROM collection WHERE coalesce(trim(media_type_id, '[] '), '1') = '{MUSIC_MEDIA}'"
        )
        for table, keys in _RELATIONS.items():
            reject_keyless_rows(connection, DEPENDENT.get(table, "source_genre"), table, {key: f"key({key})" for key in keys}, out)
        # The first row of an id in file order counts, as for every platform.
        duplicates = _find_duplicates(connection, "song")
        for block in _read_songs(connection):
            out.count_read("source_recording", block.height)
            stage_songs(block, duplicates, out)
        _stage_places(connection, out)
        out.report("songs are staged")
        duplicates = _find_duplicates(connection, "collection")
        for block in _read_albums(connection):
            out.count_read("source_release", block.height)
            stage_albums(block, duplicates, out)
        duplicates = _find_duplicates(connection, "artist")
        for block in _read_artists(connection):
            out.count_read("source_artist", block.height)
            stage_artists(block, duplicates, out)
        for kind in ("artist", "collection"):
            doubled = 0
            for block in _read_genres(connection, kind):
                stage_genres(block, out)
                doubled += int(block["doubled"].sum())
            out.reject_doubled("source_genre", f"genre_{kind}", doubled)
        out.report("collections, artists and genres are staged")


def _create_view(connection: duckdb.DuckDBPyConnection, table: str, files: list[Path]) -> None:
    if files:
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({quote_list(files)})")
    else:
        columns = ", ".join(f'NULL::VARCHAR AS "{column}"' for column in (*COLUMNS[table], "source_file"))
        connection.execute(f"CREATE VIEW {table} AS SELECT {columns}, NULL::BIGINT AS record, NULL::BIGINT AS position WHERE false")


_RELATIONS = {
    "artist_song": ("song_id", "artist_id"),
    "artist_collection": ("collection_id", "artist_id"),
    "song_match": ("song_id",),
    "collection_match": ("collection_id",),
    "genre_artist": ("artist_id",),
    "genre_collection": ("collection_id",),
}
"""Tables whose rows only relate others, with the keys by which they are joined."""


def _find_duplicates(connection: duckdb.DuckDBPyConnection, table: str) -> pl.DataFrame:
    return read_frame(
        connection,
        f"SELECT CAST(key({table}_id) AS VARCHAR) AS id, min(position) AS first FROM {table} "
        f"WHERE key({table}_id) IS NOT NULL GROUP BY key({table}_id) HAVING count(*) > 1",
    )


def _build_id_sql(table: str) -> str:
    """Return SQL for the sort key and the id as text, which stays as delivered when it is not a number."""
    return f"key(t.{table}_id) AS key, coalesce(CAST(key(t.{table}_id) AS VARCHAR), t.{table}_id) AS id"


def _read_songs(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    songs = stream(
        connection,
        f"""
        WITH worst AS (SELECT max(key(song_rank)) AS rank FROM song_popularity_per_genre)
        SELECT {_WHERE}, {_build_id_sql("song")}, t.name, t.title_version AS version, m.isrc, t.track_length AS duration_ms, c.album_id,
            c.disc_number, c.track_number, {_DATE}, a.name AS advisory, NULL::VARCHAR AS kind, t.artist_display_name AS artist_credit,
            (worst.rank + 1 - p.rank) / worst.rank::DOUBLE AS popularity
        FROM song t CROSS JOIN worst
        LEFT JOIN (SELECT key(song_id) AS key, string_agg(DISTINCT isrc, ';' ORDER BY isrc) AS isrc FROM song_match GROUP BY 1) m
            ON m.key = key(t.song_id)
        LEFT JOIN (SELECT key(s.song_id) AS key, CAST(arg_min(key(s.collection_id), s.position) AS VARCHAR) AS album_id,
                arg_min_null(s.volume_number, s.position) AS disc_number, arg_min_null(s.track_number, s.position) AS track_number
            FROM collection_song s SEMI JOIN music ON key(music.collection_id) = key(s.collection_id) GROUP BY 1) c
            ON c.key = key(t.song_id)
        LEFT JOIN (SELECT key(song_id) AS key, min(key(song_rank)) AS rank FROM song_popularity_per_genre WHERE key(song_rank) > 0
            GROUP BY 1) p ON p.key = key(t.song_id)
        LEFT JOIN (SELECT key(parental_advisory_id) AS key, min(name) AS name FROM parental_advisory GROUP BY 1) a
            ON a.key = key(t.parental_advisory_id)
        ORDER BY key, t.position
        """,
    )
    credit_rows = stream(
        connection,
        f"""
        SELECT key(c.song_id) AS key, c.artist_id AS reference, CAST(key(a.artist_id) AS VARCHAR) AS artist_id, a.name
        FROM artist_song c LEFT JOIN ({_NAMED_ARTISTS}) a ON key(a.artist_id) = key(c.artist_id)
        WHERE key(c.song_id) IS NOT NULL ORDER BY key, c.position
        """,
    )
    for block, rows in pair_blocks(songs, credit_rows, "key"):
        yield _add_credits(block, rows).with_columns(traits=pl.lit([], dtype=pl.List(pl.String)))


_NAMED_ARTISTS = "SELECT artist_id, arg_min(name, position) AS name FROM artist WHERE trim(name) <> '' GROUP BY artist_id"


def _read_albums(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    albums = stream(
        connection,
        f"""
        SELECT {_WHERE}, {_build_id_sql("collection")}, t.name, t.title_version AS version, t.artist_display_name AS artist_credit,
            t.label_studio AS label, m.upc, {_DATE}, NULL::VARCHAR AS kind,
            lower(trim(t.is_compilation, '[] ')) IN ('1', 'true') AS is_compilation,
            CASE WHEN trim(t.media_type_id, '[] ') = '{MUSIC_MEDIA}' OR t.media_type_id IS NULL THEN 'music'
                ELSE concat('media type ', t.media_type_id) END AS media,
            NULL::VARCHAR AS track_count
        FROM collection t
        LEFT JOIN (SELECT key(collection_id) AS key, min(upc) AS upc FROM collection_match GROUP BY 1) m ON m.key = key(t.collection_id)
        ORDER BY key, t.position
        """,
    )
    credit_rows = stream(
        connection,
        f"""
        SELECT key(c.collection_id) AS key, c.artist_id AS reference, CAST(key(a.artist_id) AS VARCHAR) AS artist_id, a.name
        FROM artist_collection c JOIN ({_NAMED_ARTISTS}) a ON key(a.artist_id) = key(c.artist_id)
        WHERE key(c.collection_id) IS NOT NULL ORDER BY key, {_PRIMARY.format("c.is_primary_artist")}, c.position
        """,
    )
    for block, rows in pair_blocks(albums, credit_rows, "key"):
        yield _add_credits(block, rows)


def _add_credits(block: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `block` with a full `artist_credit`, and `artists`: the joined ones, else the display name as one artist (never split)."""
    named = pl.col("artist_credit").str.strip_chars() != ""
    # The display name is one artist, never split: `Earth, Wind & Fire` is one.
    alone = pl.when(named).then(
        list_entries(pl.struct(pl.lit(None, dtype=pl.String).alias("artist_id"), name="artist_credit", role=pl.lit("primary")))
    )
    if rows.is_empty():
        return block.with_columns(artists=alone.fill_null(pl.lit([], dtype=CREDITS)), lost_artists=pl.lit(None, dtype=pl.String))
    lost = rows.filter(pl.col("artist_id").is_null()).group_by("key").agg(lost_artists=pl.col("reference").str.join(","))
    rows = rows.filter(pl.col("artist_id").is_not_null()).unique(["key", "artist_id"], keep="first", maintain_order=True)
    rows = rows.with_columns(role=pl.lit("primary"))
    # Songs whose artists are not in the dump keep their display name as the one artist.
    block = block.with_columns(artists=nest_rows(block, rows, "key", ["artist_id", "name", "role"]))
    return (
        block.join(lost, on="key", how="left", maintain_order="left")
        .with_columns(
            artists=pl.when(pl.col("artists").list.len() == 0).then(alone).otherwise("artists").fill_null(pl.lit([], dtype=CREDITS))
        )
        .with_columns(artist_credit=pl.when(named).then(pl.col("artist_credit")).otherwise(join_names(", ", " & ")))
    )


def _stage_places(connection: duckdb.DuckDBPyConnection, out: StagingWriter) -> None:
    places = stream(
        connection,
        f"""
        SELECT {_WHERE}, CAST(key(t.collection_id) AS VARCHAR) AS release_id, CAST(key(t.song_id) AS VARCHAR) AS external_id,
            t.volume_number AS disc_number, t.track_number, c.key IS NULL OR s.key IS NULL AS is_dangling,
            concat(t.collection_id, ' ', t.song_id) AS ids, t.doubled
        FROM (
            SELECT collection_id, song_id, track_number, volume_number, min(position) AS position,
                arg_min(source_file, position) AS source_file, arg_min(record, position) AS record, count(*) - 1 AS doubled
            FROM collection_song GROUP BY ALL
        ) t
        LEFT JOIN (SELECT DISTINCT key(collection_id) AS key FROM music WHERE trim(name) <> '') c ON c.key = key(t.collection_id)
        LEFT JOIN (SELECT DISTINCT key(song_id) AS key FROM song WHERE trim(name) <> '') s ON s.key = key(t.song_id)
        ORDER BY t.position
        """,
    )
    rules = [RowRule(Reason.DANGLING_REFERENCE, pl.col("is_dangling"), "ids")]
    doubled = 0
    for block in places:
        doubled += int(block["doubled"].sum())
        kept, rejects = split_rows(block, "source_release_track", "external_id", rules)
        out.write_rejects(rejects)
        stage_places(kept, out)
    out.reject_doubled("source_release_track", "collection_song", doubled)


def _read_artists(connection: duckdb.DuckDBPyConnection) -> Iterator[pl.DataFrame]:
    return stream(
        connection,
        f"""
        SELECT {_WHERE}, {_build_id_sql("artist")}, t.name,
            CASE WHEN trim(t.artist_type_id, '[] ') = '{ARTIST_TYPE}' OR t.artist_type_id IS NULL THEN 'artist'
                ELSE concat('artist type ', t.artist_type_id) END AS kind
        FROM artist t ORDER BY t.position
        """,
    )


def _read_genres(connection: duckdb.DuckDBPyConnection, kind: str) -> Iterator[pl.DataFrame]:
    """Yield the genres of staged entities of one kind, each once, the primary one first. `doubled`: repeated rows."""
    # Genres exist for collections and artists only: there is no table for songs.
    entities = "music" if kind == "collection" else "artist"
    return stream(
        connection,
        f"""
        WITH named AS (
            SELECT key(genre_id) AS key, arg_min(name, position) AS name, arg_min(key(parent_id), position) AS parent FROM genre GROUP BY 1
        )
        SELECT '{"release" if kind == "collection" else "artist"}' AS entity_kind, CAST(t.key AS VARCHAR) AS entity_id,
            row_number() OVER (PARTITION BY t.key ORDER BY t.rank, t.position) - 1 AS position,
            g.name AS genre, CAST(g.key AS VARCHAR) AS genre_id, p.name AS parent, t.doubled
        FROM (
            SELECT key({kind}_id) AS key, key(genre_id) AS genre, min({_PRIMARY.format("is_primary")}) AS rank, min(position) AS position,
                count(*) - 1 AS doubled
            FROM genre_{kind} GROUP BY 1, 2
        ) t
        JOIN named g ON g.key = t.genre
        LEFT JOIN named p ON p.key = g.parent
        SEMI JOIN {entities} e ON key(e.{kind}_id) = t.key
        ORDER BY t.key, 3
        """,
    )
