"""Fingerprints of each recording: the module weighs the links of tracks to recordings against each other.

The module writes recording_fingerprint and fingerprint_conflict. A fingerprint track goes to the recording that most users named, unless
its length differs too much. The other recordings named for it are kept as conflicts. A recording gets one fingerprint of each of its
tracks, an operator's own files first. pipeline/linkage/fingerprint_claims.py puts the links together, and recognition.py makes the index of
the chosen fingerprints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.platforms import AUDIO, CATALOG_B, FINGERPRINTS
from catalog_store.tables import FINGERPRINT_STAGING_TABLES
from pipeline.build.workbench import open_workbench
from pipeline.linkage.fingerprint_claims import LARGEST_GAP_SECONDS, OWN_FINGERPRINT, create_claims

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths

MOST_FINGERPRINTS = 3
"""Fingerprints per recording: masters that sound alike but differ. Each further one makes the index larger and finds less."""

_CLAIM = f"""
SELECT '{FINGERPRINTS}' AS source, track, r.recording_id, sum(link_count)::INTEGER AS link_count
FROM said JOIN recording_member r ON r.platform = '{CATALOG_B}' AND r.external_id = said.external_id
SEMI JOIN length USING (track) GROUP BY ALL
"""
# An operator's file names its recording by code or by a platform's id. The code comes first: its owner is decided by linkage.
_OWN_CLAIM = f"""
SELECT '{AUDIO}' AS source, fingerprint_id AS track, coalesce(o.recording_id, r.recording_id) AS recording_id,
    count(*)::INTEGER AS link_count
FROM own_said LEFT JOIN isrc_owner o ON o.isrc = own_said.isrc
LEFT JOIN recording_member r ON r.platform = own_said.target_platform AND r.external_id = own_said.external_id
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

# `ORDER BY source` puts an operator's own files first, because 'audio' sorts before 'fingerprints'.
_CHOSEN = f"""
WITH candidate AS (
    SELECT w.*, fingerprint_id, fingerprint_key, duration_seconds, submission_count, track AS fingerprint_track_id
    FROM won w JOIN best USING (track) WHERE source = '{FINGERPRINTS}'
    UNION ALL BY NAME
    SELECT w.*, fingerprint_id, fingerprint_key, duration_seconds, 1 AS submission_count
    FROM won w JOIN {OWN_FINGERPRINT} ON track = fingerprint_id WHERE source = '{AUDIO}'
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
        bench.show_inputs(" ".join([table.name for table in FINGERPRINT_STAGING_TABLES] + ["source_redirect"]))
        circles = create_claims(bench.connection)
        bench.keep("claim", f"({_CLAIM}) UNION ALL ({_OWN_CLAIM})")
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
            "merges_in_a_circle": circles,
        }


def _count(bench: Workbench, sql: str) -> int:
    return int(bench.read_frame(sql).item())
