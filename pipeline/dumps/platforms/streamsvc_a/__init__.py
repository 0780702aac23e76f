"""Adapter of streamsvc_a: relational tables (Parquet or SQLite), Web-API objects as NDJSON and JSON documents, or playlists as CSV.

See docs/reference/formats/streamsvc_a.md for the expected files and the mapping of each field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.streamsvc_a.playlist_csv import find_playlist_files, stage_playlists
from pipeline.dumps.platforms.streamsvc_a.relational_tables import find_parquet_tables, stage_tables
from pipeline.dumps.platforms.streamsvc_a.sqlite_export import export, is_sqlite
from pipeline.dumps.platforms.streamsvc_a.web_api import stage_objects
from pipeline.dumps.readers.json_files import find_json_files
from pipeline.dumps.staging.scratch_folder import open_scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the dump at `dump` in the layout that it has. Raises DumpError for an unknown layout."""
    with open_scratch_folder(out) as scratch:
        databases = [path for path in list_tree(dump) if path.suffix in SQLITE_SUFFIXES]
        tables = find_parquet_tables(dump)
        answers = find_json_files(dump)
        playlists = find_playlist_files(dump)
        # The layouts in order of how much they hold. Files of another one beside them become rejects.
        if tables:
            stage_tables(tables, dump, scratch, out)
        elif databases:
            out.use(*databases)
            if not is_sqlite(databases[0]):
                raise DumpError(f"{databases[0]}: not a SQLite file (wrong first bytes); fetch it again and compare its checksum")
            tables = {}
            for database in databases:
                tables.update(export(database, scratch, out))
            stage_tables(tables, dump, scratch, out)
        elif answers:
            stage_objects(answers, dump, scratch, out)
        elif playlists:
            stage_playlists(playlists, dump, scratch, out)
        else:
            raise DumpError(
                f"{dump}: no known layout (Parquet tables, SQLite file, NDJSON, playlist CSV); see docs/reference/formats/streamsvc_a.md"
            )
