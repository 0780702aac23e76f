"""Popularity of a recording, 0..1, over platforms whose own figures cannot be compared.

The best rank on any platform counts nine parts, the number of platforms one part. So a hit of one platform stays above an unheard track on
all platforms. Among recordings without a rank the widespread ones come first.
"""

from __future__ import annotations

from catalog_store.platforms import CATALOG_PLATFORMS
from pipeline.build.priorities import render_platform_count_sql

RANK_SHARE = 900_000
BREADTH_SHARE = 100_000
"""Share of the number of platforms, in millionths."""


def render_popularity_sql() -> str:
    """Return an SQL aggregate over the source records (columns platform, popularity) of one recording."""
    # The sums are integers (millionths): a sum of floats depends on the order in which threads add.
    return (
        f"({RANK_SHARE} * coalesce(max(CAST(round(popularity * 1e6) AS BIGINT)), 0) // 1000000 "
        f"+ {BREADTH_SHARE} * ({render_platform_count_sql()} - 1) // {len(CATALOG_PLATFORMS) - 1}) / 1e6"
    )
