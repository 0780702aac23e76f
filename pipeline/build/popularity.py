"""How popular a recording is, 0..1, over platforms whose own figures do not compare.

The best rank that any platform gives counts nine parts, being on many platforms one part: a hit of one platform stays above a track that
all platforms have and nobody hears, and among recordings without any figure the widespread ones come first. Integers inside (millionths),
because a sum of floats depends on the order in which threads add.
"""

from __future__ import annotations

from catalog_store.platforms import CATALOG_PLATFORMS
from pipeline.build.priorities import platform_count_sql

RANK_SHARE = 900_000
BREADTH_SHARE = 100_000
"""Millionths."""


def recording_popularity_sql(members: str = "source_recording JOIN recording_member USING (platform, external_id)") -> str:
    """SQL: recording_id, popularity; a row per recording. `members` has recording_id, platform, popularity of every source record."""
    return f"""
        SELECT recording_id,
            ({RANK_SHARE} * coalesce(max(CAST(round(popularity * 1e6) AS BIGINT)), 0) // 1000000
             + {BREADTH_SHARE} * ({platform_count_sql()} - 1) // {len(CATALOG_PLATFORMS) - 1}) / 1e6 AS popularity
        FROM {members} GROUP BY recording_id"""
