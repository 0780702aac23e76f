"""Rows of the data for the report: some rejects and contested codes of each kind, and suspicious recordings.

../build_figures.py holds the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.build.workbench import open_workbench
from pipeline.quality.build_figures import WIDE_SPAN_MS, WIDE_SPAN_SHARE, keep_listed_twice

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench
    from pipeline.paths import BuildPaths

Row = dict[str, Any]
ROWS_OF_A_KIND = 20
"""Rows of one kind that the page of rows shows. They are in memory together, so their number must not grow with the catalog."""


@dataclass(frozen=True)
class Examples:
    """Rows for the tables of the report."""

    rejects: list[Row]
    """A row for each kind (platform, severity, reason, field) with its count `n` and first `rows`; by platform, most frequent first."""
    conflicts: list[Row]
    """Up to ROWS_OF_A_KIND rows of each reason, those of most records first."""
    wide: list[Row]
    twice: list[Row]


def choose_examples(paths: BuildPaths) -> Examples:
    """Pick the examples out of the tables of the build."""
    with open_workbench(paths, "report") as bench:
        keep_listed_twice(bench)
        return Examples(*(_read_rows(bench, sql) for sql in (_REJECTS, _CONFLICTS, _WIDE, _TWICE)))


def _read_rows(bench: Workbench, sql: str) -> list[Row]:
    return bench.read_frame(sql).to_dicts()


# Every query orders by count and then by columns that are unique, so the same tables give the same page. Each ends in a few rows: limits
# are inside, before names are joined to them. min_by with a count keeps only so many rows of a group in memory.
_REJECTS = f"""
    SELECT platform, severity, reason, coalesce(field, '') AS field, count(*) AS n,
           min_by({{'entity': entity, 'source_file': source_file, 'place': place, 'record_id': coalesce(record_id, ''),
                   'value': coalesce(value, ''), 'excerpt': coalesce(excerpt, '')}},
                  (source_file, place, entity, record_id, value), {ROWS_OF_A_KIND}) AS rows
    FROM reject GROUP BY platform, severity, reason, field
    ORDER BY platform, n DESC, severity, reason, field"""

_CONFLICTS = f"""
    WITH shown AS (
        SELECT unnest(min_by(c, (-record_count, isrc, recording_id), {ROWS_OF_A_KIND}), max_depth := 2)
        FROM isrc_conflict c GROUP BY reason)
    SELECT c.reason, c.isrc, array_to_string(c.platforms, ', ') AS platforms, c.record_count AS n, c.recording_id, c.owner_recording_id,
           l.artist_credit || ' - ' || l.title AS lost, o.artist_credit || ' - ' || o.title AS kept
    FROM shown c LEFT JOIN recording l USING (recording_id) LEFT JOIN recording o ON o.recording_id = c.owner_recording_id
    ORDER BY c.reason, n DESC, c.isrc, c.recording_id"""

_WIDE = f"""
    WITH wide AS (
        SELECT cluster_id, min(atom_id) AS atom_id, min(duration_ms) AS shortest, max(duration_ms) AS longest
        FROM cluster JOIN atom USING (atom_id) GROUP BY cluster_id
        HAVING longest - shortest > greatest({WIDE_SPAN_MS}, {WIDE_SPAN_SHARE} * longest)
        ORDER BY longest - shortest DESC, cluster_id LIMIT 5)
    SELECT recording_id, r.artist_credit || ' - ' || r.title AS what, w.shortest // 1000 AS shortest, w.longest // 1000 AS longest
    FROM (SELECT w.*, recording_id FROM wide w JOIN (
              SELECT atom_id, min((platform, external_id)) AS record FROM atom_member SEMI JOIN wide USING (atom_id) GROUP BY atom_id)
          USING (atom_id)
          JOIN recording_member m ON m.platform = record[1] AND m.external_id = record[2]) w
    JOIN recording r USING (recording_id) ORDER BY w.longest - w.shortest DESC, recording_id"""

_TWICE = """
    WITH twice AS (
        SELECT cluster_id, platform, release_id, min(external_id) AS external_id, count(*) AS n FROM listed_twice
        GROUP BY cluster_id, platform, release_id ORDER BY n DESC, cluster_id, platform, release_id LIMIT 5)
    SELECT recording_id, r.artist_credit || ' - ' || r.title AS what, platform, release_id, n
    FROM twice JOIN recording_member USING (platform, external_id) JOIN recording r USING (recording_id)
    ORDER BY n DESC, recording_id, platform, release_id"""
