"""Adapter of catalog_b: a full export of a community music database, as archives of PostgreSQL COPY text or as JSON documents.

`stage` reads the delivered files once (`archives`, `table_unpacking`; `documents`, `document_unpacking`). It keeps the wanted columns as
Parquet tables in a work folder beside the staging folder, in the same form for both layouts. A bounded DuckDB joins them into staging
tables. docs/reference/formats/catalog_b.md has the layouts and their oddities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.catalog_b.archives import find_delivery
from pipeline.dumps.platforms.catalog_b.artists_and_labels import stage_artists, stage_labels
from pipeline.dumps.platforms.catalog_b.document_unpacking import unpack_documents
from pipeline.dumps.platforms.catalog_b.documents import find_document_files
from pipeline.dumps.platforms.catalog_b.nested_credits import nest_credits
from pipeline.dumps.platforms.catalog_b.other_titles import stage_titles
from pipeline.dumps.platforms.catalog_b.performed_works import stage_work_recordings, stage_works
from pipeline.dumps.platforms.catalog_b.recording_rows import stage_recordings
from pipeline.dumps.platforms.catalog_b.relations import open_relations
from pipeline.dumps.platforms.catalog_b.relationships import reject_lost_relationships, stage_links, stage_redirects
from pipeline.dumps.platforms.catalog_b.release_rows import stage_release_tracks, stage_releases
from pipeline.dumps.platforms.catalog_b.table_unpacking import unpack
from pipeline.dumps.platforms.catalog_b.tags import stage_genres
from pipeline.dumps.staging.scratch_folder import open_scratch_folder
from pipeline.engine.duckdb_session import open_duckdb

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter


def stage(dump: Path, out: StagingWriter) -> None:
    """Read the export below `dump`. DumpError when an archive is missing, damaged, of an unknown schema or of another export."""
    delivery, files = find_delivery(dump), find_document_files(dump)
    if delivery is None and not files:
        raise DumpError(f"{dump}: neither mbdump.tar.bz2 nor an unpacked mbdump/ folder nor JSON documents are there; deliver an export")
    with open_scratch_folder(out) as work:
        if delivery is None:
            unpack_documents(files, dump, work, out)
        else:
            unpack(delivery, dump, work, out)
        with open_duckdb(work / "spill") as connection:
            relations = open_relations(connection, work, out, has_places=delivery is None)
            reject_lost_relationships(relations)
            # Before recordings and releases, which join their credits.
            nest_credits(relations, work / "credit")
            stage_recordings(relations)
            stage_releases(relations)
            stage_release_tracks(relations)
            stage_artists(relations)
            stage_labels(relations)
            stage_redirects(relations)
            stage_works(relations)
            stage_work_recordings(relations)
            stage_titles(relations)
            stage_genres(relations)
            stage_links(relations)
