"""Fingerprints of each recording: the module joins the daily tables, follows merges and weighs links against each other.

The module writes recording_fingerprint and fingerprint_conflict. Of the rows of one id those of the latest day count. A fingerprint track
goes to the recording that most users named, unless its length differs too much. The other recordings named for it are kept as conflicts. A
recording gets one fingerprint of each of its tracks, an operator's own files first. recognition.py makes the index of the chosen
fingerprints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import AUDIO, CATALOG_B, FINGERPRINTS
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths

MOST_FINGERPRINTS = 3
"""Fingerprints per recording: masters that sound alike but differ. Each further one makes the index larger and finds less."""
LARGEST_GAP_SECONDS = 20
"""Largest gap in length between two copies of one recording (trailing silence, a hidden track cut off). A wider gap means another
recording."""

_LATEST = "QUALIFY row_number() OVER (PARTITION BY {} ORDER BY day DESC) = 1"

# A later day may take back a merge, a link or a vote. So the latest row of an id counts even if it says less than an earlier one.
_MERGE = f"""
SELECT old_id, new_id FROM (
    SELECT fingerprint_track_id AS old_id, merged_into AS new_id FROM source_fingerprint_track {_LATEST.format("fingerprint_track_id")}
) WHERE new_id IS NOT NULL
"""
_PRINT = f"""
WITH known AS (
    SELECT fingerprint_id, fingerprint_key, duration_seconds FROM source_fingerprint
    WHERE platform = '{FINGERPRINTS}' {_LATEST.format("fingerprint_id")}
), member AS (
    SELECT fingerprint_id, fingerprint_track_id, submission_count FROM source_fingerprint_member {_LATEST.format("fingerprint_id")}
)
SELECT coalesce(m.new_id, fingerprint_track_id) AS track, fingerprint_id, fingerprint_key, duration_seconds, submission_count
FROM member JOIN known USING (fingerprint_id) LEFT JOIN merged m ON fingerprint_track_id = m.old_id
"""
_LENGTH = "SELECT track, median(duration_seconds) AS seconds FROM print GROUP BY track"

# A link names a recording of catalog_b that may have been merged since: its id is followed to the one that stands for it now.
_CLAIM = f"""
WITH said AS (
    SELECT coalesce(m.new_id, fingerprint_track_id) AS track, coalesce(x.new_id, external_id) AS external_id, submission_count
    FROM (SELECT * FROM source_fingerprint_link {_LATEST.format("link_id")})
    LEFT JOIN merged m ON fingerprint_track_id = m.old_id
    LEFT JOIN source_redirect x ON x.platform = '{CATALOG_B}' AND x.entity_kind = 'recording' AND x.old_id = external_id
    WHERE NOT is_disabled
)
SELECT '{FINGERPRINTS}' AS source, track, r.recording_id, sum(submission_count)::INTEGER AS link_count
FROM said JOIN recording_member r ON r.platform = '{CATALOG_B}' AND r.external_id = said.external_id
SEMI JOIN length USING (track) GROUP BY ALL
"""
# An operator's file names its recording by code or by a platform's id. The code comes first: its owner is decided by linkage.
_OWN_CLAIM = f"""
WITH said AS (
    SELECT fingerprint_id, isrc, target_platform, coalesce(x.new_id, external_id) AS external_id
    FROM source_audio_file
    LEFT JOIN source_redirect x ON x.platform = target_platform AND x.entity_kind = 'recording' AND x.old_id = external_id
)
SELECT '{AUDIO}' AS source, fingerprint_id AS track, coalesce(o.recording_id, r.recording_id) AS recording_id,
    count(*)::INTEGER AS link_count
FROM said LEFT JOIN isrc_owner o ON o.isrc = said.isrc
LEFT JOIN recording_member r ON r.platform = said.target_platform AND r.external_id = said.external_id
WHERE coalesce(o.recording_id, r.recording_id) IS NOT NULL GROUP BY ALL
"""
"""Claims of an operator's files. Each file is a track of its own."""

# The gap in length comes before the votes: another length is another recording, however many users named it. An unknown gap rules out
# nothing.
_WEIGHED = f"""
WITH measured AS (
    SELECT c.*, abs(l.seconds - r.duration_ms / 1000.0)::INTEGER AS gap
    FROM claim c JOIN recording r USING (recording_id) LEFT JOIN length l ON c.track = l.track AND c.source = '{FINGERPRINTS}'
), judged AS (SELECT *, coalesce(gap > {LARGEST_GAP_SECONDS}, false) AS is_other FROM measured)
SELECT *, row_number() OVER (
    PARTITION BY source, track ORDER BY is_other, link_count DESC, gap NULLS LAST, recording_id) AS rank FROM judged
"""
_WON = "SELECT source, track, recording_id, link_count, gap FROM weighed WHERE rank = 1 AND NOT is_other"

_CONFLICT = """
SELECT w.source, w.track AS fingerprint_track_id, w.recording_id, o.recording_id AS winner_recording_id, w.link_count,
    o.link_count AS winner_link_count, w.gap AS duration_gap_seconds, CASE WHEN w.is_other THEN 'duration' ELSE 'outvoted' END AS reason
FROM weighed w LEFT JOIN won o ON o.source = w.source AND o.track = w.track
WHERE o.recording_id IS DISTINCT FROM w.recording_id
"""

# A track has the fingerprint that most users sent, nearest to the usual length. `ORDER BY source` puts an operator's own files first,
# because 'audio' sorts before 'fingerprints'.
_CHOSEN = f"""
WITH best AS (
    SELECT track, fingerprint_id, fingerprint_key, duration_seconds, submission_count FROM print JOIN length USING (track)
    QUALIFY row_number() OVER (
        PARTITION BY track ORDER BY submission_count DESC, abs(duration_seconds - seconds), fingerprint_id) = 1
), candidate AS (
    SELECT w.*, fingerprint_id, fingerprint_key, duration_seconds, submission_count, track AS fingerprint_track_id
    FROM won w JOIN best USING (track) WHERE source = '{FINGERPRINTS}'
    UNION ALL BY NAME
    SELECT w.*, fingerprint_id, fingerprint_key, duration_seconds, 1 AS submission_count
    FROM won w JOIN (SELECT * FROM source_fingerprint WHERE platform = '{AUDIO}') ON track = fingerprint_id WHERE source = '{AUDIO}'
)
SELECT * EXCLUDE (track, gap) FROM (
    SELECT *, (row_number() OVER (
        PARTITION BY recording_id ORDER BY source, link_count DESC, gap NULLS LAST, fingerprint_id) - 1)::SMALLINT AS position
    FROM candidate
) WHERE position < {MOST_FINGERPRINTS}
"""


def build_fingerprints(paths: BuildPaths) -> dict[str, int]:
    """Write recording_fingerprint and fingerprint_conflict; return row counts and the counts of omitted rows."""
    with open_workbench(paths, "fingerprints") as bench:
        links = bench.read_frame(_MERGE)
        merged = follow_merges(links)
        bench.load("merged", merged)
        for name, sql in (("print", _PRINT), ("length", _LENGTH), ("claim", f"({_CLAIM}) UNION ALL ({_OWN_CLAIM})")):
            bench.keep(name, sql)
        bench.keep("weighed", _WEIGHED)
        bench.keep("won", _WON)
        return {
            "recording_fingerprints": bench.write("recording_fingerprint", _CHOSEN),
            "fingerprint_conflicts": bench.write("fingerprint_conflict", _CONFLICT),
            "tracks_without_recording": _count(bench, "SELECT count(*) FROM length ANTI JOIN claim USING (track)"),
            "own_files_without_recording": _count(
                bench,
                "SELECT count(*) FROM (SELECT DISTINCT fingerprint_id AS track FROM source_audio_file) ANTI JOIN claim USING (track)",
            ),
            "merges_in_a_circle": links.height - merged.height,
        }


def follow_merges(links: pl.DataFrame) -> pl.DataFrame:
    """Return old_id -> new_id with chains followed to their end.

    Ids that lead into a circle are not merged, so the result leaves them out.

    Args:
        links: old_id, new_id (int64), old_id distinct.
    """
    ids = np.union1d(links["old_id"].to_numpy(), links["new_id"].to_numpy())
    step = np.arange(len(ids))
    step[np.searchsorted(ids, links["old_id"].to_numpy())] = np.searchsorted(ids, links["new_id"].to_numpy())
    # Each round doubles the number of steps followed, so log2(ids) rounds reach the end of every chain. An id in a circle has no end.
    end = step
    for _ in range(len(ids).bit_length()):
        end = end[end]
    is_settled = (step[end] == end) & (end != np.arange(len(ids)))
    return pl.DataFrame({"old_id": ids[is_settled], "new_id": ids[end[is_settled]]}, schema={"old_id": pl.Int64, "new_id": pl.Int64})


def _count(bench: Workbench, sql: str) -> int:
    return int(bench.read_frame(sql).item())
