"""Duration of a recording: the median of the platforms, one value each.

Each platform's value is the median of its records. Platforms further than AGREEING_MS from the best-supported value are left out. Videos
count only where nothing else does. recordings.py rounds to seconds; pipeline/linkage/guards.py uses durations as evidence of identity.
"""

from __future__ import annotations

from pipeline.build.priorities import RECORDING_DURATION, render_rank_sql

AGREEING_MS = 4_000
"""Largest distance of two platforms that agree. Encoder delay, trailing silence and whole seconds make up to 3 s in real quadruples, 4 with
jitter."""

# One value per platform: five albums of one shop are one measurement. Videos have intros, so they are the last resort.
DURATION_OF_PLATFORM = """
WITH timed AS (
    SELECT recording_id, platform, is_video, median(duration_ms) AS ms, count(*) AS records
    FROM member WHERE duration_ms IS NOT NULL GROUP BY ALL
)
SELECT recording_id, platform, ms, records FROM timed WHERE NOT is_video
UNION ALL
SELECT recording_id, platform, ms, records
FROM timed ANTI JOIN (SELECT recording_id FROM timed WHERE NOT is_video) USING (recording_id) WHERE is_video
"""
"""Duration per platform; reads `member`, kept as `duration_of_platform`."""

# A platform with a hidden track or a wrong entry must not move the others. Two that contradict each other must not be averaged into a
# length that nobody measured. Most recordings have platforms that agree, so the join of platforms with each other stays small.
DURATION = f"""
WITH spread AS (
    SELECT recording_id, median(ms) AS ms, count(*) AS platforms, max(ms) - min(ms) > {AGREEING_MS} AS is_split
    FROM duration_of_platform GROUP BY recording_id
), split AS (
    FROM duration_of_platform SEMI JOIN (SELECT recording_id FROM spread WHERE is_split) USING (recording_id)
), supported AS (
    SELECT a.recording_id, a.platform, a.ms, count(*) AS voices, sum(b.records) AS records
    FROM split a JOIN split b USING (recording_id) WHERE abs(a.ms - b.ms) <= {AGREEING_MS} GROUP BY ALL
), centre AS (
    SELECT recording_id, arg_min(struct_pack(ms := ms, voices := voices),
        struct_pack(a := -voices, b := -records, c := {render_rank_sql(RECORDING_DURATION)})) AS best
    FROM supported GROUP BY recording_id
), agreed AS (
    SELECT recording_id, median(ms) AS ms, count(*) AS platforms, any_value(best.voices) AS voices
    FROM split JOIN centre USING (recording_id) WHERE abs(ms - best.ms) <= {AGREEING_MS} GROUP BY recording_id
)
SELECT recording_id, ms, platforms::INT AS agreed, CASE WHEN platforms = 1 THEN 'only_platform' ELSE 'median' END AS reason
FROM spread WHERE NOT is_split
UNION ALL
SELECT recording_id, ms, platforms::INT, CASE WHEN voices > 1 THEN 'majority' ELSE 'priority' END FROM agreed
"""
"""recording_id, ms (may be a half), agreed (platforms near it), reason. No row when no platform knows a duration."""
