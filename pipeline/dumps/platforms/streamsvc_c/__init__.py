"""Adapter of streamsvc_c: JSON:API resources and documents, the older `resource` documents, and two flat track and album layouts.

All may be in one dump, one record per line or as whole documents: the fields of a record show its layout. See
docs/reference/formats/streamsvc_c.md for the expected files and the mapping of each field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dumps.delivered_records.record_staging import stage_delivered
from pipeline.dumps.delivered_records.record_store import DeliveredStore
from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.streamsvc_c import credit_lines, flat_tracks, json_api, resource_documents
from pipeline.dumps.platforms.streamsvc_c.json_layouts import COLUMNS, IGNORED, KIND_SHAPES, MEMBERS, USUAL, detect_layout
from pipeline.dumps.readers.json_files import find_json_files, guess_entity
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.staging.record_checks import build_unknown_rejects
from pipeline.dumps.staging.scratch_folder import open_scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from pipeline.dumps.staging.staging_writer import StagingWriter

LAYOUTS = {
    "resource": json_api.add,
    "older": resource_documents.add,
    "track": flat_tracks.add_tracks,
    "album": flat_tracks.add_albums,
    "artist": flat_tracks.add_artists,
    "lined_track": credit_lines.add_tracks,
    "lined_album": credit_lines.add_albums,
}


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the dump at `dump`. Raises DumpError when it holds no JSON file, or one cannot be read."""
    files = find_json_files(dump)
    if not files:
        raise DumpError(f"{dump}: no JSON file (.ndjson, .jsonl, .json, plain or compressed); see docs/reference/formats/streamsvc_c.md")
    with open_scratch_folder(out) as scratch:
        store = DeliveredStore(scratch)
        genre_names: dict[str, str] = {}
        for path in files:
            entity = guess_entity(path)
            source_file = path.name if path == dump else str(path.relative_to(dump))
            out.use(path)
            census = out.start_census("records", COLUMNS, IGNORED, USUAL)
            for block in read_json_blocks(path, COLUMNS, source_file=source_file, members=MEMBERS, census=census, parsed=out.parsed_lines):
                out.count_read(entity, block.broken.height)
                out.write_rejects(block.build_rejects(entity))
                _add(block.frame.with_columns(_kind=detect_layout()), entity, store, genre_names, out)
            out.report(f"{source_file}: read")
        stage_delivered(store, out, scratch, genre_names)


def _add(frame: pl.DataFrame, entity: str, store: DeliveredStore, genre_names: dict[str, str], out: StagingWriter) -> None:
    for (name,), rows in frame.group_by("_kind", maintain_order=True):
        if name in LAYOUTS:
            LAYOUTS[str(name)](rows, store)
        elif name == "genre":
            genre_names.update(rows.select(KIND_SHAPES["genre"]).drop_nulls().iter_rows())
        elif name == "unknown":
            out.count_read(entity, rows.height)
            out.write_rejects(build_unknown_rejects(rows, entity))
