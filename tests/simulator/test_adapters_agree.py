"""Tests that our adapters read exactly the good rows of every simulated dump, in both forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, WORKS
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from pathlib import Path

DAY = "2026-11-01"
FORMS = [("", platform) for platform in (*CATALOG_PLATFORMS, WORKS)] + [
    ("alternative", platform) for platform in (*CATALOG_PLATFORMS, WORKS) if platform != "catalog_b"
]


@pytest.mark.parametrize(("form", "platform"), FORMS)
def test_staged_rows_are_those_of_the_truth(form: str, platform: str, world: Path, true_ids: dict[str, set[str]], tmp_path: Path) -> None:
    stage_dump(platform, world / form / platform / DAY, tmp_path / platform)
    if platform == WORKS:
        assert pl.read_parquet(tmp_path / platform / "source_work" / "*.parquet").height > 500
        return
    staged = pl.read_parquet(tmp_path / platform / "source_recording" / "*.parquet").filter(~pl.col("is_video"))
    assert set(staged["external_id"]) == true_ids[platform]
    assert staged["artists"].list.len().min() == 1 or staged["artists"].list.len().min() > 0  # type: ignore[operator]
