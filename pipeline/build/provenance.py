"""Who gave each field of a golden record, and why that source: one wide row per recording, one per release.

The choices are made elsewhere and come here as numbers of source records; here they get names. Reasons are the closed lists of
catalog_store/tables (docs/build.md explains each). What must not live here: any choice between values.
"""

from __future__ import annotations

from pipeline.build.packing import criteria_sql, packed_sql, record_sql
from pipeline.build.recording_artists import CREDIT_WITHOUT_FLAWS
from pipeline.build.titles import TITLE_WITHOUT_FLAWS

CHOSEN = f"""
SELECT c.recording_id, c.platform_count, {record_sql("t.title_key")} AS title_record, {record_sql("c.credit_key")} AS credit_record,
    {record_sql("c.popularity_key")} AS popularity_record, v.best.record AS variant_record, i.isrc, l.ms,
    CASE WHEN d.source & 1 = 0 THEN d.source >> 1 END AS date_record, CASE WHEN d.source & 1 = 1 THEN d.source >> 1 END AS date_release,
    {criteria_sql("t.title_key")} < {TITLE_WITHOUT_FLAWS} AS is_title_sound,
    {criteria_sql("c.credit_key")} < {CREDIT_WITHOUT_FLAWS} AS is_credit_sound
FROM counted c JOIN title t USING (recording_id) JOIN variant v USING (recording_id)
LEFT JOIN representative i USING (recording_id) LEFT JOIN duration l USING (recording_id) LEFT JOIN release_date d USING (recording_id)
"""


def _named(condition: str, order: str = "record") -> str:
    return f"arg_min(struct_pack(platform := platform, id := external_id), {order}) FILTER (WHERE {condition})"


_SOURCE = f"""
SELECT recording_id, {_named("record = title_record")} AS title, {_named("record = credit_record")} AS artists,
    {_named("record = popularity_record")} AS popularity, {_named("record = variant_record")} AS variant,
    {_named("record = date_record")} AS release_date, {_named("list_contains(isrcs, isrc)")} AS isrc,
    {_named("duration_ms IS NOT NULL", packed_sql(("round(abs(duration_ms - ms))", 29)))} AS duration
FROM member m JOIN chosen c USING (recording_id) GROUP BY recording_id
"""

_FIELDS = ("title", "artists", "duration", "isrc", "popularity", "variant")

RECORDING_PROVENANCE = f"""
SELECT c.recording_id,
    {", ".join(f"s.{field}.platform AS {field}_platform, s.{field}.id AS {field}_external_id" for field in _FIELDS)},
    CASE WHEN c.platform_count = 1 THEN 'only_platform' WHEN c.is_title_sound THEN 'priority' ELSE 'last_resort' END AS title_reason,
    t.agreed AS title_agreed,
    CASE WHEN c.platform_count = 1 THEN 'only_platform' WHEN c.is_credit_sound THEN 'priority' ELSE 'last_resort' END AS artists_reason,
    l.reason AS duration_reason, l.agreed AS duration_agreed, i.reason AS isrc_reason, i.agreed AS isrc_agreed,
    d.reason AS release_date_reason, d.agreed AS release_date_agreed,
    CASE WHEN c.date_release IS NOT NULL THEN 'release' WHEN c.date_record IS NOT NULL THEN 'recording' END AS release_date_entity,
    coalesce(s.release_date.platform, r.platform) AS release_date_platform,
    coalesce(s.release_date.id, r.release_id) AS release_date_external_id,
    CASE WHEN c.popularity_record IS NULL THEN 'breadth' ELSE 'best_rank' END AS popularity_reason,
    CASE WHEN v.variants = 1 THEN 'agreed' ELSE 'most_records' END AS variant_reason, (-v.best.a)::INT AS variant_agreed
FROM chosen c JOIN ({_SOURCE}) s USING (recording_id) JOIN title t USING (recording_id) JOIN variant v USING (recording_id)
LEFT JOIN duration l USING (recording_id) LEFT JOIN representative i USING (recording_id) LEFT JOIN release_date d USING (recording_id)
LEFT JOIN source_release_number r ON r.release_number = c.date_release
"""
