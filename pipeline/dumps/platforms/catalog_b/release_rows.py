"""Releases of the relational dump, staged as `source_release` and `source_release_track`: first date, imprint, kind, tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.identifiers import normalise_gtin_expr
from pipeline.dumps.fields.dates import EARLIEST_YEAR, LATEST_YEAR, build_date
from pipeline.dumps.platforms.catalog_b.relations import BLOCK
from pipeline.dumps.platforms.catalog_b.vocabulary_ids import (
    COMPILATION,
    DJ_MIX,
    OFFICIAL_STATUSES,
    PLACEHOLDER_LABELS,
    RELEASE_TYPES,
    VARIOUS_ARTISTS,
    build_sql_list,
)
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

ENTITY = "source_release"
TRACK_ENTITY = "source_release_track"
RELEASE_BLOCK_LINES = 250_000
"""Releases that are joined at a time. Their rows are wide: with 500,000 the process took 1.99 to 2.09 GB at 1.1 million, now 1.82."""
TRACK_BLOCK_LINES = 4_000_000
"""A track row is a few numbers; each block costs a scan of all recordings, so blocks are large."""

_UNKNOWN = 99
"""Unknown month or day. It sorts after known ones, so the earliest date is the most exact one of its year."""


def stage_releases(relations: Relations) -> None:
    """Write all releases; the relation `credit` must exist."""
    _relate_dates(relations)
    _relate_groups(relations)
    _relate_imprints(relations)
    relations.run(f"""
        CREATE TABLE unofficial AS SELECT id FROM release_status WHERE gid NOT IN ({build_sql_list(OFFICIAL_STATUSES)})
    """)
    # The track count is on media and not on the release.
    relations.run("CREATE TABLE track_total AS SELECT release, sum(track_count)::INTEGER AS tracks FROM medium GROUP BY release")
    for column, target in (("artist_credit", "artist_credit"), ("release_group", "release_group")):
        relations.reject_dangling(ENTITY, "release", column, target)
    for records in relations.iterate_blocks("release", RELEASE_BLOCK_LINES):
        relations.out.count_read(ENTITY, records)
        _stage_block(relations)


def _relate_dates(relations: Relations) -> None:
    for table in ("release_country", "release_unknown_country"):
        relations.reject_dangling(ENTITY, table, "release", "release")
        relations.reject_values(
            ENTITY,
            table,
            "date",
            Reason.INVALID_DATE,
            f"""
            SELECT t.line, r.gid AS record_id, concat_ws('-', date_year, date_month, date_day) AS value
            FROM {table} t LEFT JOIN release r ON t.release = r.id
            WHERE date_year NOT BETWEEN {EARLIEST_YEAR} AND {LATEST_YEAR} OR date_month NOT BETWEEN 1 AND 12
                OR date_day NOT BETWEEN 1 AND 31 ORDER BY t.line
            """,
        )
    relations.run(f"""
        CREATE TABLE first_date AS
        SELECT release, min(date_year * 10000 + month * 100 + CASE month WHEN {_UNKNOWN} THEN {_UNKNOWN} ELSE day END) AS packed FROM (
            SELECT release, date_year::INTEGER AS date_year,
                CASE WHEN date_month BETWEEN 1 AND 12 THEN date_month ELSE {_UNKNOWN} END AS month,
                CASE WHEN date_day BETWEEN 1 AND 31 THEN date_day ELSE {_UNKNOWN} END AS day
            FROM (SELECT release, date_year, date_month, date_day FROM release_country
                UNION ALL SELECT release, date_year, date_month, date_day FROM release_unknown_country)
            WHERE date_year BETWEEN {EARLIEST_YEAR} AND {LATEST_YEAR})
        GROUP BY release
    """)


def _relate_groups(relations: Relations) -> None:
    relations.run(f"""
        CREATE TABLE edition_group AS
        SELECT g.id, any_value(g.gid) AS gid, any_value(t.gid) AS primary_type,
            coalesce(bool_or(s.gid = '{COMPILATION}'), false) AS is_compilation, coalesce(bool_or(s.gid = '{DJ_MIX}'), false) AS is_mix
        FROM release_group g LEFT JOIN release_group_primary_type t ON g.type = t.id
            LEFT JOIN release_group_secondary_type_join j ON j.release_group = g.id
            LEFT JOIN release_group_secondary_type s ON j.secondary_type = s.id
        GROUP BY g.id
    """)


def _relate_imprints(relations: Relations) -> None:
    for column, target in (("release", "release"), ("label", "label")):
        relations.reject_dangling(ENTITY, "release_label", column, target)
    relations.run(f"""
        CREATE TABLE imprint AS
        SELECT release, arg_min({{'gid': l.gid, 'name': l.name}}, {{'rank': CASE WHEN l.id IS NULL THEN 2
                WHEN l.gid IN ({build_sql_list(PLACEHOLDER_LABELS)}) THEN 1 ELSE 0 END, 'id': x.id}}) AS label,
            arg_min(catalog_number, {{'rank': l.id IS NULL, 'id': x.id}}) FILTER (catalog_number NOT IN ('', '[none]')) AS catalog_number
        FROM release_label x LEFT JOIN label l ON x.label = l.id GROUP BY release
    """)


def _stage_block(relations: Relations) -> None:
    records = relations.read_all(f"""
        SELECT r.line, r.gid, r.name, r.barcode, c.artist_credit, c.artists, g.gid AS group_gid, g.primary_type, g.is_compilation, g.is_mix,
            i.label.gid AS label_gid, i.label.name AS label_name, i.catalog_number, d.packed, n.tracks, u.id IS NULL AS is_official
        FROM {BLOCK} r LEFT JOIN credit c ON r.artist_credit = c.id LEFT JOIN edition_group g ON r.release_group = g.id
            LEFT JOIN imprint i ON i.release = r.id LEFT JOIN first_date d ON d.release = r.id
            LEFT JOIN track_total n ON n.release = r.id LEFT JOIN unofficial u ON r.status = u.id
        ORDER BY r.line
    """).with_columns(gtin=normalise_gtin_expr(pl.col("barcode")))
    # An empty barcode says that the release has none; that is not a fault.
    bad = records.filter(pl.col("gtin").is_null() & (pl.col("barcode").str.strip_chars() != ""))
    relations.reject_rows(ENTITY, "release", "barcode", Reason.INVALID_GTIN, bad.select("line", record_id="gid", value="barcode"))
    relations.write(ENTITY, "release", _conform(records))


def _conform(records: pl.DataFrame) -> pl.DataFrame:
    packed = pl.col("packed")
    date = build_date(packed // 10000, packed // 100 % 100, packed % 100)
    is_compilation = pl.col("is_compilation").fill_null(value=False)
    is_various = pl.col("artists").list.eval(pl.element().struct.field("artist_id") == VARIOUS_ARTISTS).list.any()
    other_type = pl.when(pl.col("primary_type").is_not_null()).then(pl.lit("other"))
    return records.select(
        "line",
        release_id="gid",
        title="name",
        artists=pl.col("artists").fill_null([]),
        artist_credit="artist_credit",
        label_id="label_gid",
        label_name="label_name",
        catalog_number="catalog_number",
        gtin="gtin",
        release_date=date.struct.field("date"),
        release_date_precision=date.struct.field("precision"),
        release_type=pl.when(is_compilation)
        .then(pl.lit("compilation"))
        .otherwise(pl.coalesce(pl.col("primary_type").replace_strict(RELEASE_TYPES, default=None, return_dtype=pl.String), other_type)),
        # A DJ mix collects recordings as a compilation does. Its date says nothing about the first release of a track.
        is_compilation=is_compilation | pl.col("is_mix").fill_null(value=False) | is_various.fill_null(value=False),
        is_official="is_official",
        track_count=pl.when(pl.col("tracks") > 0).then(pl.col("tracks")),
        group_id="group_gid",
    )


def stage_release_tracks(relations: Relations) -> None:
    """Write the places of recordings on releases. Data tracks (no sound) are not counted; tracks with dangling references are rejected."""
    relations.run("""
        CREATE TABLE disc AS SELECT m.id, m.position, r.gid FROM medium m JOIN release r ON m.release = r.id
    """)
    relations.reject_dangling(TRACK_ENTITY, "medium", "release", "release")
    for _ in relations.iterate_blocks("track", TRACK_BLOCK_LINES):
        relations.out.count_read(
            TRACK_ENTITY, relations.read_number(f"SELECT count(*) FROM {BLOCK} WHERE NOT coalesce(is_data_track, false)")
        )
        # Left joins: a track whose medium or recording is missing must reach the rejects, and not vanish.
        tracks = relations.read_rows(f"""
            SELECT t.line, d.gid AS release_id, r.gid AS external_id, d.position AS disc_number, t.position AS track_number,
                t.medium, t.recording
            FROM {BLOCK} t LEFT JOIN disc d ON t.medium = d.id LEFT JOIN recording r ON t.recording = r.id
            WHERE NOT coalesce(t.is_data_track, false) ORDER BY t.line
        """)
        for rows in tracks:
            _stage_tracks(relations, rows)


def _stage_tracks(relations: Relations, rows: pl.DataFrame) -> None:
    is_whole = pl.col("release_id").is_not_null() & pl.col("external_id").is_not_null()
    dangling = rows.filter(~is_whole)
    relations.reject_records(
        TRACK_ENTITY,
        "track",
        dangling.select(
            "line",
            record_id="external_id",
            value=pl.format(
                "medium {}, recording {}",
                pl.col("medium").cast(pl.String).fill_null("?"),
                pl.col("recording").cast(pl.String).fill_null("?"),
            ),
            reason=pl.lit(Reason.DANGLING_REFERENCE.value),
        ),
    )
    position = pl.col("disc_number", "track_number")
    relations.write(
        TRACK_ENTITY,
        "track",
        rows.filter(is_whole).select("line", "release_id", "external_id", position.cast(pl.Int16, strict=False)),
    )
