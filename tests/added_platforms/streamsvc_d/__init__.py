"""Adapter of streamsvc_d: one file of JSON lines, a song each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.delivered_records.record_shapes import GENRES
from pipeline.dumps.delivered_records.record_staging import stage_delivered
from pipeline.dumps.delivered_records.record_store import DeliveredStore
from pipeline.dumps.errors import DumpError
from pipeline.dumps.fields.delivered_credits import CREDITS
from pipeline.dumps.fields.duration_notations import parse_duration_ms
from pipeline.dumps.readers.json_files import find_json_files
from pipeline.dumps.readers.ndjson import read_json_blocks
from pipeline.dumps.staging.scratch_folder import open_scratch_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.staging.staging_writer import StagingWriter

COLUMNS = dict.fromkeys(("song", "name", "by", "by_id", "isrc", "seconds", "style"), "VARCHAR")
ENTITY = "source_recording"


def stage(dump: Path, out: StagingWriter) -> None:
    """Stage the songs below `dump`. Raises DumpError when it holds no JSON file."""
    files = find_json_files(dump)
    if not files:
        raise DumpError(f"{dump}: no JSON file")
    with open_scratch_folder(out) as scratch:
        store = DeliveredStore(scratch)
        for path in files:
            out.use(path)
            census = out.start_census("songs", COLUMNS, (), ("song", "name"))
            for block in read_json_blocks(path, COLUMNS, census=census):
                out.count_read(ENTITY, block.broken.height)
                out.write_rejects(block.build_rejects(ENTITY))
                store.add("recording", _map_songs(block.frame))
        stage_delivered(store, out, scratch)


def _map_songs(rows: pl.DataFrame) -> pl.DataFrame:
    credit = pl.struct(artist_id=pl.col("by_id"), name=pl.col("by"), role=pl.lit("primary"))
    style = pl.struct(genre=pl.col("style"), genre_id=pl.lit(None, pl.String), parent=pl.lit(None, pl.String))
    return rows.select(
        "source_file",
        "place",
        "isrc",
        id="song",
        title="name",
        artists=pl.concat_list(credit).cast(CREDITS),
        duration="seconds",
        duration_ms=parse_duration_ms(pl.col("seconds"), "s"),
        genres=pl.when(pl.col("style").is_not_null()).then(pl.concat_list(style)).cast(GENRES),
    )
