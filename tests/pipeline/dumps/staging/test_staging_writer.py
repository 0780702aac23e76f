"""Tests of the writer of staging tables: what waits for its part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.staging.staging_writer import StagingWriter

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = pl.DataFrame(
    {
        "entity": "source_recording",
        "severity": "row",
        "reason": "missing_id",
        "source_file": "tracks.json",
        "place": [f"record {number} of a file with a name too long for a view" for number in range(10_000)],
    }
)


def test_waiting_rejects_do_not_keep_the_texts_of_their_block(tmp_path: Path) -> None:
    rejects = BLOCK.filter(pl.col("place").str.starts_with("record 77 "))
    with StagingWriter("store_a", tmp_path) as out:
        out.write_rejects(rejects)
        (waiting,) = out._waiting["reject"]
        assert waiting.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size() < 10_000
    assert read_table(TABLES["reject"], tmp_path / "reject")["place"].to_list() == rejects["place"].to_list()
