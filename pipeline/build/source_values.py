"""Tables of source values: staging rows beside the recordings that they became, and all rejects.

The module chooses nothing; provenance.py says which source gave a field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths

MOST_ROWS_SORTED = 6_000_000
"""Rows up to which recording_source is sorted as a whole.

The sort takes 20 CPU-s and 1.76 GB for 5.2 million rows, and work by parts 54 and 1.2. For 10.4 million the sort ran out of DuckDB's
memory: two attempts took 246 CPU-s, 3.19 GB and 36 GB of disk. Parts took 127 CPU-s, 1.22 GB and 9 GB. For 28.2 million rows they filled
36 GB of disk; a platform at a time they take 545 CPU-s, 2.33 GB and 9.8 GB.
"""

_LISTED = """
SELECT platform, external_id, min(release_id) AS release_id FROM source_release_track
SEMI JOIN (FROM source_recording WHERE release_id IS NULL) USING (platform, external_id) GROUP BY ALL
"""
_PART = """
SELECT recording_id, platform, external_id,
    ((row_number() OVER (ORDER BY recording_id, platform, external_id) - 1) // {rows})::INT AS part
FROM recording_member
"""
_GENRES = """
SELECT platform, entity_id, list(genre ORDER BY position, genre) AS genres FROM source_genre WHERE entity_kind = '{kind}' GROUP BY ALL
"""
# A join of texts by their own columns, in the order in which it is written: see QuerySteps. {where} chooses rows of each table alike.
_RECORDING_SOURCE = """
SELECT m.recording_id, s.platform, s.external_id, s.title, s.version, s.artist_credit, s.artists, s.isrcs, s.duration_ms,
    coalesce(s.release_date, r.release_date)::DATE AS release_date,
    CASE WHEN s.release_date IS NULL THEN r.release_date_precision ELSE s.release_date_precision END AS release_date_precision,
    CASE WHEN s.release_date IS NOT NULL THEN 'recording' WHEN r.release_date IS NOT NULL THEN 'release' END AS release_date_entity,
    coalesce(s.release_id, l.release_id) AS release_id, r.title AS release_title, r.label_name,
    coalesce(g.genres, []) AS genres, coalesce(h.genres, []) AS release_genres, m.part
FROM (FROM source_recording WHERE {where}) s
JOIN (FROM member_part WHERE {where}) m ON m.platform = s.platform AND m.external_id = s.external_id
LEFT JOIN (FROM listed WHERE {where}) l ON l.platform = s.platform AND l.external_id = s.external_id
LEFT JOIN (FROM source_release WHERE {where}) r ON r.platform = s.platform AND r.release_id = coalesce(s.release_id, l.release_id)
LEFT JOIN (FROM genre_of_recording WHERE {where}) g ON g.platform = s.platform AND g.entity_id = s.external_id
LEFT JOIN (FROM genre_of_release WHERE {where}) h ON h.platform = s.platform AND h.entity_id = coalesce(s.release_id, l.release_id)
"""


def build_source_values(paths: BuildPaths) -> dict[str, int]:
    """Write recording_source and source_reject, and return row counts."""
    with open_workbench(paths, "source_values") as bench:
        bench.keep("listed", _LISTED)
        for kind in ("recording", "release"):
            bench.keep(f"genre_of_{kind}", _GENRES.format(kind=kind))
        bench.keep("member_part", _PART.format(rows=TABLES["recording_source"].rows_per_part))
        if count_rows(paths.table("recording_member")) > MOST_ROWS_SORTED:
            # One platform at a time: each join that exceeds memory writes the wide rows to disk again.
            queries = (_RECORDING_SOURCE.format(where=f"platform = '{platform}'") for platform in CATALOG_PLATFORMS)
            records = bench.write_parts("recording_source", queries)
        else:
            records = bench.write("recording_source", f"SELECT * EXCLUDE (part) FROM ({_RECORDING_SOURCE.format(where='true')})")
        return {"source_values": records, "rejects": bench.write("source_reject", "SELECT * FROM reject")}
