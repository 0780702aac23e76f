"""Other titles of recordings, `recording_alias`: translations and transliterations, by which search finds them.

A platform lists them with its record or with the work that the record performs, or writes title and translation as one text (`A = B`).
Out of scope: the titles that an index holds, and their rank (catalog_store/search).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.platforms import CATALOG_A, WORKS
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

PARALLEL = " = "
"""Between a title and its translation, as catalog_a writes them."""
MOST_HALVES = 4
"""More parts than that are a list of songs and no translations."""
MOST_TITLES = 50
"""Titles of a recording by one platform: a traditional song has hundreds, and each performance of it would repeat them."""

_NAMED = f"""
SELECT platform, entity_id AS external_id, title AS alias, 'recording' AS kind, locale FROM source_title WHERE entity_kind = 'recording'
UNION ALL
SELECT t.platform, w.external_id, t.title, 'work', t.locale
FROM source_title t JOIN source_work_recording w ON w.platform = t.platform AND w.work_id = t.entity_id
WHERE t.entity_kind = 'work' AND w.recording_platform = t.platform
UNION ALL
SELECT platform, external_id, unnest(halves), 'parallel', NULL FROM (
    SELECT platform, external_id, string_split(title, '{PARALLEL}') AS halves FROM source_recording
    WHERE platform = '{CATALOG_A}' AND contains(title, '{PARALLEL}')
) WHERE len(halves) <= {MOST_HALVES}
"""
# Composition data names recordings by codes, and some of its claims are refused: `work_recording` has those that hold.
_CLAIMED = f"""
SELECT r.recording_id, unnest(w.alternative_titles[:{MOST_TITLES}]) AS alias, w.platform
FROM source_work w JOIN work_recording r USING (iswc) WHERE w.platform = '{WORKS}'
"""
_ALIAS = f"""
SELECT recording_id, alias, kind, platform, locale FROM (
    SELECT DISTINCT recording_id, trim(alias) AS alias, kind, platform, locale FROM (
        SELECT m.recording_id, n.alias, n.kind, n.platform, n.locale
        FROM named n JOIN recording_member m ON m.platform = n.platform AND m.external_id = n.external_id
        UNION ALL SELECT recording_id, alias, 'work', platform, NULL FROM claimed
    )
) JOIN recording r USING (recording_id) WHERE alias <> r.title AND alias <> ''
QUALIFY dense_rank() OVER (PARTITION BY recording_id, platform ORDER BY kind = 'work', alias) <= {MOST_TITLES}
"""


def build_title_aliases(paths: BuildPaths) -> dict[str, int]:
    """Write recording_alias and return its row count."""
    with open_workbench(paths, "title_aliases") as bench:
        bench.keep("named", _NAMED)
        bench.keep("claimed", _CLAIMED)
        return {"title_aliases": bench.write("recording_alias", _ALIAS)}
