"""Tests of a build over dumps with titles of 2 MB: it omits these records, and the next good dump brings them back."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.tables.staging import LONGEST_NAME
from tests.conftest import BuiltWorld, run_module
from tests.rebuild.broken_dumps import without_checksums
from tests.rebuild.nights import copy_of, newest, require_consistent

if TYPE_CHECKING:
    from pathlib import Path

LONG = "endless " * 250_000


def deliver(dumps: Path, platform: str, date: str, *, hostile: bool) -> None:
    """Copy the newest dump of the platform under another date.

    `hostile` adds a title and a name of 2 MB to each file of tracks.
    """
    old = newest(dumps, platform)
    new = old.with_name(date)
    for path in (path for path in old.rglob("*") if path.is_file()):
        target = new / path.relative_to(old)
        target.parent.mkdir(parents=True, exist_ok=True)
        if hostile and path.name == "tracks.ndjson.gz":
            lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            lines[5]["name"] = LONG
            lines[6]["artists"][0]["name"] = LONG
            target.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
        elif hostile and path.name == "tracks.parquet":
            frame = pl.read_parquet(path)
            frame.with_columns(name=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(LONG)).otherwise("name")).write_parquet(target)
        else:
            target.write_bytes(path.read_bytes())
    without_checksums(new)


@pytest.mark.long
def test_titles_of_two_megabytes_cost_their_records_and_the_next_good_night_has_them_again(built_world: BuiltWorld, tmp_path: Path) -> None:
    dumps, catalog = copy_of(built_world, tmp_path)
    before = titles(catalog)
    pristine = {platform: newest(dumps, platform) for platform in ("store_a", "streamsvc_a")}
    for platform in pristine:
        deliver(dumps, platform, "2031-01-01", hostile=True)
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    require_consistent(catalog)
    tables = catalog / "current" / "tables"
    longest = duckdb.execute(f"SELECT max(length(title)) FROM '{tables}/recording/*.parquet'").fetchone()
    assert longest is not None
    assert longest[0] <= LONGEST_NAME
    for platform in pristine:
        found = pl.read_parquet(catalog / "work" / "staging" / platform / "reject" / "*.parquet").filter(reason="too_long")
        assert found.filter(entity="source_recording", severity="row").height >= 1
        newest(dumps, platform).rename(tmp_path / platform)
        deliver(dumps, platform, "2031-01-02", hostile=False)
    run_module("pipeline", "build", "--dumps", dumps, "--catalog", catalog)
    require_consistent(catalog)
    assert titles(catalog) == before


def titles(catalog: Path) -> tuple[int, int]:
    """Return the number of recordings in the live snapshot and of their different titles."""
    found = duckdb.execute(f"SELECT count(*), count(DISTINCT title) FROM '{catalog}/current/tables/recording/*.parquet'").fetchone()
    assert found is not None
    return found[0], found[1]
