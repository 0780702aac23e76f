"""Recorded answers: catalog songs, albums and artists of the API, and lookup answers, one per line or as documents.

An API song names its artists in one display string, which is never split; its album's id is in its URL only. Albums and artists that
are inside songs are laid down per block and staged once at the end. Out of scope: JSON syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.folder_listing import list_folder
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.lists import list_entries
from pipeline.dumps.platforms.streamsvc_b.song_conforming import (
    ROOT_GENRE,
    stage_albums,
    stage_artists,
    stage_genres,
    stage_places,
    stage_songs,
)
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.staging.layout_expectations import split_names
from pipeline.dumps.staging.record_checks import RowRule, nullify_blank, split_rows
from pipeline.dumps.staging.reject_reasons import Reason
from pipeline.engine.duckdb_session import open_duckdb, read_frame, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

MEMBERS = ("results.songs.data", "results.albums.data", "results.artists.data", "results", "data")
"""Paths of objects in answers."""
_LOOKUP = (
    *("wrapperType", "kind", "trackId", "collectionId", "artistId", "artistName", "trackName", "trackCensoredName", "collectionName"),
    *("collectionArtistName", "primaryGenreName", "trackTimeMillis", "releaseDate", "trackNumber", "discNumber", "discCount", "trackCount"),
    "trackExplicitness",
)
_ATTRIBUTES = (
    *("name", "artistName", "albumName", "isrc", "durationInMillis", "releaseDate", "trackNumber", "discNumber", "contentRating", "url"),
    *("recordLabel", "upc", "isSingle", "isCompilation", "trackCount"),
)
COLUMNS = {
    **dict.fromkeys(("id", "type", *_LOOKUP), "VARCHAR"),
    "attributes": f"STRUCT({', '.join(f'{name} VARCHAR' for name in _ATTRIBUTES)}, genreNames VARCHAR[])",
    "relationships": "STRUCT(artists STRUCT(data STRUCT(id VARCHAR)[]))",
}
USUAL = split_names("""
    attributes.name attributes.artistName attributes.isrc attributes.durationInMillis attributes.releaseDate attributes.url
""")
"""Members that every dump of some size has."""
IGNORED = split_names("""
    href meta resultCount attributes.albumName attributes.artwork attributes.audio* attributes.composerName attributes.has*
    attributes.isAppleDigitalMaster attributes.isMasteredForItunes attributes.isComplete attributes.isVocalAttenuationAllowed
    attributes.playParams attributes.previews attributes.copyright attributes.workName attributes.movement* attributes.attribution
    attributes.editorialNotes attributes.upc attributes.extendedAssetUrls relationships* views collection* track* artist* artwork*
    preview* currency country copyright contentAdvisory* isStreamable amgArtistId primaryGenreId releaseDate longDescription
    shortDescription hasITunesExtras
""")
"""Known members of answers that the catalog does not need."""
_KINDS = {"songs": "song", "albums": "album", "artists": "artist", "collection": "album", "artist": "artist", "song": "song"}
ALBUM_IN_URL = r"/album/(?:[^/?]+/)?([0-9]+)"
SEVERAL = r", | & "
"""Separators between the artists of a display string."""
NOT_EXPLICIT = "none"
"""Word of the media feed for an API song without a `contentRating`."""


def stage_answers(files: list[Path], dump: Path, scratch: Path, out: StagingWriter) -> None:
    """Stage recorded answers. Raises DumpError when they hold no song."""
    rows = 0
    for number, block in enumerate(_read_records(files, dump, out)):
        placed = block.with_columns(position=pl.int_range(rows, rows + pl.len(), dtype=pl.Int64))
        rows += block.height
        songs = _select_songs(placed)
        out.count_read("source_recording", songs.height)
        songs.write_parquet(scratch / f"songs-{number:06d}.parquet", compression="lz4")
        _select_albums(placed).write_parquet(scratch / f"albums-{number:06d}.parquet", compression="lz4")
        _select_artists(placed).write_parquet(scratch / f"artists-{number:06d}.parquet", compression="lz4")
    if not rows:
        names, why = ", ".join(file.name for file in files[:5]), out.first_reject or "they hold no objects"
        raise DumpError(f"{dump}: no song in {names} ({why}); see docs/reference/formats/streamsvc_b.md")
    # The queries return each id once, so no row is a repeated one.
    once = pl.DataFrame(schema={"id": pl.String, "first": pl.Int64})
    with open_duckdb(scratch / "spill") as connection:
        for table in ("songs", "albums", "artists"):
            connection.execute(
                f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{str(scratch).replace(chr(39), chr(39) * 2)}/{table}-*.parquet')"
            )
        repeated = read_frame(
            connection, "SELECT id, min(position) AS first FROM songs WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
        )
        for path in list_folder(scratch, "songs-*.parquet"):
            kept = stage_songs(pl.read_parquet(path), repeated, out)
            stage_places(kept.select("source_file", "place", "disc_number", "track_number", release_id="album_id", external_id="id"), out)
            stage_genres(_build_genre_rows(kept, "recording"), out)
        for block in stream(connection, _build_fullest_query("albums")):
            kept = stage_albums(block, once, out)
            stage_genres(_build_genre_rows(kept, "release"), out)
        for block in stream(connection, _build_fullest_query("artists")):
            stage_artists(block, once, out)


def _build_fullest_query(table: str) -> str:
    """Return each id once, in its fullest form, in the order of the dump."""
    return f"SELECT * FROM {table} QUALIFY row_number() OVER (PARTITION BY id ORDER BY rank, position) = 1 ORDER BY position, id"


def _read_records(files: list[Path], dump: Path, out: StagingWriter) -> Iterator[pl.DataFrame]:
    """Yield blocks of objects with `_kind` (song, album, artist); videos and others are rejected."""
    entity = "source_recording"
    for path in files:
        out.use(path)
        census = out.start_census("answers", COLUMNS, IGNORED, USUAL)
        for block in read_json_blocks(
            path, COLUMNS, source_file=str(path.relative_to(dump)), members=MEMBERS, census=census, parsed=out.parsed_lines
        ):
            out.count_read(entity, block.broken.height)
            out.write_rejects(block.build_rejects(entity))
            type_name = pl.coalesce("type", pl.when(pl.col("wrapperType") == "track").then("kind").otherwise("wrapperType"))
            # Lookup answers call a song `track` with a `kind`, since videos are tracks as well.
            marked = block.frame.with_columns(id=pl.coalesce("id", "trackId"), _type_name=type_name).with_columns(
                _kind=pl.col("_type_name").replace_strict(_KINDS, default=None)
            )
            rules = [
                RowRule(Reason.NOT_AUDIO, pl.col("_kind").is_null() & pl.col("_type_name").is_not_null(), "_type_name"),
                RowRule(Reason.UNKNOWN_KIND, pl.col("_kind").is_null()),
            ]
            kept, rejects = split_rows(marked, entity, "id", rules)
            out.count_read(entity, rejects.height)
            out.write_rejects(rejects)
            yield kept


def _get_attribute(name: str) -> pl.Expr:
    return pl.col("attributes").struct.field(name)


def _build_one_artist(identifier: pl.Expr, name: pl.Expr) -> pl.Expr:
    """Return the display string as one primary artist, or no artist."""
    credit = pl.struct(identifier.alias("artist_id"), name.alias("name"), pl.lit("primary").alias("role"))
    return pl.when(name.str.strip_chars() != "").then(list_entries(credit)).otherwise(pl.lit([], dtype=CREDITS))


def _find_only_artist_id() -> pl.Expr:
    """Return the id of the artist if the display string is one artist."""
    people = pl.col("relationships").struct.field("artists").struct.field("data")
    return pl.coalesce("artistId", pl.when(people.list.len() == 1).then(people.list.first().struct.field("id")))


def _select_songs(block: pl.DataFrame) -> pl.DataFrame:
    name, censored = pl.col("trackName"), pl.col("trackCensoredName")
    # The censored title is at times the fuller one: it carries the version.
    looked_up = pl.when(censored.str.starts_with(name) & (censored.str.len_chars() > name.str.len_chars())).then(censored).otherwise(name)
    artist = pl.coalesce("artistName", _get_attribute("artistName"))
    unrated = pl.when(pl.col("attributes").is_not_null()).then(pl.lit(NOT_EXPLICIT))
    return block.filter(pl.col("_kind") == "song").select(
        "position",
        "source_file",
        "place",
        "id",
        name=pl.coalesce(_get_attribute("name"), looked_up),
        version=pl.lit(None, dtype=pl.String),
        isrc=_get_attribute("isrc"),
        duration_ms=pl.coalesce(_get_attribute("durationInMillis"), "trackTimeMillis"),
        album_id=pl.coalesce("collectionId", _get_attribute("url").str.extract(ALBUM_IN_URL)),
        date=pl.coalesce(_get_attribute("releaseDate"), "releaseDate"),
        advisory=pl.coalesce(_get_attribute("contentRating"), "trackExplicitness", unrated),
        kind=pl.lit(None, dtype=pl.String),
        traits=pl.lit([], dtype=pl.List(pl.String)),
        artists=_build_one_artist(_find_only_artist_id(), artist),
        artist_credit=artist,
        lost_artists=pl.lit(None, dtype=pl.String),
        popularity=pl.lit(None, dtype=pl.Float64),
        disc_number=pl.coalesce(_get_attribute("discNumber"), "discNumber"),
        track_number=pl.coalesce(_get_attribute("trackNumber"), "trackNumber"),
        genres=_read_genre_names(),
    )


def _read_genre_names() -> pl.Expr:
    names = pl.when(pl.col("primaryGenreName").is_not_null()).then(pl.concat_list("primaryGenreName"))
    return pl.coalesce(_get_attribute("genreNames"), names)


def _build_genre_rows(block: pl.DataFrame, entity_kind: str) -> pl.DataFrame:
    rows = block.select(entity_id="id", genre="genres").explode("genre", empty_as_null=False, keep_nulls=False)
    return rows.filter(pl.col("genre") != ROOT_GENRE).with_columns(
        entity_kind=pl.lit(entity_kind),
        position=pl.int_range(pl.len()).over("entity_id"),
        genre_id=pl.lit(None, dtype=pl.String),
        parent=pl.lit(None, dtype=pl.String),
    )


def _select_albums(block: pl.DataFrame) -> pl.DataFrame:
    """Return albums, once each: whole objects (rank 0) before those that only songs name (rank 1)."""
    own = pl.col("_kind") == "album"
    artist = pl.coalesce(
        pl.when(own).then(pl.coalesce(_get_attribute("artistName"), "artistName")),
        "collectionArtistName",
        pl.when(pl.col("collectionId").is_not_null()).then("artistName"),
    )
    # `artistId` belongs to the song. An album with artists of its own (`collectionArtistName`) gets no id from it.
    artist_id = pl.when(own | pl.col("collectionArtistName").is_null()).then(_find_only_artist_id())
    # `trackCount` of a song is that of its disc, which is the album only if there is one disc.
    whole = own | (pl.col("discCount") == "1")
    count = pl.coalesce(_get_attribute("trackCount"), pl.when(whole).then("trackCount"))
    albums = block.filter(pl.col("_kind") != "artist").select(
        "position",
        "source_file",
        "place",
        id=pl.coalesce(pl.when(own).then("id"), "collectionId", _get_attribute("url").str.extract(ALBUM_IN_URL)),
        name=pl.coalesce(pl.when(own).then(_get_attribute("name")), "collectionName", _get_attribute("albumName")),
        version=pl.lit(None, dtype=pl.String),
        artists=_build_one_artist(artist_id, artist),
        artist_credit=artist,
        label=pl.when(own).then(_get_attribute("recordLabel")),
        upc=pl.when(own).then(_get_attribute("upc")),
        # The date of a song is not the date of its album.
        date=pl.when(own).then(pl.coalesce(_get_attribute("releaseDate"), "releaseDate")),
        kind=pl.when(own & (_get_attribute("isSingle") == "true")).then(pl.lit("single")),
        is_compilation=(_get_attribute("isCompilation") == "true").fill_null(value=False),
        media=pl.lit(None, dtype=pl.String),
        track_count=count,
        genres=pl.when(own).then(_read_genre_names()),
        rank=pl.when(own).then(0).otherwise(1),
    )
    known = albums.filter(nullify_blank("id").is_not_null() | (pl.col("rank") == 0))
    return known.sort("rank", maintain_order=True).unique("id", keep="first", maintain_order=True)


def _select_artists(block: pl.DataFrame) -> pl.DataFrame:
    """Return artists, once each. A display string of several artists is left out."""
    own = pl.col("_kind") == "artist"
    name = pl.coalesce(pl.when(own).then(_get_attribute("name")), "artistName", _get_attribute("artistName"))
    artists = block.select(
        "position",
        "source_file",
        "place",
        id=pl.when(own).then(pl.coalesce("id", "artistId")).otherwise(_find_only_artist_id()),
        name=name,
        kind=pl.lit(None, dtype=pl.String),
        rank=pl.when(own).then(0).otherwise(1),
    )
    # `Earth, Wind & Fire` looks like several artists, too. Losing its name here is better than inventing artists.
    alone = ~pl.col("name").str.contains(SEVERAL)
    known = artists.filter((pl.col("rank") == 0) | (nullify_blank("id").is_not_null() & alone))
    return known.sort("rank", maintain_order=True).unique("id", keep="first", maintain_order=True)
