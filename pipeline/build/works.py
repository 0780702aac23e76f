"""Works: the ISWCs that each recording performs (n:m), by ISRC and by platform records, with retired record ids followed.

The module writes work and work_recording. An ISRC counts for the recording that owns it. A work without any recording of ours stays in
`work`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.build.priorities import WORK_TITLE, rank_sql
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

_WORK = f"""
SELECT iswc, arg_min(title, struct_pack(a := {rank_sql(WORK_TITLE)}, b := -n, c := title)) AS title
FROM (SELECT platform, iswc, title, count(*) AS n FROM source_work WHERE iswc IS NOT NULL GROUP BY ALL) GROUP BY iswc
"""

# `UNION` without ALL: an ISRC and a platform record may name the same performance.
_PERFORMANCE = """
SELECT s.platform, s.work_id, o.recording_id FROM source_work_recording s JOIN isrc_owner o USING (isrc)
UNION
SELECT s.platform, s.work_id, m.recording_id
FROM source_work_recording s
LEFT JOIN source_redirect r ON r.platform = s.recording_platform AND r.entity_kind = 'recording' AND r.old_id = s.external_id
JOIN recording_member m ON m.platform = s.recording_platform AND m.external_id = coalesce(r.new_id, s.external_id)
"""


def build_works(paths: BuildPaths) -> dict[str, int]:
    """Write work and work_recording, and return row counts."""
    with open_workbench(paths, "works") as bench:
        bench.keep("performance", _PERFORMANCE)
        return {
            "works": bench.write("work", _WORK),
            "work_recordings": bench.write(
                "work_recording",
                "SELECT DISTINCT w.iswc, p.recording_id FROM performance p JOIN source_work w USING (platform, work_id) "
                "WHERE w.iswc IS NOT NULL",
            ),
        }
