"""Adapter of store_a: version 4 tracks and releases as JSON, the older version 3 forms and track lists, or the relational CSV set.

See docs/reference/formats/store_a.md for the expected files and the mapping of each field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dumps.delivered_records.record_staging import stage_delivered
from pipeline.dumps.delivered_records.record_store import DeliveredStore
from pipeline.dumps.errors import DumpError
from pipeline.dumps.platforms.store_a import version_3, version_4
from pipeline.dumps.platforms.store_a.csv_set import add_csv_set, find_csv_tables
from pipeline.dumps.platforms.store_a.json_forms import IGNORED, detect_form, detect_kind
from pipeline.dumps.readers.json_files import find_json_files, guess_entity
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.staging.record_checks import build_unknown_rejects
from pipeline.dumps.staging.scratch_folder import open_scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

LAYOUTS = {
    ("version_4", "track"): version_4.add_tracks,
    ("version_4", "release"): version_4.add_releases,
    ("version_4", "artist"): version_4.add_artists,
    ("version_4", "label"): version_4.add_labels,
    ("version_3", "track"): version_3.add_tracks,
    ("version_3", "release"): version_3.add_releases,
    ("version_3", "artist"): version_4.add_artists,
    ("version_3", "label"): version_4.add_labels,
    ("site_search", "track"): version_3.add_search_results,
    ("track_list", "track"): version_3.add_track_list,
}


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the dump at `dump`. Raises DumpError when it holds neither JSON files nor the CSV set, or a file cannot be read."""
    files, tables = find_json_files(dump), find_csv_tables(dump)
    if not files and not tables:
        raise DumpError(f"{dump}: no JSON file and no bp_*.csv; see docs/reference/formats/store_a.md")
    with open_scratch_folder(out) as scratch:
        store = DeliveredStore(scratch)
        for path in files:
            source_file = path.name if path == dump else str(path.relative_to(dump))
            _add_file(path, source_file, store, out)
            out.report(f"{source_file}: read")
        if tables:
            add_csv_set(tables, dump, scratch, store, out)
            out.report("CSV set: read")
        stage_delivered(store, out, scratch)


def _add_file(path: Path, source_file: str, store: DeliveredStore, out: StagingWriter) -> None:
    out.use(path)
    entity, form = guess_entity(path), detect_form(path)
    census = out.start_census(form.name, form.columns, IGNORED, form.usual)
    for block in read_json_blocks(
        path, form.columns, source_file=source_file, members=form.members, census=census, parsed=out.parsed_lines
    ):
        out.count_read(entity, block.broken.height)
        out.write_rejects(block.build_rejects(entity))
        for (kind,), rows in block.frame.with_columns(_kind=detect_kind(form, entity)).group_by("_kind", maintain_order=True):
            if (form.name, str(kind)) in LAYOUTS:
                LAYOUTS[form.name, str(kind)](rows, store)
            else:
                out.count_read(entity, rows.height)
                out.write_rejects(build_unknown_rejects(rows, entity))
