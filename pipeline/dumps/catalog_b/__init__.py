"""catalog_b: a full export of a community music database, as archives of PostgreSQL COPY text or as JSON documents.

`stage` reads the delivered files once (`archives`, `unpacking`; `documents`, `document_unpacking`) and keeps what is wanted as Parquet
tables in a work folder beside the staging folder, the same for both layouts. A bounded DuckDB joins them into staging tables: one module
per thing that is staged. docs/reference/formats/catalog_b.md has the layouts and what is made of each of their oddities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dumps.catalog_b.archives import find_delivery
from pipeline.dumps.catalog_b.artists import stage_artists
from pipeline.dumps.catalog_b.credits import nest_credits
from pipeline.dumps.catalog_b.document_unpacking import unpack_documents
from pipeline.dumps.catalog_b.documents import document_files
from pipeline.dumps.catalog_b.genres import stage_genres
from pipeline.dumps.catalog_b.labels import stage_labels
from pipeline.dumps.catalog_b.links import stage_links
from pipeline.dumps.catalog_b.recordings import stage_recordings
from pipeline.dumps.catalog_b.redirects import stage_redirects
from pipeline.dumps.catalog_b.relations import open_relations
from pipeline.dumps.catalog_b.relationships import reject_lost_relationships
from pipeline.dumps.catalog_b.releases import stage_release_tracks, stage_releases
from pipeline.dumps.catalog_b.unpacking import unpack
from pipeline.dumps.catalog_b.works import stage_work_recordings, stage_works
from pipeline.dumps.errors import DumpError
from pipeline.dumps.scratch import scratch_folder
from pipeline.engine.duckdb_session import bounded_duckdb

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging_writer import StagingWriter


def stage(dump: Path, out: StagingWriter) -> None:
    """Read the export below `dump`. DumpError when an archive is missing, damaged, of an unknown schema or of another export."""
    delivery, files = find_delivery(dump), document_files(dump)
    if delivery is None and not files:
        raise DumpError(f"{dump}: neither mbdump.tar.bz2 nor an unpacked mbdump/ folder nor JSON documents are there; deliver an export")
    with scratch_folder(out) as work:
        if delivery is None:
            unpack_documents(files, dump, work, out)
        else:
            unpack(delivery, dump, work, out)
        with bounded_duckdb(work / "spill") as connection:
            relations = open_relations(connection, work, out, located=delivery is None)
            reject_lost_relationships(relations)
            nest_credits(relations, work / "credit")
            stage_recordings(relations)
            stage_releases(relations)
            stage_release_tracks(relations)
            stage_artists(relations)
            stage_labels(relations)
            stage_redirects(relations)
            stage_works(relations)
            stage_work_recordings(relations)
            stage_genres(relations)
            stage_links(relations)
