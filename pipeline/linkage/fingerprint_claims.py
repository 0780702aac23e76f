"""Claims of fingerprints as of today: which fingerprint stands for a track, and which records users or operators name for it.

Of the rows of one id those of the latest day count, and merged tracks are followed. Linkage reads the claims by source record
(atom_fingerprints.py), the catalog by recording (pipeline/build/fingerprints.py). Out of scope: which claim wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import AUDIO, CATALOG_B, FINGERPRINTS
from pipeline.engine.duckdb_session import read_frame

if TYPE_CHECKING:
    import duckdb

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
_BEST = """
SELECT track, fingerprint_id, fingerprint_key, duration_seconds, submission_count FROM print JOIN length USING (track)
QUALIFY row_number() OVER (
    PARTITION BY track ORDER BY submission_count DESC, abs(duration_seconds - seconds), fingerprint_id) = 1
"""
# A link names a recording of catalog_b that may have been merged since: its id is followed to the one that stands for it now.
_SAID = f"""
SELECT coalesce(m.new_id, fingerprint_track_id) AS track, coalesce(x.new_id, external_id) AS external_id,
    sum(submission_count)::INTEGER AS link_count
FROM (SELECT * FROM source_fingerprint_link {_LATEST.format("link_id")})
LEFT JOIN merged m ON fingerprint_track_id = m.old_id
LEFT JOIN source_redirect x ON x.platform = '{CATALOG_B}' AND x.entity_kind = 'recording' AND x.old_id = external_id
WHERE NOT is_disabled GROUP BY ALL
"""
_OWN_SAID = """
SELECT fingerprint_id, isrc, target_platform, coalesce(x.new_id, external_id) AS external_id
FROM source_audio_file
LEFT JOIN source_redirect x ON x.platform = target_platform AND x.entity_kind = 'recording' AND x.old_id = external_id
"""
OWN_FINGERPRINT = f"(SELECT * FROM source_fingerprint WHERE platform = '{AUDIO}')"
"""The fingerprints of an operator's files."""


def create_claims(connection: duckdb.DuckDBPyConnection) -> int:
    """Create the relations below from the staging tables that the connection shows, and return the number of merges in a circle.

    print: track, fingerprint_id, fingerprint_key, duration_seconds, submission_count; length: track, seconds (the median); best: the row of
    `print` that stands for its track. said: track, external_id (of catalog_b), link_count. own_said: fingerprint_id, and isrc, or
    target_platform and external_id, or both.
    """
    links = read_frame(connection, _MERGE)
    merged = follow_merges(links)
    # A copy: DuckDB can spill a table of its own, but not a registered frame.
    connection.register("_merged", merged.to_arrow())
    connection.execute("CREATE TABLE merged AS SELECT * FROM _merged")
    connection.unregister("_merged")
    for name, sql in (("print", _PRINT), ("length", _LENGTH)):
        connection.execute(f'CREATE TABLE "{name}" AS {sql}')
    for name, sql in (("best", _BEST), ("said", _SAID), ("own_said", _OWN_SAID)):
        connection.execute(f'CREATE VIEW "{name}" AS {sql}')
    return links.height - merged.height


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
