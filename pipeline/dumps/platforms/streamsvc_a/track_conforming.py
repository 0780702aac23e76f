"""Staging rows and rejects out of blocks of tracks, albums and artists, which both layouts of this platform read.

Every value of a block is text as delivered (or null), so that one reading serves Parquet, SQLite and JSON. The columns of a block:

tracks   position, source_file, place, id, name, version, isrc, duration_ms, popularity, explicit, is_local, disc_number, track_number,
         album_ref (how the dump names the album), album_id (null when it is not there), artists (see credits.CREDITS), lost_artists
         (references to artists that are not there)
albums   position, source_file, place, id, name, album_type, upc, label, popularity, release_date, release_date_precision, total_tracks,
         artists
artists  position, source_file, place, id, name, popularity
genres   artist_id, position, genre

What must not live here: files, SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import STREAMSVC_A_SHAPE, gtin_expr
from catalog_store.tables.staging import RELEASE_TYPES
from pipeline.dumps.fields.credits import PLACEHOLDER_NAMES, VARIOUS_ARTISTS, credit_names, joined_names, named_credits
from pipeline.dumps.fields.dates import with_dates
from pipeline.dumps.fields.isrcs import isrc_lists
from pipeline.dumps.staging.record_checks import (
    WHERE,
    RowRule,
    ValueRule,
    bare_code,
    given,
    mark_later,
    split_rows,
    value_rejects,
    whole_number,
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
    local = RowRule(Reason.LOCAL_FILE, _true(pl.col("is_local")))
    block, rejects = split_rows(block, entity, "id", [local, *_identity_rules()])
    out.write_rejects(rejects)

    block = pl.concat([block, isrc_lists(block["isrc"])], how="horizontal").with_columns(
        _duration=whole_number(pl.col("duration_ms"), 1, LONGEST_MS),
        _popularity=whole_number(pl.col("popularity"), 0, FULL_POPULARITY),
        _disc=whole_number(pl.col("disc_number"), 0, LARGEST_SMALLINT),
        _number=whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT),
    )
    album = pl.col("album_id")
    out.write_rejects(
        value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("isrc", pl.col("_no_isrc"), pl.lit(None), Reason.INVALID_ISRC),
                ValueRule("duration_ms", given("duration_ms"), pl.col("_duration"), Reason.INVALID_DURATION),
                ValueRule("popularity", given("popularity"), pl.col("_popularity"), Reason.INVALID_NUMBER),
                ValueRule("disc_number", given("disc_number"), pl.col("_disc"), Reason.INVALID_NUMBER),
                ValueRule("track_number", given("track_number"), pl.col("_number"), Reason.INVALID_NUMBER),
                ValueRule("album", given("album_ref"), album, Reason.DANGLING_REFERENCE),
                ValueRule("artists", given("lost_artists"), pl.lit(None), Reason.DANGLING_REFERENCE),
                ValueRule("name", _broken_text("name"), pl.lit(None), Reason.INVALID_UTF8),
            ],
        )
    )
    staged = block.select(
        *WHERE,
        external_id="id",
        link_id="id",
        title="name",
        version=given("version"),
        artists=named_credits(),
        artist_credit=joined_names(CREDIT_SEPARATOR),
        isrcs="_isrcs",
        duration_ms="_duration",
        release_id=album,
        # The platform writes `false` both for "clean" and for "not known".
        is_explicit=pl.when(_true(pl.col("explicit"))).then(statement=True),
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
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", _identity_rules())
    out.write_rejects(rejects)
    # `0000` and years before sound recording stand on some 14,000 albums of the real data.
    block = with_dates(block, pl.col("release_date")).with_columns(
        _gtin=gtin_expr(bare_code(pl.col("upc"))), _count=whole_number(pl.col("total_tracks"), 0, LONGEST_MS)
    )
    kind = given("album_type").str.to_lowercase()
    out.write_rejects(
        value_rejects(
            block,
            entity,
            "id",
            [
                ValueRule("upc", given("upc"), pl.col("_gtin"), Reason.INVALID_GTIN),
                ValueRule("release_date", given("release_date"), pl.col("_date"), Reason.INVALID_DATE),
                ValueRule("total_tracks", given("total_tracks"), pl.col("_count"), Reason.INVALID_NUMBER),
                ValueRule("name", _broken_text("name"), pl.lit(None), Reason.INVALID_UTF8),
            ],
        )
    )
    parsed = pl.col("_precision")
    stated = pl.col("release_date_precision").str.to_lowercase()
    coarser = pl.when(stated.is_in(["year"]) | ((stated == "month") & (parsed == "day"))).then(stated).otherwise(parsed)
    out.write(
        entity,
        block.select(
            *WHERE,
            release_id="id",
            title="name",
            artists=named_credits(),
            artist_credit=joined_names(CREDIT_SEPARATOR),
            label_name=given("label"),
            gtin="_gtin",
            release_date="_date",
            release_date_precision=pl.when(parsed.is_not_null()).then(coarser),
            release_type=pl.when(kind.is_in(RELEASE_TYPES)).then(kind).when(kind.is_not_null()).then(pl.lit("other")),
            is_compilation=(kind == "compilation").fill_null(value=False)
            | (credit_names().list.first() == VARIOUS_ARTISTS).fill_null(value=False),
            is_official=pl.lit(value=True),
            track_count="_count",
        ),
    )


def stage_artists(block: pl.DataFrame, duplicates: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of artists."""
    entity = "source_artist"
    block, rejects = split_rows(mark_later(block, duplicates), entity, "id", _identity_rules())
    out.write_rejects(rejects)
    popularity = whole_number(pl.col("popularity"), 0, FULL_POPULARITY)
    out.write_rejects(value_rejects(block, entity, "id", [ValueRule("popularity", given("popularity"), popularity, Reason.INVALID_NUMBER)]))
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
        block.filter(given("genre").is_not_null()).select(
            entity_kind=pl.lit("artist"), entity_id="artist_id", position="position", genre="genre"
        ),
    )


def _identity_rules() -> list[RowRule]:
    return [
        RowRule(Reason.MISSING_ID, given("id").is_null()),
        RowRule(Reason.INVALID_ID, ~pl.col("id").str.contains(STREAMSVC_A_SHAPE), "id"),
        RowRule(Reason.DUPLICATE_ID, pl.col("_later"), "id"),
        RowRule(Reason.MISSING_TITLE, given("name").is_null()),
    ]


def _broken_text(column: str) -> pl.Expr:
    return pl.when(pl.col(column).str.contains("\ufffd", literal=True)).then(pl.col(column))


def _true(value: pl.Expr) -> pl.Expr:
    return value.str.to_lowercase().is_in(["true", "1", "t"])
