"""Credits of all source records, each with the artist that it means: the table source_credit.

The module reads the steps `credit_node` and `node_artist` of the artists' workbench. Each credit goes to the range of its recording,
because the artists of one recording decide what a bare name there means. One process makes the part of one range, and looks up the ids
of its source records.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_A
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables
from pipeline.build.artist_evidence import RECORD
from pipeline.build.name_forms import NUMBERED
from pipeline.build.recording_ranges import find_range, write_range
from pipeline.engine.pool import start_workers
from pipeline.engine.progress import enter_section

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.workbench import Workbench

_TABLE = TABLES["source_credit"]
CREDITS_FOR_A_POOL = 5_000_000
"""Credits from which on workers pay. Those of .92 million recordings, 3.7 million, take 5.2 CPU-s here, and 7.2 and as much time in two
workers, with their start."""

_CREDITED = "SELECT c.*, a.artist_id FROM credit_node c LEFT JOIN node_artist a USING (node)"
_MEMBER = f"SELECT recording_id, platform, external_id, {RECORD} AS record FROM recording_member"


def write_source_credit(bench: Workbench) -> int:
    """Write source_credit, and return the row count."""
    credited, members = bench.spill / "credited", bench.spill / "members"
    enter_section("send_credits")
    _send(bench, _CREDITED, credited)
    enter_section("send_members")
    _send(bench, _MEMBER, members)
    bench.drop_buffers()
    with start_workers(is_small=bench.count("credit_node") < CREDITS_FOR_A_POOL) as pool:
        made = bench.checkpoints.run("write_credits", partial(_write_range, bench.spill), list(count_bucket_rows(credited)), pool)
    join_tables(_TABLE, bench.paths.table("source_credit"), made)
    for runs in (credited, members):
        shutil.rmtree(runs, ignore_errors=True)
    return count_rows(bench.paths.table("source_credit"))


def _send(bench: Workbench, sql: str, runs: Path) -> None:
    """Send the rows of `sql` to the ranges of their recordings, as runs of a shuffle."""
    # A killed build may have cut the same rows into more runs, whose last ones would stay.
    shutil.rmtree(runs, ignore_errors=True)
    for number, block in enumerate(bench.stream(sql)):
        write_run(runs, number, block, find_range())


def _write_range(spill: Path, number: int) -> Path:
    """Write the credits of one range of recordings, and return their folder."""
    rows = resolve_credits(read_bucket(spill / "credited", number), read_bucket(spill / "members", number))
    folder = spill / "credits" / f"{number:06d}"
    with write_aside(folder) as pending:
        write_range(_TABLE, pending, rows)
    return folder


def resolve_credits(credited: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of source_credit of some recordings.

    A bare name takes the artist of that name who is credited by id on the same recording. That holds for this recording only, so it is
    looked up here and makes no tie. Various Artists is dropped where an artist is known.

    Args:
        credited: the columns of `credit_node`, and the artist of each node: artist_id.
        members: the rows of recording_member of these recordings, and their numbers: record.
    """
    # Texts are sorted once for each record and not for each credit.
    record = members.sort("recording_id", "platform", "external_id").select("record", "external_id").with_row_index("place")
    by_id = credited.filter(~pl.col("is_bare"), ~pl.col("is_placeholder")).select("recording_id", "key_no", "node", "artist_id")
    is_known = pl.col("recording_id").is_in(by_id["recording_id"].unique().implode())
    bare = credited.filter("is_bare").select("recording_id", "key_no").unique()
    meant = (
        by_id.join(bare, on=["recording_id", "key_no"], how="semi")
        .group_by("recording_id", "key_no", meant="artist_id")
        .agg(nodes=pl.col("node").n_unique())
        .sort("nodes", "meant", descending=[True, False])
        .unique(["recording_id", "key_no"], keep="first")
        .drop("nodes")
    )
    return (
        credited.filter(~(pl.col("is_placeholder") & is_known))
        .join(record, on="record")
        .join(meant, on=["recording_id", "key_no"], how="left")
        .with_columns(
            artist_id=pl.when("is_bare").then(pl.coalesce("meant", "artist_id")).otherwise("artist_id"),
            name=pl.when(pl.col("platform") == CATALOG_A).then(pl.col("name").str.replace(NUMBERED, "")).otherwise("name"),
        )
        .sort("place", "position")
        .select(_TABLE.column_names)
    )
