"""Staging rows and rejects out of blocks of tracks, albums and artists, which both layouts of this platform read.

Every value of a block is text as delivered (or null), so that one reading serves Parquet, SQLite and JSON. The columns of a block:

tracks   position, source_file, place, id, name, version, isrc, duration_ms, popularity, explicit, is_local, disc_number, track_number,
         album_ref (how the dump names the album), album_id (null when it is not there), artists (see credits.CREDITS), lost_artists
         (references to artists that are not there)
albums   position, source_file, place, id, name, album_type, upc, label, popularity, release_date, release_date_precision, total_tracks,
         artists, lost_artists
artists  position, source_file, place, id, name, popularity
genres   artist_id, position, genre

Out of scope: files, SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import STREAMSVC_A_SHAPE, normalise_gtin_expr
from catalog_store.tables.staging import RELEASE_TYPES
from pipeline.dumps.fields.dates import add_dates
from pipeline.dumps.fields.delivered_credits import PLACEHOLDER_NAMES, VARIOUS_ARTISTS, join_names, list_credit_names, select_named_credits
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
FULL_POPULARITY = 100
LONGEST_MS = 2**31 - 1
LARGEST_SMALLINT = 2**15 - 1
CREDIT_SEPARATOR = ", "
"""Between artists, as the platform's own pages show them."""


def stage_tracks(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> pl.DataFrame:
    """Stage one block of tracks, which the caller has counted as read; returns those that were not rejected."""
    entity = "source_recording"
    block = mark_later(block, duplicates)
    # Local files come before missing ids: they have none, and that is not a fault of the platform.
    local = RowRule(Reason.LOCAL_FILE, _is_true(pl.col("is_local")))
    block, rejects = split_rows(block, entity, "id", [local, *_build_identity_rules()])
    out.write_rejects(rejects)

    block = pl.concat([block, read_isrc_lists(block["isrc"])], how="horizontal").with_columns(
        _duration=parse_duration_ms(pl.col("duration_ms"), "ms"),
        _popularity=parse_whole_number(pl.col("popularity"), 0, FULL_POPULARITY),
        _disc=parse_whole_number(pl.col("disc_number"), 0, LARGEST_SMALLINT),
        _number=parse_whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT),
    )
    album = pl.col("album_id")
    out.write_rejects(
        find_value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("isrc", pl.col("_no_isrc"), pl.lit(None), Reason.INVALID_ISRC),
                ValueRule("duration_ms", nullify_blank("duration_ms"), pl.col("_duration"), Reason.INVALID_DURATION),
                ValueRule("popularity", nullify_blank("popularity"), pl.col("_popularity"), Reason.INVALID_NUMBER),
                ValueRule("disc_number", nullify_blank("disc_number"), pl.col("_disc"), Reason.INVALID_NUMBER),
                ValueRule("track_number", nullify_blank("track_number"), pl.col("_number"), Reason.INVALID_NUMBER),
                ValueRule("album", nullify_blank("album_ref"), album, Reason.DANGLING_REFERENCE),
                ValueRule("artists", nullify_blank("lost_artists"), pl.lit(None), Reason.DANGLING_REFERENCE),
                ValueRule("name", _find_broken_text("name"), pl.lit(None), Reason.INVALID_UTF8),
            ],
        )
    )
    staged = block.select(
        *WHERE,
        external_id="id",
        link_id="id",
        title="name",
        version=nullify_blank("version"),
        artists=select_named_credits(),
        artist_credit=join_names(CREDIT_SEPARATOR),
        isrcs="_isrcs",
        duration_ms="_duration",
        release_id=album,
        disc_number=pl.when(album.is_not_null()).then("_disc"),
        track_number=pl.when(album.is_not_null()).then("_number"),
        # The platform writes `false` both for "clean" and for "not known".
        is_explicit=pl.when(_is_true(pl.col("explicit"))).then(statement=True),
        is_video=pl.lit(value=False),
        traits=pl.lit([], dtype=TEXTS),
        popularity=pl.col("_popularity") / FULL_POPULARITY,
    )
    out.write(entity, staged)
    places = block.select(*WHERE, release_id=album, external_id="id", disc_number="_disc", track_number="_number")
    out.write("source_release_track", places.filter(pl.col("release_id").is_not_null()))
    return block


def stage_albums(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of albums."""
    entity = "source_release"
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", _build_identity_rules())
    out.write_rejects(rejects)
    # `0000` and years before sound recording are on some 14,000 albums of the real data.
    block = add_dates(block, pl.col("release_date")).with_columns(
        _gtin=normalise_gtin_expr(strip_code(pl.col("upc"))), _count=parse_whole_number(pl.col("total_tracks"), 0, LONGEST_MS)
    )
    # Answers of recommendations write `ALBUM`, all others `album`.
    kind = nullify_blank("album_type").str.to_lowercase()
    out.write_rejects(
        find_value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("upc", nullify_blank("upc"), pl.col("_gtin"), Reason.INVALID_GTIN),
                ValueRule("release_date", nullify_blank("release_date"), pl.col("_date"), Reason.INVALID_DATE),
                ValueRule("total_tracks", nullify_blank("total_tracks"), pl.col("_count"), Reason.INVALID_NUMBER),
                ValueRule("artists", nullify_blank("lost_artists"), pl.lit(None), Reason.DANGLING_REFERENCE),
                ValueRule("name", _find_broken_text("name"), pl.lit(None), Reason.INVALID_UTF8),
            ],
        )
    )
    parsed = pl.col("_precision")
    # The stated precision counts only where it is coarser: `2009-01-01` may mean the year, but `2009` is never a day.
    stated = pl.col("release_date_precision").str.to_lowercase()
    coarser = pl.when(stated.is_in(["year"]) | ((stated == "month") & (parsed == "day"))).then(stated).otherwise(parsed)
    out.write(
        entity,
        block.select(
            *WHERE,
            release_id="id",
            title="name",
            artists=select_named_credits(),
            artist_credit=join_names(CREDIT_SEPARATOR),
            label_name=nullify_blank("label"),
            gtin="_gtin",
            release_date="_date",
            release_date_precision=pl.when(parsed.is_not_null()).then(coarser),
            release_type=pl.when(kind.is_in(RELEASE_TYPES)).then(kind).when(kind.is_not_null()).then(pl.lit("other")),
            is_compilation=(kind == "compilation").fill_null(value=False)
            | (list_credit_names().list.first() == VARIOUS_ARTISTS).fill_null(value=False),
            is_official=pl.lit(value=True),
            track_count="_count",
        ),
    )


def stage_artists(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of artists."""
    entity = "source_artist"
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", _build_identity_rules())
    out.write_rejects(rejects)
    popularity = parse_whole_number(pl.col("popularity"), 0, FULL_POPULARITY)
    out.write_rejects(
        find_value_rejects(block, entity, "id", [ValueRule("popularity", nullify_blank("popularity"), popularity, Reason.INVALID_NUMBER)])
    )
    out.write(
        entity,
        block.select(
            *WHERE,
            artist_id="id",
            name="name",
            aliases=pl.lit([], dtype=TEXTS),
            popularity=popularity / FULL_POPULARITY,
            is_placeholder=pl.col("name").is_in(PLACEHOLDER_NAMES),
        ),
    )


def stage_genres(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage genre words of artists. Blank ones are left out."""
    out.write(
        "source_genre",
        block.filter(nullify_blank("genre").is_not_null()).select(
            entity_kind=pl.lit("artist"), entity_id="artist_id", position="position", genre="genre"
        ),
    )


def _build_identity_rules() -> list[RowRule]:
    return [
        RowRule(Reason.MISSING_ID, nullify_blank("id").is_null()),
        RowRule(Reason.INVALID_ID, ~pl.col("id").str.contains(STREAMSVC_A_SHAPE), "id"),
        RowRule(Reason.DUPLICATE_ID, pl.col("_later"), "id"),
        RowRule(Reason.MISSING_TITLE, nullify_blank("name").is_null()),
    ]


def _find_broken_text(column: str) -> pl.Expr:
    return pl.when(pl.col(column).str.contains("\ufffd", literal=True)).then(pl.col(column))


def _is_true(value: pl.Expr) -> pl.Expr:
    return value.str.to_lowercase().is_in(["true", "1", "t"])
