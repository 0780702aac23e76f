"""Drift of recording ids: the fate of the live snapshot's ids in the build that is about to replace it.

pipeline/linkage/id_registry.py gives the ids; gate.py decides how many moves are too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables.files import render_sql_source
from pipeline.build.workbench import open_workbench

if TYPE_CHECKING:
    from pipeline.paths import BuildPaths


@dataclass(frozen=True)
class IdDrift:
    """Recordings and source records, counted."""

    kept: int
    """Ids that remain."""
    new: int
    """Ids that are new; `split` of them took records from an older one."""
    split: int
    merged: int
    """Ids that became redirects to another."""
    retired: int
    """Ids that lost all their records."""
    records: int
    """Source records that both builds know."""
    moved: int
    """Source records, of these, that belong to another id now."""


def measure_id_drift(paths: BuildPaths) -> IdDrift | None:
    """Return the drift against the live snapshot; None when nothing is published."""
    live = paths.current / "tables"
    # Before the first publish no id exists that could drift.
    if not (live / "recording_member").is_dir():
        return None
    # Lost ids are counted from the two `recording` tables, which are integers. Moved records need both memberships: DuckDB joins those, and
    # spills.
    with open_workbench(paths, "id_drift") as bench:
        bench.keep("was", f"SELECT recording_id FROM {render_sql_source(live / 'recording')}")
        bench.keep("gone", "SELECT recording_id FROM was ANTI JOIN recording USING (recording_id)")
        bench.keep("fresh", "SELECT recording_id FROM recording ANTI JOIN was USING (recording_id)")
        bench.keep(
            "moves",
            "SELECT o.recording_id AS old_id, m.recording_id AS new_id, count(*) AS records "
            f"FROM {render_sql_source(live / 'recording_member')} o JOIN recording_member m USING (platform, external_id) "
            "GROUP BY ALL",
        )
        counts = bench.execute(
            """SELECT (SELECT count(*) FROM was) - (SELECT count(*) FROM gone),
                      (SELECT count(*) FROM fresh),
                      (SELECT count(DISTINCT new_id) FROM moves SEMI JOIN fresh ON new_id = recording_id),
                      (SELECT count(*) FROM gone SEMI JOIN (FROM redirect WHERE kind = 'recording' AND new_id IS NOT NULL) r
                       ON recording_id = old_id),
                      (SELECT coalesce(sum(records), 0)::BIGINT FROM moves),
                      (SELECT coalesce(sum(records), 0)::BIGINT FROM moves WHERE old_id <> new_id),
                      (SELECT count(*) FROM gone)"""
        ).fetchone()
    # A lost id that leads nowhere is retired; one with a redirect was merged.
    kept, new, split, merged, records, moved, gone = counts or (0,) * 7
    return IdDrift(kept, new, split, merged, gone - merged, records, moved)
