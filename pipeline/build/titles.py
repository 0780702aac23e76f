"""The one title of a recording: the first platform of the chain, its most frequent display form.

Bootlegs and videos donate a title only when nobody else has one. What must not live here: what a title means (catalog_store/name_keys).
"""

from __future__ import annotations

from pipeline.build.packing import packed_sql, record_sql
from pipeline.build.priorities import RECORDING_TITLE, platform_count_sql, rank_sql

_DISPLAY_TITLE = """
CASE WHEN trim(coalesce(version, '')) = '' OR lower(trim(version)) IN ('original mix', 'original', 'original version', 'album version')
    OR contains(lower(title), lower(trim(version))) THEN trim(title)
    ELSE trim(title) || ' (' || trim(version) || ')' END
"""
"""The standard version carries no words of its own; a version that the title already holds is not said twice."""

TITLED = f"""
WITH suspect AS (
    SELECT DISTINCT record FROM on_release WHERE NOT is_official
), unofficial AS (
    FROM suspect ANTI JOIN (FROM on_release SEMI JOIN suspect USING (record) WHERE is_official) USING (record)
)
SELECT recording_id, is_video, u.record IS NOT NULL AS is_unofficial, platform, {_DISPLAY_TITLE} AS title, count(*) AS n,
    min(m.record) AS record
FROM member m LEFT JOIN unofficial u USING (record) GROUP BY ALL
"""
"""Each display title once per platform; reads `member` and `on_release`, kept as `titled`."""

_KEY = packed_sql(
    ("is_video::INT", 1), ("is_unofficial::INT", 1), (rank_sql(RECORDING_TITLE), 3), ("1023 - least(n, 1023)", 10), ("length(title)", 14)
)
TITLE_WITHOUT_FLAWS = 1 << 27
"""Criteria below this: no video, no bootleg."""

TITLE = f"""
WITH best AS (
    SELECT recording_id, min({_KEY}) AS title_key FROM titled GROUP BY recording_id
), chosen AS (
    SELECT b.recording_id, b.title_key, t.title, t.platform FROM titled t JOIN best b ON t.record = {record_sql("b.title_key")}
)
SELECT c.*, a.agreed FROM chosen c
JOIN (SELECT recording_id, title, {platform_count_sql()}::INT AS agreed FROM titled GROUP BY ALL) a USING (recording_id, title)
"""
"""recording_id, title_key, title, platform, agreed (platforms that show exactly this title)."""
