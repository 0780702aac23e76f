"""Named invariants over several tables, beyond the spec of any single table. Each counts the rows that break it, like a table check.

Add one when a property of the whole build must hold before anything is published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.sql_text import quote_list
from catalog_store.tables import STAGED_TABLES
from catalog_store.tables.checks import TableCheck
from catalog_store.tables.files import render_sql_source
from catalog_store.tables.staging import INTAKE, REJECT
from pipeline.paths import DAILY

if TYPE_CHECKING:
    from pathlib import Path

    from catalog_store.tables import Table
    from pipeline.paths import BuildPaths


def list_staged_tables(platform: str, folder: Path) -> list[Table]:
    """Return the platform's staging tables that `folder` has; all before it exists.

    An older version staged fewer tables. Its staging stays in use while no newer dump can be read.
    """
    return [table for table in STAGED_TABLES[platform] if not folder.is_dir() or (folder / table.name).is_dir()]


def list_staging_invariants(platform: str, folder: Path) -> list[TableCheck]:
    """Check one platform's staging tables: the counts of the intake agree with the rows on disk."""
    intake, reject = render_sql_source(folder / "intake"), render_sql_source(folder / "reject")
    staged = " UNION ALL ".join(
        f"SELECT '{table.name}' AS entity, count(*) AS n FROM {render_sql_source(folder / table.name)}"
        for table in list_staged_tables(platform, folder)
        if table not in (REJECT, INTAKE)
    )
    rejected = f"SELECT entity, count(*) AS n FROM {reject} WHERE severity = 'row' GROUP BY entity"
    # The writer of staging keeps these counts itself. The files are counted again, because a fault of the writer would hide itself.
    found = [
        TableCheck(
            "intake",
            "rows_read_are_staged_or_rejected",
            "rows read = rows staged + rows rejected, per kind of record, counted again on disk",
            f"SELECT count(*) FROM {intake} i LEFT JOIN ({staged}) s USING (entity) LEFT JOIN ({rejected}) r USING (entity) "
            "WHERE i.rows_read <> coalesce(s.n, 0) + coalesce(r.n, 0)",
        )
    ]
    if platform not in DAILY:  # a day may bring no records
        found.append(
            TableCheck(
                "intake",
                "some_records_staged",
                "the dump held at least one record that could be staged",
                f"SELECT CASE WHEN coalesce(sum(rows_staged), 0) = 0 THEN 1 ELSE 0 END FROM {intake}",
            )
        )
    return found


def list_linkage_invariants(paths: BuildPaths) -> list[TableCheck]:
    """Check that every source record is in exactly one recording."""
    # A lost record would vanish from the catalog without a reject, and a record too many would be an id without a source.
    members = render_sql_source(paths.table("recording_member"))
    records = _render_staged_sql(paths, "source_recording")
    return [
        TableCheck(
            "recording_member",
            "every_record_is_linked",
            "every staged source record is in recording_member, and no other is",
            f"SELECT count(*) FROM (SELECT platform, external_id FROM {records}) r "
            f"FULL JOIN {members} m USING (platform, external_id) WHERE m.recording_id IS NULL OR r.platform IS NULL",
        ),
    ]


def list_recording_invariants(paths: BuildPaths) -> list[TableCheck]:
    """Check each recording.

    It has members, a primary artist, sources for its values, and at most one representative code, which is its own.
    """
    recording, artist = render_sql_source(paths.table("recording")), render_sql_source(paths.table("recording_artist"))
    isrc, member = render_sql_source(paths.table("recording_isrc")), render_sql_source(paths.table("recording_member"))
    provenance = render_sql_source(paths.table("recording_provenance"))
    return [
        TableCheck(
            "recording",
            "recordings_are_the_linked_ones",
            "recording holds exactly the ids of recording_member",
            f"SELECT count(*) FROM (SELECT DISTINCT recording_id FROM {member}) m FULL JOIN {recording} r USING (recording_id) "
            "WHERE m.recording_id IS NULL OR r.title IS NULL",
        ),
        TableCheck(
            "recording_artist",
            "every_recording_has_a_primary_artist",
            "every recording has at least one primary artist",
            f"SELECT count(*) FROM {recording} ANTI JOIN (SELECT recording_id FROM {artist} WHERE is_primary) USING (recording_id)",
        ),
        TableCheck(
            "recording_isrc",
            "representative_isrc_is_marked",
            "recording.isrc is the code marked representative in recording_isrc",
            f"SELECT count(*) FROM (SELECT recording_id, isrc FROM {recording} WHERE isrc IS NOT NULL) r "
            f"FULL JOIN (SELECT recording_id, isrc FROM {isrc} WHERE is_representative) i USING (recording_id) "
            "WHERE r.isrc IS DISTINCT FROM i.isrc",
        ),
        TableCheck(
            "recording_provenance",
            "every_value_has_a_source",
            "every recording has a row, and its title, duration, code and date have a source exactly when they are known",
            f"SELECT count(*) FROM {recording} r FULL JOIN {provenance} p USING (recording_id) WHERE p.title_platform IS NULL "
            "OR r.title IS NULL OR (r.duration_ms IS NULL) <> (p.duration_external_id IS NULL) OR (r.isrc IS NULL) <> (p.isrc_external_id "
            "IS NULL) OR (r.release_date IS NULL) <> (p.release_date_external_id IS NULL)",
        ),
    ]


def list_genre_invariants(paths: BuildPaths) -> list[TableCheck]:
    """Check that the canonical tree has its 25 mains (specification, 2.6)."""
    return [
        TableCheck(
            "genre",
            "there_are_25_mains",
            "the canonical tree has 25 main genres",
            f"SELECT abs(count(*) - 25) FROM {render_sql_source(paths.table('genre'))} WHERE type = 'main'",
        ),
    ]


def _render_staged_sql(paths: BuildPaths, name: str) -> str:
    return f"read_parquet({quote_list(folder / 'part-*.parquet' for folder in paths.staged(name))})"
