"""Dumps of streamsvc_c that a test writes, and the tables that are staged from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump

PLATFORM = "streamsvc_c"
SAMPLES = Path(__file__).parents[3] / "sample_dumps" / PLATFORM
Tables = dict[str, pl.DataFrame]
Row = dict[str, Any]


def staged(dump: Path, folder: Path) -> Tables:
    stage_dump(PLATFORM, dump, folder)
    return {name: read_table(TABLES[name], folder / name) for name in TABLES if (folder / name).is_dir()}


def rejects(tables: Tables) -> set[tuple[str, str, str, str | None, str | None]]:
    return set(tables["reject"].select("entity", "reason", "place", "record_id", "field").iter_rows())


def row(tables: Tables, name: str, key: str) -> Row:
    column = {"source_recording": "external_id", "source_release": "release_id", "source_artist": "artist_id"}[name]
    return tables[name].row(by_predicate=pl.col(column) == key, named=True)
