"""Links: addresses of each recording on the platforms' own sites, and retired platform ids that still resolve.

The module writes platform_link and external_redirect. A link comes from a record of the recording itself, or from one of these relations:

- A URL relation of a recording.
- A catalog_a release that is given as the same as the recording's release.
- A video of a release that has only one track. With more tracks no source says which one the video shows.

A relation to a platform id that is a record of ours yields to linkage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.platforms import CATALOG_A
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

_TRACK = """
SELECT DISTINCT platform, release_id, recording_id FROM (
    SELECT platform, release_id, external_id FROM source_release_track
    UNION ALL SELECT platform, release_id, external_id FROM source_recording WHERE release_id IS NOT NULL
) JOIN recording_member USING (platform, external_id)
"""

_SAID = f"""
SELECT m.recording_id, l.target_platform AS source, l.target_id AS external_id
FROM source_link l JOIN recording_member m ON m.platform = l.platform AND m.external_id = l.entity_id
WHERE l.entity_kind = 'recording' AND l.target_kind IN ('recording', 'video')
UNION
SELECT t.recording_id, l.target_platform, l.target_id
FROM source_link l JOIN release_track t ON t.platform = l.platform AND t.release_id = l.entity_id
WHERE l.entity_kind = 'release' AND l.target_kind = 'release' AND l.target_platform = '{CATALOG_A}'
UNION
SELECT t.recording_id, l.target_platform, l.target_id
FROM source_link l JOIN (
    SELECT platform, release_id, min(recording_id) AS recording_id FROM release_track GROUP BY ALL HAVING count(*) = 1
) t ON t.platform = l.platform AND t.release_id = l.entity_id
LEFT JOIN source_release r ON r.platform = l.platform AND r.release_id = l.entity_id
WHERE l.entity_kind = 'release' AND l.target_kind = 'video' AND coalesce(r.track_count, 1) <= 1
"""

# The last line leaves out ids that are records of ours: linkage says which recording has those. catalog_a is excepted, because its ids
# are releases: one release may stand for many recordings.
_PLATFORM_LINK = f"""
WITH own AS (
    SELECT m.recording_id, r.platform AS source, r.link_id AS external_id, min(r.slug) AS slug
    FROM source_recording r JOIN recording_member m USING (platform, external_id) GROUP BY ALL
), said AS (
    SELECT s.recording_id, s.source, coalesce(x.new_id, s.external_id) AS external_id
    FROM ({_SAID}) s LEFT JOIN source_redirect x ON x.platform = s.source AND x.entity_kind = 'recording' AND x.old_id = s.external_id
)
SELECT recording_id, source, external_id, slug FROM own
UNION ALL
SELECT DISTINCT recording_id, source, external_id, NULL FROM said
ANTI JOIN (SELECT recording_id, source, external_id FROM own) USING (recording_id, source, external_id)
ANTI JOIN (SELECT DISTINCT source, external_id FROM own WHERE source <> '{CATALOG_A}') USING (source, external_id)
"""


def build_links(paths: BuildPaths) -> dict[str, int]:
    """Write platform_link and external_redirect, and return row counts."""
    with open_workbench(paths, "links") as bench:
        bench.keep("release_track", _TRACK)
        bench.keep("link", _PLATFORM_LINK)
        return {
            "platform_links": bench.write("platform_link", "SELECT * FROM link"),
            "external_redirects": bench.write(
                "external_redirect",
                "SELECT platform AS source, old_id, new_id FROM source_redirect "
                "SEMI JOIN link ON source = platform AND external_id = new_id WHERE entity_kind = 'recording'",
            ),
        }
