"""Approved suggestions of callers, attached to the recordings that they concern: the top of the genre chain.

A suggestion names a recording or an artist by the catalog's own id, or a recording by its ISRC. Retired ids lead to their successors. The
account store approves suggestions; `pipeline/dumps/platforms/suggestions.py` checks that the genre exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from pipeline.build.priorities import SUGGESTION

if TYPE_CHECKING:
    import polars as pl

    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths


def read_suggestions(bench: Workbench, paths: BuildPaths) -> pl.DataFrame:
    """Return the suggestions as rows of the step `node`; those on recordings are at level 0, those on artists at level 2."""
    for name in ("redirect", "recording_artist"):
        # An earlier build may have stopped before it wrote them. The query needs the tables, if only empty ones.
        if not paths.table(name).is_dir():
            bench.execute(TABLES[name].render_ddl())
    return bench.read_frame(_SUGGESTED)


_NUMBERED = """
SELECT s.suggestion_id, s.entity_kind, t.genre_id, t.main_id, s.entity_id, coalesce(r.new_id, try_cast(s.entity_id AS BIGINT)) AS number
FROM source_suggestion s JOIN tree t USING (genre_id)
LEFT JOIN redirect r ON r.kind = s.entity_kind AND r.old_id = try_cast(s.entity_id AS BIGINT)
"""

_SUGGESTED = f"""
WITH numbered AS ({_NUMBERED}), recorded AS (SELECT DISTINCT recording_id FROM recording_member), placed AS (
    SELECT n.*, r.recording_id, 0 AS level FROM numbered n JOIN recorded r ON r.recording_id = n.number WHERE n.entity_kind = 'recording'
    UNION ALL
    SELECT n.*, o.recording_id, 0 FROM numbered n JOIN isrc_owner o ON o.isrc = n.entity_id WHERE n.entity_kind = 'isrc'
    UNION ALL
    SELECT n.*, a.recording_id, 2 FROM numbered n JOIN recording_artist a ON a.artist_id = n.number
    WHERE n.entity_kind = 'artist' AND a.is_primary
)
SELECT recording_id, '{SUGGESTION}' AS platform, level, genre_id, any_value(main_id) AS main_id, count(*) AS support,
    min(struct_pack(place := 0::INT, string_id := NULL::BIGINT, rule_id := 'suggestion-' || suggestion_id)) AS evidence
FROM placed GROUP BY recording_id, level, genre_id
"""
