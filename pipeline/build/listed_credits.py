"""Credits of source records, as platforms list them. `keep_credits` makes the step `credit` of the artists' workbench.

Each slice of the staged records finds their recordings in the index, so no query joins the texts of the whole catalog.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.record_keys.numbers import number_record
from pipeline.build.artist_names import UNKNOWN_ARTIST
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import ROWS_FOR_A_POOL, cut_jobs
from pipeline.build.workbench import read_spilled, spill_frame
from pipeline.engine.pool import start_workers
from pipeline.linkage.staged_records import count_records, list_record_parts

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.recording_ranges import SliceJob
    from pipeline.build.workbench import Workbench
    from pipeline.engine.number_index import NumberIndex

_CREDIT = pl.Schema(
    {
        "recording_id": pl.Int64(),
        "platform": pl.String(),
        "external_id": pl.String(),
        "position": pl.Int16(),
        "artist_id": pl.String(),
        "name": pl.String(),
        "role": pl.String(),
        "is_named_by_title": pl.Boolean(),
    }
)


def keep_credits(bench: Workbench) -> None:
    """Make `credit`: a row for each artist with a name, or one with the text of the credit where a record lists no artist."""
    bench.load("credit", pl.DataFrame(schema=_CREDIT))
    with start_workers(is_small=count_records(bench.paths) < ROWS_FOR_A_POOL) as pool:
        index = open_recording_index(bench.paths, bench.spill / "recordings", pool)
        read = partial(_read_slice, index, bench.spill)
        for file in bench.checkpoints.run("credit", read, cut_jobs(list_record_parts(bench.paths)), pool):
            bench.append("credit", read_spilled(file))


def _read_slice(index: NumberIndex, folder: Path, job: SliceJob) -> Path:
    records = job.rows.read_columns("platform", "external_id", "artists", "artist_credit")
    return spill_frame(folder / f"credit-{job.number:06d}.arrow", list_credits(index.join(records, number_record())))


def list_credits(records: pl.DataFrame) -> pl.DataFrame:
    """Return the credits of records (recording_id, platform, external_id, artists, artist_credit)."""
    name = pl.element().struct.field("name").fill_null("").str.strip_chars(" ")
    records = records.with_columns(named=pl.col("artists").list.filter(name != ""))
    records = records.with_columns(count=pl.col("named").list.len().fill_null(0))
    listed = records.filter(pl.col("count") > 0).with_columns(position=pl.int_ranges("count"))
    listed = listed.explode("named", "position", empty_as_null=False).unnest("named")
    text = pl.col("artist_credit").str.strip_chars(" ")
    bare = records.filter(pl.col("count") == 0).with_columns(
        position=0, artist_id=None, name=pl.when(text != "").then(text).otherwise(pl.lit(UNKNOWN_ARTIST)), role=pl.lit("primary")
    )
    both = (rows.with_columns(is_named_by_title=False).select(_CREDIT.names()) for rows in (listed, bare))
    return pl.concat([rows.cast(_CREDIT) for rows in both])
