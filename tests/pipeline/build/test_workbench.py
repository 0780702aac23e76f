from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.build import workbench
from pipeline.build.workbench import open_workbench
from pipeline.paths import BuildPaths

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = "SELECT DISTINCT 'Text ' || (i % 40) AS text, CASE WHEN i % 3 = 0 THEN 'Live' END AS version FROM range({count}) r(i)"


@pytest.mark.parametrize("limit", [6, 1_000])
def test_derived_texts_are_read_once_however_many_buckets_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(workbench, "TEXTS_PER_BUCKET", limit)
    read: list[str] = []

    def measure(texts: pl.DataFrame) -> pl.DataFrame:
        read.extend(texts["text"])
        return texts.with_columns(size=pl.col("text").str.len_chars())

    nights = []
    for count in (110, 120, 120):
        read.clear()
        with open_workbench(BuildPaths(tmp_path), "stage") as bench:
            bench.derive_texts("form", TEXTS.format(count=count), measure)
            wanted = bench.read_frame(f"SELECT *, length(text)::UINTEGER AS size FROM ({TEXTS.format(count=count)}) ORDER BY ALL")
            assert bench.read_frame("SELECT * FROM form ORDER BY ALL").equals(wanted)
        nights.append(len(read))
    first, second, third = nights
    assert 0 < second < first / 2
    assert third == 0


def test_without_a_text_a_derived_step_is_empty(tmp_path: Path) -> None:
    with open_workbench(BuildPaths(tmp_path), "stage") as bench:
        bench.derive_texts("form", "SELECT 'a' AS text WHERE false", lambda texts: texts.with_columns(size=pl.lit(1)))
        assert bench.read_frame("SELECT * FROM form").columns == ["text", "size"]


def test_a_table_is_opened_when_a_query_names_it(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    write_table(TABLES["label"], paths.table("label"), TABLES["label"].build_empty())
    with open_workbench(paths, "stage") as bench:
        assert bench.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)
        assert bench.read_frame("SELECT * FROM label").columns == TABLES["label"].column_names
        bench.keep("nobody", "SELECT platform FROM source_label")
        assert next(bench.stream("SELECT artist_id FROM source_artist"), None) is None
        assert bench.read_frame("SELECT count(*) FROM nobody").item() == 0
