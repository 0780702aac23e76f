"""Shared fixtures of this adapter's tests: a dump written from a few records, staged and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from catalog_store.tables import STAGING_TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


class StageRecords(Protocol):
    """Stages a dump of these records (file name stem -> records, each on a line of its own) and returns the staging tables."""

    def __call__(self, **files: list[str]) -> dict[str, pl.DataFrame]: ...


@pytest.fixture
def stage_records(tmp_path: Path) -> StageRecords:
    def stage(**files: list[str]) -> dict[str, pl.DataFrame]:
        dump = tmp_path / "dump"
        dump.mkdir()
        for root, records in files.items():
            text = "\n".join([f"<{root}>", *records, f"</{root}>"])
            (dump / f"discogs_20260801_{root}.xml").write_text(text, encoding="utf-8")
        stage_dump("catalog_a", dump, tmp_path / "staging")
        return {table.name: read_table(table, tmp_path / "staging" / table.name) for table in STAGING_TABLES}

    return stage
