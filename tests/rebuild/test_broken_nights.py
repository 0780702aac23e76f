"""Tests of unreadable and shrunken dumps: the platform keeps its last good one, and the build reports it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from tests.commands import run_pipeline
from tests.rebuild.broken_dumps import empty_files, truncate, without_checksums, wrong_schema
from tests.rebuild.nights import copy_of, newest, table_hashes
from tests.rotten_files import rot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import BuiltWorld

pytestmark = pytest.mark.slow

SPOILT = {"catalog_a": truncate, "catalog_b": wrong_schema, "streamsvc_c": empty_files}


def deliver(dumps: Path, platform: str, alter: Callable[[pl.DataFrame], pl.DataFrame], name: str) -> None:
    """Write a newer dump of the platform, with its Parquet files called `name` altered."""
    old = newest(dumps, platform)
    new = old.with_name("2031-01-01")
    for path in (path for path in old.rglob("*") if path.is_file()):
        target = new / path.relative_to(old)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet" and name in str(path.relative_to(old)).lower():
            alter(pl.read_parquet(path)).write_parquet(target)
        else:
            target.write_bytes(path.read_bytes())
    without_checksums(new)


def counted(catalog: Path) -> dict[str, int]:
    tables = catalog / "current" / "tables"
    codes = duckdb.execute(f"SELECT count(DISTINCT isrc) FROM '{tables}/recording_isrc/*.parquet'").fetchone()
    links = duckdb.execute(f"SELECT source, count(*) FROM '{tables}/platform_link/*.parquet' GROUP BY 1").fetchall()
    return {"codes": codes[0] if codes else 0, **dict(links)}


def spoil(dumps: Path) -> None:
    """Give each platform of SPOILT a newer dump that cannot be read."""
    for platform, damage in SPOILT.items():
        bad = newest(dumps, platform).with_name("2031-01-01")
        shutil.copytree(newest(dumps, platform), bad)
        without_checksums(bad)
        damage(bad)


def test_broken_dumps_renamed_columns_and_an_empty_main_table_leave_the_last_good_ones_in_use(
    built_world: BuiltWorld, tmp_path: Path
) -> None:
    # One night for all faults, because each build takes ten CPU seconds and each fault meets another platform.
    dumps, catalog = copy_of(built_world, tmp_path)
    before, live = table_hashes(catalog), (catalog / "current").readlink()
    old = newest(dumps, "streamsvc_b")
    spoil(dumps)
    deliver(dumps, "streamsvc_b", lambda rows: rows.rename({"isrc": "isrcCode", "durationInMillis": "duration"}), "song")
    deliver(dumps, "streamsvc_a", lambda rows: rows.clear(), "tracks")

    night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    broken = {platform for platform in SPOILT for line in night.stderr.splitlines() if f" {platform}: " in line and "broken" in line}
    assert broken == set(SPOILT), night.stderr
    said = [line for line in night.stderr.splitlines() if "warning: " in line]
    assert any("streamsvc_b" in line and "2031-01-01" in line and "isrc" in line and "stay in use" in line for line in said), night.stderr
    assert any("streamsvc_a" in line and "2031-01-01" in line and "stay in use" in line for line in said), night.stderr
    assert (catalog / "current").readlink() != live
    assert table_hashes(catalog) == before
    page = (catalog / "current" / "report.html").read_text()
    assert page.count("found broken") >= len(SPOILT) + 2
    assert old.name in page

    again = run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert "streamsvc_b: dump 2031-01-01 (found broken" in again.stderr
    assert table_hashes(catalog) == before


def test_damaged_files_of_earlier_builds_and_a_platform_that_is_gone_change_no_table(built_world: BuiltWorld, tmp_path: Path) -> None:
    # One night for all faults, as above. None of these files belongs to a snapshot.
    dumps, catalog = copy_of(built_world, tmp_path)
    before, work = table_hashes(catalog), catalog / "work"
    rot(work / "staging" / "streamsvc_b" / "source_recording" / "part-00000.parquet", 0.2)
    next((work / "carried" / "recording_index").glob("*/part-*.npy")).unlink()
    torn = work / "catalog" / "recording" / "part-00000.parquet"
    size = torn.stat().st_size
    torn.unlink()
    torn.write_bytes(bytes(size))
    shutil.rmtree(dumps / "streamsvc_c")

    night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert f"the tables in {work / 'staging' / 'streamsvc_b'} are not as they were written" in night.stderr
    said = [line for line in night.stderr.splitlines() if "warning: " in line]
    assert any("streamsvc_c: dump kept_last_good (no source is named)" in line for line in said), night.stderr
    assert table_hashes(catalog) == before
    run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert table_hashes(catalog) == before


@pytest.mark.long
def test_a_real_shrink_goes_through_once_with_the_setting_that_is_named(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before = counted(catalog)
    deliver(dumps, "streamsvc_a", lambda rows: rows.with_columns(pl.lit(None, pl.String).alias("external_id_isrc")), "tracks")
    night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert "CATALOG_LARGEST_LOSS=1" in night.stderr
    assert counted(catalog) == before
    asked = run_pipeline("build", "--dumps", dumps, "--catalog", catalog, CATALOG_LARGEST_LOSS="1")
    assert "streamsvc_a: staged" in asked.stderr
    assert "newest_dump" not in asked.stderr
    assert counted(catalog)["codes"] < before["codes"]
    next_night = run_pipeline("build", "--dumps", dumps, "--catalog", catalog)
    assert "streamsvc_a: unchanged" in next_night.stderr
