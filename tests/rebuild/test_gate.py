"""Tests of builds that the gate refuses: yesterday's catalog stays live."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.linkage.guards import disable_guards
from tests.commands import run_pipeline
from tests.rebuild.nights import copy_of, newest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow


def test_linkage_without_its_guards_is_refused_with_a_remedy(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    live = (catalog / "current").readlink()
    # The pairs are judged once for each program; this program differs in memory only.
    (catalog / "work" / "carried" / "golden_pairs.json").unlink()
    with disable_guards():
        night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog, check=False)
    assert night.returncode == 1
    assert "check golden_pairs_hold of quality/build_figure failed" in night.stderr
    assert "code-of-miss-murder" in night.stderr
    assert "undo the change of keys, guards or pairs" in night.stderr
    assert (catalog / "current").readlink() == live
    report = catalog / "work" / "report" / "index.html"
    assert str(report) in night.stderr
    assert "Not to be published" in report.read_text()
    assert "Not to be published" not in (catalog / "current" / "report.html").read_text()


def test_a_platform_that_delivers_the_codes_of_other_songs_is_not_published(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    live = (catalog / "current").readlink()
    good = newest(dumps, "streamsvc_a")
    broken = good.with_name("2031-01-01")
    good.rename(broken)
    tracks = next(broken.rglob("tracks.parquet"))
    rows = pl.read_parquet(tracks)
    tracks.unlink()
    rows.with_columns(pl.col("external_id_isrc").shift(7)).write_parquet(tracks)
    night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog, check=False)
    assert night.returncode == 1
    assert "no_jump_of_isrc_conflicts" in night.stderr
    assert "CATALOG_LARGEST_JUMP=1000" in night.stderr
    assert (catalog / "current").readlink() == live
