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


def popularity_sql() -> str:
    """SQL aggregate over the source records (columns platform, popularity) of one recording."""
    return (
        f"({RANK_SHARE} * coalesce(max(CAST(round(popularity * 1e6) AS BIGINT)), 0) // 1000000 "
        f"+ {BREADTH_SHARE} * ({platform_count_sql()} - 1) // {len(CATALOG_PLATFORMS) - 1}) / 1e6"
    )
