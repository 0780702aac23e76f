"""Staging rows and rejects out of blocks of delivered rows, one function per kind.

A block has the columns of its shape, and `_later` (see `record_checks.mark_later`). It may also have `_lost_artists`, `_lost_release`,
`_lost_items` (references that lead nowhere, as text) and `_is_placed` (the release says where the recording is).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import normalise_gtin_expr
from catalog_store.platforms import PLATFORMS
from catalog_store.tables.staging import RELEASE_TYPES
from pipeline.dumps.delivered_records.record_shapes import TEXTS
from pipeline.dumps.fields.dates import add_dates
from pipeline.dumps.fields.delivered_credits import PLACEHOLDER_NAMES, VARIOUS_ARTISTS, join_names, list_credit_names, select_named_credits
from pipeline.dumps.fields.isrcs import read_isrc_lists
from pipeline.dumps.staging.record_checks import (
    WHERE,
    RowRule,
    ValueRule,
    find_value_rejects,
    nullify_blank,
    parse_whole_number,
    split_rows,
    strip_code,
)
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.staging.staging_writer import StagingWriter

LONGEST_MS = 2**31 - 1
LARGEST_SMALLINT = 2**15 - 1
CREDIT_SEPARATOR = ", "
LOST = ("_lost_artists", "_lost_release", "_lost_items")


def stage_recordings(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of recordings, their places on releases, and their genres."""
    entity = "source_recording"
    out.count_read(entity, block.height)
    block = block.drop("position", "is_part", strict=False)
    is_other = RowRule(Reason.NOT_AUDIO, pl.col("kind").is_not_null(), "kind")
    # A video is rejected as such before its id is judged: an operator need not correct it.
    block, rejects = split_rows(block, entity, "id", [is_other, *_build_identity_rules(PLATFORMS[out.platform].id_shape)])
    out.write_rejects(rejects)
    block = pl.concat([block, read_isrc_lists(block["isrc"])], how="horizontal")
    if "_is_placed" not in block.columns:
        block = block.with_columns(_is_placed=pl.lit(value=False))

    # Values that rules and rows need are columns: an expression is computed again wherever it is used.
    block = add_dates(block, pl.col("release_date")).with_columns(
        _duration=pl.when(pl.col("duration_ms").is_between(1, LONGEST_MS)).then(pl.col("duration_ms")),
        _release_id=nullify_blank("release_id"),
        _disc=parse_whole_number(pl.col("disc_number"), 1, LARGEST_SMALLINT),
        _number=parse_whole_number(pl.col("track_number"), 0, LARGEST_SMALLINT),
        _share=_read_share(),
    )
    rules = [
        ValueRule("isrc", pl.col("_no_isrc"), pl.lit(None), Reason.INVALID_ISRC),
        ValueRule("duration", nullify_blank("duration"), pl.col("_duration"), Reason.INVALID_DURATION),
        ValueRule("release_date", nullify_blank("release_date"), pl.col("_date"), Reason.INVALID_DATE),
        ValueRule("disc_number", nullify_blank("disc_number"), pl.col("_disc"), Reason.INVALID_NUMBER),
        ValueRule("track_number", nullify_blank("track_number"), pl.col("_number"), Reason.INVALID_NUMBER),
        ValueRule("popularity", nullify_blank("popularity"), pl.col("_share"), Reason.INVALID_NUMBER),
        *_build_reference_rules(block.columns),
    ]
    out.write_rejects(find_value_rejects(block, entity, "id", rules))
    out.write(
        entity,
        block.select(
            *WHERE,
            external_id="id",
            link_id="id",
            slug=nullify_blank("slug"),
            title="title",
            version=nullify_blank("version"),
            artists=select_named_credits(),
            artist_credit=pl.coalesce(nullify_blank("artist_credit"), join_names(CREDIT_SEPARATOR)),
            isrcs="_isrcs",
            duration_ms="_duration",
            release_id="_release_id",
            disc_number=pl.when(pl.col("_release_id").is_not_null()).then("_disc"),
            track_number=pl.when(pl.col("_release_id").is_not_null()).then("_number"),
            release_date="_date",
            release_date_precision="_precision",
            is_explicit="is_explicit",
            is_video=pl.lit(value=False),
            traits=pl.col("traits").fill_null(pl.lit([], dtype=TEXTS)),
            popularity="_share",
        ),
    )
    # A place that the release lists has disc and number; the one that the recording names would double it.
    needs_place = pl.col("_release_id").is_not_null() & ~pl.col("_is_placed")
    places = block.filter(needs_place).select(*WHERE, "release_id", external_id="id", disc_number="_disc", track_number="_number")
    out.write("source_release_track", places)
    _stage_genres(block, "recording", out)


def stage_releases(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of releases and their genres."""
    entity = "source_release"
    out.count_read(entity, block.height)
    block = block.drop("position", "is_part", strict=False)
    block, rejects = split_rows(block, entity, "id", _build_identity_rules())
    out.write_rejects(rejects)
    block = add_dates(block, pl.col("release_date")).with_columns(
        _gtin=normalise_gtin_expr(strip_code(pl.col("upc"))), _count=parse_whole_number(pl.col("track_count"), 0, LONGEST_MS)
    )
    rules = [
        ValueRule("upc", nullify_blank("upc"), pl.col("_gtin"), Reason.INVALID_GTIN),
        ValueRule("release_date", nullify_blank("release_date"), pl.col("_date"), Reason.INVALID_DATE),
        ValueRule("track_count", nullify_blank("track_count"), pl.col("_count"), Reason.INVALID_NUMBER),
        *_build_reference_rules(block.columns),
    ]
    out.write_rejects(find_value_rejects(block, entity, "id", rules))
    kind = nullify_blank("release_type").str.to_lowercase()
    out.write(
        entity,
        block.select(
            *WHERE,
            release_id="id",
            title="title",
            version=nullify_blank("version"),
            artists=select_named_credits(),
            artist_credit=pl.coalesce(nullify_blank("artist_credit"), join_names(CREDIT_SEPARATOR)),
            label_id=nullify_blank("label_id"),
            label_name=nullify_blank("label_name"),
            catalog_number=nullify_blank("catalog_number"),
            gtin="_gtin",
            release_date="_date",
            release_date_precision="_precision",
            # A word that we do not know is still a type: `other`, and null only where none was delivered.
            release_type=pl.when(kind.is_in(RELEASE_TYPES)).then(kind).when(kind.is_not_null()).then(pl.lit("other")),
            # A statement of the layout counts more than a hint of the type or the credit.
            is_compilation=pl.coalesce(
                "is_compilation", (kind == "compilation") | list_credit_names().list.contains(VARIOUS_ARTISTS)
            ).fill_null(value=False),
            is_official=pl.lit(value=True),
            track_count="_count",
            slug=nullify_blank("slug"),
        ),
    )
    _stage_genres(block, "release", out)


def stage_artists(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of artists."""
    entity = "source_artist"
    out.count_read(entity, block.height)
    block = block.drop("position", "is_part", strict=False)
    block, rejects = split_rows(block, entity, "id", _build_identity_rules())
    out.write_rejects(rejects)
    out.write_rejects(
        find_value_rejects(
            block, entity, "id", [ValueRule("popularity", nullify_blank("popularity"), _read_share(), Reason.INVALID_NUMBER)]
        )
    )
    out.write(
        entity,
        block.select(
            *WHERE,
            artist_id="id",
            name="title",
            aliases=pl.lit([], dtype=TEXTS),
            popularity=_read_share(),
            is_placeholder=pl.col("title").is_in(PLACEHOLDER_NAMES),
        ),
    )


def stage_labels(block: pl.DataFrame, out: StagingWriter) -> None:
    """Stage one block of labels."""
    entity = "source_label"
    out.count_read(entity, block.height)
    block = block.drop("position", "is_part", strict=False)
    block, rejects = split_rows(block, entity, "id", _build_identity_rules())
    out.write_rejects(rejects)
    out.write(entity, block.select(*WHERE, label_id="id", name="title", is_placeholder=pl.lit(value=False)))


def _read_share() -> pl.Expr:
    return pl.when(pl.col("popularity_share").is_between(0, 1)).then(pl.col("popularity_share"))


def _build_identity_rules(shape: str | None = None) -> list[RowRule]:
    return [
        RowRule(Reason.MISSING_ID, nullify_blank("id").is_null()),
        *([RowRule(Reason.INVALID_ID, ~pl.col("id").str.contains(shape), "id")] if shape else []),
        # After the id was judged: a repeated wrong id is reported as wrong.
        RowRule(Reason.DUPLICATE_ID, pl.col("_later"), "id"),
        RowRule(Reason.MISSING_TITLE, nullify_blank("title").is_null()),
    ]


def _build_reference_rules(columns: list[str]) -> list[ValueRule]:
    """Return rules for references to records that the dump does not hold, and for genres with an id but no name."""
    # A genre that has an id and no name cannot be mapped. The operator learns which id is missing in the dump.
    nameless = (
        pl.col("genres")
        .list.filter(_is_blank("genre") & ~_is_blank("genre_id"))
        .list.eval(pl.element().struct.field("genre_id"))
        .list.join(",")
    )
    raw = {name.removeprefix("_lost_"): pl.col(name) for name in LOST if name in columns} | {
        "genres": pl.when(nameless != "").then(nameless)
    }
    return [ValueRule(field, value, pl.lit(None), Reason.DANGLING_REFERENCE) for field, value in raw.items()]


def _is_blank(field: str) -> pl.Expr:
    """Return an expression for list elements: whether a field of the struct is null or blank."""
    return pl.element().struct.field(field).str.strip_chars().fill_null("") == ""


def _stage_genres(block: pl.DataFrame, kind: str, out: StagingWriter) -> None:
    named = (
        block.filter(pl.col("genres").list.len() > 0)
        .select(*WHERE, "id", pl.col("genres").list.filter(~_is_blank("genre")))
        .filter(pl.col("genres").list.len() > 0)
        # Positions are given before the explosion, so that the first genre of a record stays its primary one.
        .with_columns(position=pl.int_ranges(pl.col("genres").list.len()))
        .explode("genres", "position")
        .unnest("genres")
    )
    out.write(
        "source_genre",
        named.select(
            *WHERE,
            entity_kind=pl.lit(kind),
            entity_id="id",
            position="position",
            genre="genre",
            genre_id=nullify_blank("genre_id"),
            parent=nullify_blank("parent"),
        ),
    )
