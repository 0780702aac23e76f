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


def test_blank_ids_of_credited_artists_become_null(tmp_path: Path) -> None:
    people = [{"artist_id": number, "name": "Ada", "role": "primary"} for number in ("1", "", " \t", None)]
    row = {"external_id": "7", "link_id": "7", "title": "Song", "artists": people, "isrcs": [], "is_video": False, "traits": []}
    texts = pl.List(pl.String)
    with StagingWriter("store_a", tmp_path) as out:
        out.count_read("source_recording")
        out.write("source_recording", pl.DataFrame([row], schema_overrides={"isrcs": texts, "traits": texts}))
    (credited,) = read_table(TABLES["source_recording"], tmp_path / "source_recording")["artists"]
    assert [person["artist_id"] for person in credited] == ["1", None, None, None]
