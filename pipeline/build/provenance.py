"""Provenance of golden records: the source of each field and the reason for it, one wide row per recording and one per release.

Other modules choose, and pass numbers of source records; this module looks up their names. Reasons are the closed lists of
catalog_store/tables/provenance.py (docs/design/build.md explains each).
"""

from __future__ import annotations

import polars as pl
from polars import selectors as cs

from pipeline.build.packing import render_criteria_sql, render_packed_sql, render_record_sql
from pipeline.build.priorities import (
    DATE,
    RELEASE_ARTIST,
    RELEASE_CATALOG_NUMBER,
    RELEASE_LABEL,
    RELEASE_TITLE,
    RELEASE_TYPE,
    Chain,
    render_rank_sql,
)
from pipeline.build.recording_artists import CREDIT_WITHOUT_FLAWS
from pipeline.build.titles import TITLE_WITHOUT_FLAWS

CHOSEN = f"""
SELECT c.recording_id, c.platform_count, {render_record_sql("t.choice")} AS title_record,
    {render_record_sql("c.credit_key")} AS artists_record, {render_record_sql("c.popularity_key")} AS popularity_record,
    v.best.record AS variant_record, i.isrc, l.ms,
    CASE WHEN d.source & 1 = 0 THEN d.source >> 1 END AS date_record, CASE WHEN d.source & 1 = 1 THEN d.source >> 1 END AS date_release,
    {render_criteria_sql("t.choice")} < {TITLE_WITHOUT_FLAWS} AS is_title_sound,
    {render_criteria_sql("c.credit_key")} < {CREDIT_WITHOUT_FLAWS} AS is_credit_sound
FROM counted c JOIN title t USING (recording_id) JOIN variant v USING (recording_id)
LEFT JOIN representative i USING (recording_id) LEFT JOIN duration l USING (recording_id) LEFT JOIN release_date d USING (recording_id)
"""


# A median may be between two records, so the record nearest to it stands for the duration. 29 bits hold distances of six days.
_DISTANCE = f"min({render_packed_sql(('round(abs(duration_ms - ms))', 29))}) FILTER (WHERE duration_ms IS NOT NULL)"
_NEAREST = f"""
SELECT recording_id, min(record) FILTER (WHERE list_contains(isrcs, isrc)) AS isrc_record, {render_record_sql(_DISTANCE)} AS duration_record
FROM member JOIN chosen USING (recording_id) GROUP BY recording_id
"""
"""The first record that carries the code, and the record with the duration nearest to the agreed one."""


_FIELDS = ("title", "artists", "duration", "isrc", "popularity", "variant")
_DATE = "release_date"

RECORDING_PROVENANCE = f"""
SELECT c.recording_id, c.title_record, c.artists_record, s.duration_record, s.isrc_record, c.popularity_record, c.variant_record,
    c.date_record AS {_DATE}_record,
    CASE WHEN c.platform_count = 1 THEN 'only_platform' WHEN NOT c.is_title_sound THEN 'last_resort'
        WHEN t.is_voted THEN 'majority' ELSE 'priority' END AS title_reason,
    t.agreed AS title_agreed,
    CASE WHEN c.platform_count = 1 THEN 'only_platform' WHEN NOT c.is_credit_sound THEN 'last_resort' ELSE 'priority' END AS artists_reason,
    l.reason AS duration_reason, l.agreed AS duration_agreed, i.reason AS isrc_reason, i.agreed AS isrc_agreed,
    d.reason AS release_date_reason, d.agreed AS release_date_agreed,
    CASE WHEN c.date_release IS NOT NULL THEN 'release' WHEN c.date_record IS NOT NULL THEN 'recording' END AS release_date_entity,
    r.platform AS release_platform, r.release_id,
    CASE WHEN c.popularity_record IS NULL THEN 'breadth' ELSE 'best_rank' END AS popularity_reason,
    CASE WHEN v.variants = 1 THEN 'agreed' ELSE 'most_records' END AS variant_reason, (-v.best.a)::INT AS variant_agreed
FROM chosen c JOIN ({_NEAREST}) s USING (recording_id) JOIN title t USING (recording_id) JOIN variant v USING (recording_id)
LEFT JOIN duration l USING (recording_id) LEFT JOIN representative i USING (recording_id) LEFT JOIN release_date d USING (recording_id)
LEFT JOIN source_release_number r ON r.release_number = c.date_release
ORDER BY c.recording_id
"""
"""Rows of recording_provenance with numbers of records, `<field>_record`; see `name_records`."""


def name_records(rows: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return rows of recording_provenance: RECORDING_PROVENANCE with the names of records for their numbers.

    `members`: record, platform, external_id of all source records.
    """
    members, named = members.sort("record"), rows
    for field in (*_FIELDS, _DATE):
        named = _name_record(named, field, members)
    return named.drop(cs.ends_with("_record"), "release_platform", "release_id").with_columns(
        release_date_platform=named[f"{_DATE}_platform"].fill_null(named["release_platform"]),
        release_date_external_id=named[f"{_DATE}_external_id"].fill_null(named["release_id"]),
    )


def _name_record(rows: pl.DataFrame, field: str, members: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the name of the record `<field>_record`. `members` are sorted by `record`."""
    # Gathered by place: one pass of SQL over all members with a `max` for each name was a ninth of the stage.
    record = rows[f"{field}_record"]
    places = members["record"].search_sorted(record.fill_null(0)).set(record.is_null(), None)
    return rows.with_columns(members[column].gather(places).alias(f"{field}_{column}") for column in ("platform", "external_id"))


def name_popularity(ranked: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return recording_id and the fields of recording_provenance about popularity, in the order of `ranked`.

    Args:
        ranked: recording_id, popularity_record (null: no record has a rank).
        members: record, platform, external_id of all source records.
    """
    named = _name_record(ranked, "popularity", members.sort("record"))
    reason = pl.when(pl.col("popularity_record").is_null()).then(pl.lit("breadth")).otherwise(pl.lit("best_rank"))
    return named.select("recording_id", "popularity_platform", "popularity_external_id", popularity_reason=reason)


def _render_first_edition_sql(field: str, chain: Chain, is_chosen: str) -> str:
    """Return the first edition, in the chain's order, of those with the chosen value."""
    order = render_packed_sql(("(NOT is_official)::INT", 1), (render_rank_sql(chain, "m.platform"), 3), record="node")
    columns = (("platform", "m.platform"), ("external_id", "m.release_id"))
    return ", ".join(f"arg_min({column}, {order}) FILTER (WHERE {is_chosen}) AS {field}_{name}" for name, column in columns)


_SAME_DATE = "m.release_date::DATE = r.release_date AND m.release_date_precision = r.release_date_precision"
RELEASE_PROVENANCE = f"""
SELECT r.release_id,
    {_render_first_edition_sql("title", RELEASE_TITLE, "true")},
    {_render_first_edition_sql("artist", RELEASE_ARTIST, "m.artist_id = r.artist_id")},
    {_render_first_edition_sql("label", RELEASE_LABEL, "m.label_id = r.label_id")},
    {_render_first_edition_sql("catalog_number", RELEASE_CATALOG_NUMBER, "trim(m.catalog_number) = r.catalog_number")},
    {_render_first_edition_sql("gtin", RELEASE_TITLE, "m.gtin = r.gtin")},
    {_render_first_edition_sql("release_date", DATE, _SAME_DATE)},
    {_render_first_edition_sql("release_type", RELEASE_TYPE, "m.release_type = r.release_type")}
FROM merged m JOIN release r ON r.release_id = m.id
GROUP BY r.release_id
"""
"""Rows of release_provenance. Reads `release` and `merged`, the editions of each release (see releases.py)."""
