"""Staging rows and rejects out of blocks of songs, albums and artists, which all layouts of this platform read.

The columns of a block; all are text as delivered unless said otherwise:

songs    position (int), source_file, place, id, name, version, isrc, duration_ms, album_id, disc_number, track_number (on that album),
         date, advisory, kind (null or `song` for sound recordings), traits (list), artists (credits.CREDITS), artist_credit,
         lost_artists (references that lead nowhere), popularity (0..1)
albums   position, source_file, place, id, name, version, artists, artist_credit, label, upc, date, kind (a release type or null),
         is_compilation (bool), media (null or `music`), track_count
artists  position, source_file, place, id, name, kind (null or `artist`)
genres   entity_kind, entity_id, position (int), genre, genre_id, parent

Out of scope: files, SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import NUMBER_SHAPE, normalise_gtin_expr
from pipeline.dumps.fields.dates import add_dates
from pipeline.dumps.fields.delivered_credits import PLACEHOLDER_NAMES, VARIOUS_ARTISTS, list_credit_names
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.fields.isrcs import read_isrc_lists
from pipeline.dumps.staging.record_checks import (
    WHERE,
    RowRule,
    ValueRule,
    find_value_rejects,
    mark_later,
    nullify_blank,
    parse_whole_number,
    split_rows,
    strip_code,
)
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.staging.staging_writer import StagingWriter

TEXTS = pl.List(pl.String)
LONGEST_MS = 2**31 - 1
LARGEST_SMALLINT = 2**15 - 1
ROOT_GENRE = "Music"
"""Root of the platform's genres, which is not a genre itself."""
SONG, ARTIST, MUSIC = "song", "artist", "music"
TYPE_SUFFIX = r" - (Single|EP)$"
"""Suffixes that the platform's pages add to titles of singles and EPs."""


def stage_songs(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    """Stage one block of songs, which the caller has counted as read; returns those that were not rejected."""
    entity = "source_recording"
    other = RowRule(Reason.NOT_AUDIO, pl.col("kind") != SONG, "kind")
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", [other, *_build_identity_rules()])
    out.write_rejects(rejects)
    block = pl.concat([block, read_isrc_lists(block["isrc"])], how="horizontal")
    block = add_dates(block, pl.col("date").str.strip_chars(" []")).with_columns(_duration=parse_duration_ms(pl.col("duration_ms"), "ms"))
    out.write_rejects(
        find_value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("isrc", pl.col("_no_isrc"), pl.lit(None), Reason.INVALID_ISRC),
                ValueRule("duration", nullify_blank("duration_ms"), pl.col("_duration"), Reason.INVALID_DURATION),
                ValueRule("releaseDate", nullify_blank("date"), pl.col("_date"), Reason.INVALID_DATE),
                ValueRule("artists", nullify_blank("lost_artists"), pl.lit(None), Reason.DANGLING_REFERENCE),
            ],
        )
    )
    # Feed, API and lookup write `not explicit`, `notExplicit` and `none`; letters alone make them comparable.
    advisory = pl.col("advisory").str.to_lowercase().str.replace_all("[^a-z]", "")
    cleaned = advisory.is_in(["clean", "cleaned"]).fill_null(value=False)
    out.write(
        entity,
        block.select(
            *WHERE,
            external_id="id",
            link_id="id",
            title="name",
            version=nullify_blank("version"),
            artists="artists",
            artist_credit=nullify_blank("artist_credit"),
            isrcs="_isrcs",
            duration_ms="_duration",
            release_id=nullify_blank("album_id"),
            # `stage_places` reports the numbers that cannot be read.
            disc_number=pl.when(nullify_blank("album_id").is_not_null()).then(
                parse_whole_number(pl.col("disc_number"), 0, LARGEST_SMALLINT)
            ),
            track_number=pl.when(nullify_blank("album_id").is_not_null()).then(
                parse_whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT)
            ),
            release_date="_date",
            release_date_precision="_precision",
            is_explicit=pl.when(advisory.is_not_null()).then(advisory == "explicit"),
            is_video=pl.lit(value=False),
            # A cleaned edit is a recording of its own, though the platform marks it by the advisory alone.
            traits=pl.when(cleaned).then(pl.col("traits").list.concat(pl.lit(["clean"]))).otherwise(pl.col("traits")).fill_null([]),
            popularity="popularity",
        ),
    )
    return block


def stage_places(places: pl.DataFrame, out: StagingWriter) -> None:
    """Stage the places of songs on albums: text columns source_file, place, release_id, external_id, disc_number, track_number."""
    entity = "source_release_track"
    disc = parse_whole_number(pl.col("disc_number"), 0, LARGEST_SMALLINT)
    number = parse_whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT)
    rules = [
        ValueRule("volumeNumber", nullify_blank("disc_number"), disc, Reason.INVALID_NUMBER),
        ValueRule("trackNumber", nullify_blank("track_number"), number, Reason.INVALID_NUMBER),
    ]
    places = places.filter(nullify_blank("release_id").is_not_null() & nullify_blank("external_id").is_not_null())
    out.write_rejects(find_value_rejects(places, entity, "external_id", rules))
    out.write(entity, places.select(*WHERE, "release_id", "external_id", disc_number=disc, track_number=number))


def stage_albums(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    """Stage one block of albums; returns those that were not rejected."""
    entity = "source_release"
    other = RowRule(Reason.NOT_AUDIO, pl.col("media") != MUSIC, "media")
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", [other, *_build_identity_rules()])
    out.write_rejects(rejects)
    block = add_dates(block, pl.col("date").str.strip_chars(" []")).with_columns(
        _gtin=normalise_gtin_expr(strip_code(pl.col("upc"))), _count=parse_whole_number(pl.col("track_count"), 0, LONGEST_MS)
    )
    out.write_rejects(
        find_value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("upc", nullify_blank("upc"), pl.col("_gtin"), Reason.INVALID_GTIN),
                ValueRule("releaseDate", nullify_blank("date"), pl.col("_date"), Reason.INVALID_DATE),
                ValueRule("trackCount", nullify_blank("track_count"), pl.col("_count"), Reason.INVALID_NUMBER),
            ],
        )
    )
    # 36 % of 200 real songs are on albums whose name ends in ` - Single`, 7.5 % in ` - EP`.
    suffix_type = pl.col("name").str.extract(TYPE_SUFFIX).str.to_lowercase()
    bare = pl.col("name").str.replace(TYPE_SUFFIX, "")
    various = (list_credit_names().list.first() == VARIOUS_ARTISTS) | (pl.col("artist_credit") == VARIOUS_ARTISTS)
    compilation = (
        pl.col("is_compilation").fill_null(value=False)
        | various.fill_null(value=False)
        | (pl.col("kind") == "compilation").fill_null(value=False)
    )
    out.write(
        entity,
        block.select(
            *WHERE,
            release_id="id",
            # An album may be called ` - Single` and nothing else; then the suffix is its name.
            title=pl.when(bare.str.strip_chars() != "").then(bare).otherwise("name"),
            version=nullify_blank("version"),
            artists="artists",
            artist_credit=nullify_blank("artist_credit"),
            label_name=nullify_blank("label"),
            gtin="_gtin",
            release_date="_date",
            release_date_precision="_precision",
            release_type=pl.coalesce("kind", suffix_type),
            is_compilation=compilation,
            is_official=pl.lit(value=True),
            track_count="_count",
        ),
    )
    return block


def stage_artists(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of artists. The platform also lists actors and authors, which are rejected."""
    entity = "source_artist"
    other = RowRule(Reason.NOT_AUDIO, pl.col("kind") != ARTIST, "kind")
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", [other, *_build_identity_rules()])
    out.write_rejects(rejects)
    out.write(
        entity,
        block.select(
            *WHERE,
            artist_id="id",
            name="name",
            aliases=pl.lit([], dtype=TEXTS),
            is_placeholder=pl.col("name").is_in(PLACEHOLDER_NAMES),
        ),
    )


def stage_genres(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage genre words. The root and blank ones are left out, and the root is not a parent."""
    word = nullify_blank("genre")
    out.write(
        "source_genre",
        # Every song carries the root `Music`, which says nothing.
        block.filter(word.is_not_null() & (word != ROOT_GENRE)).select(
            "entity_kind",
            "entity_id",
            "position",
            "genre",
            "genre_id",
            parent=pl.when(pl.col("parent") != ROOT_GENRE).then(pl.col("parent")),
        ),
    )


def _build_identity_rules() -> list[RowRule]:
    return [
        RowRule(Reason.MISSING_ID, nullify_blank("id").is_null()),
        RowRule(Reason.INVALID_ID, ~pl.col("id").str.contains(NUMBER_SHAPE), "id"),
        RowRule(Reason.DUPLICATE_ID, pl.col("_later"), "id"),
        RowRule(Reason.MISSING_TITLE, nullify_blank("name").is_null()),
    ]
