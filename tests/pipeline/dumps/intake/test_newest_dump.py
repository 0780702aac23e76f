"""Tests of the choice of the dump that is staged, of repeated staging and of unreadable dumps, with real store_a files."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.platforms import CATALOG_PLATFORMS, WORKS
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake import newest_dump
from pipeline.dumps.intake.newest_dump import stage_newest
from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source
from tests.rotten_files import rot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import BuiltWorld

TRACK = {
    "id": 1,
    "name": "One",
    "mix_name": "Original Mix",
    "artists": [{"id": 5, "name": "A"}],
    "genre": {"id": 6, "name": "Techno"},
    "release": {"id": 9, "name": "R", "label": {"id": 3, "name": "L"}},
}


def deliver(tmp_path: Path, date: str, text: str) -> Path:
    folder = tmp_path / "up" / date
    folder.mkdir(parents=True)
    (folder / "tracks.ndjson").write_text(text)
    land(Source("store_a", str(tmp_path / "up")), tmp_path / "zone")
    return tmp_path / "zone"


def lines(*ids: int) -> str:
    return "".join(json.dumps(TRACK | {"id": number}) + "\n" for number in ids)


def staged_ids(tmp_path: Path) -> list[str]:
    return pl.read_parquet(tmp_path / "staged" / "source_recording" / "*.parquet")["external_id"].to_list()


def test_the_newest_dump_is_staged_once(tmp_path: Path) -> None:
    zone = deliver(tmp_path, "2026-09-01", lines(1, 2))
    first = stage_newest("store_a", zone, tmp_path / "staged")
    again = stage_newest("store_a", zone, tmp_path / "staged")
    assert (first.status, again.status) == ("staged", "unchanged")
    assert staged_ids(tmp_path) == ["1", "2"]


def test_dump_of_another_day_with_equal_files_keeps_tables_rejects_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = tmp_path / "staged"
    stage_newest("store_a", deliver(tmp_path, "2026-09-01", lines(1, 2) + "{broken\n"), staged)
    before = {path: path.read_bytes() for path in staged.rglob("*.*") if path.name != newest_dump.STAMP}
    assert pl.read_parquet(staged / "reject" / "*.parquet").height == 1
    with monkeypatch.context() as patch:
        patch.setattr(newest_dump, "stage_dump", lambda *_arguments, **_options: pytest.fail("it was read again"))
        again = stage_newest("store_a", deliver(tmp_path, "2026-09-02", lines(1, 2) + "{broken\n"), staged)
    assert (again.status, again.dump, again.is_new) == ("unchanged", "2026-09-02", False)
    assert {path: path.read_bytes() for path in staged.rglob("*.*") if path.name != newest_dump.STAMP} == before
    assert "dump 2026-09-02" in newest_dump.describe_tables_in_use(staged)
    assert stage_newest("store_a", deliver(tmp_path, "2026-09-03", lines(1, 3)), staged).status == "staged"
    assert staged_ids(tmp_path) == ["1", "3"]


@pytest.mark.parametrize("platform", [*CATALOG_PLATFORMS, WORKS])
def test_no_platform_reads_equal_files_again(
    built_world: BuiltWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    (dump,) = (built_world.dumps / platform).iterdir()
    shutil.copytree(dump, tmp_path / "up" / "2026-10-01")
    land(Source(platform, str(tmp_path / "up")), tmp_path / "zone")
    staged = shutil.copytree(built_world.catalog / "work" / "staging" / platform, tmp_path / "staged")
    monkeypatch.setattr(newest_dump, "stage_dump", lambda *_arguments, **_options: pytest.fail("it was read again"))
    intake = stage_newest(platform, tmp_path / "zone", staged)
    assert (intake.status, intake.dump, intake.problem) == ("unchanged", "2026-10-01", None)


def test_equal_contents_under_another_name_are_staged_again(tmp_path: Path) -> None:
    stage_newest("store_a", deliver(tmp_path, "2026-09-01", lines(1) + "{broken\n"), tmp_path / "staged")
    folder = tmp_path / "up" / "2026-09-02"
    folder.mkdir()
    (folder / "tracks-2.ndjson").write_text(lines(1) + "{broken\n")
    land(Source("store_a", str(tmp_path / "up")), tmp_path / "zone")
    assert stage_newest("store_a", tmp_path / "zone", tmp_path / "staged").status == "staged"
    assert pl.read_parquet(tmp_path / "staged" / "reject" / "*.parquet")["source_file"].to_list() == ["tracks-2.ndjson"]


def test_tables_without_stamp_are_staged_again(tmp_path: Path) -> None:
    zone = deliver(tmp_path, "2026-09-01", lines(1))
    stage_newest("store_a", zone, tmp_path / "staged")
    (tmp_path / "staged" / newest_dump.STAMP).unlink()
    assert stage_newest("store_a", zone, tmp_path / "staged").status == "staged"


@pytest.mark.parametrize("harm", ["rotten", "torn", "gone"])
def test_damaged_tables_are_staged_again(tmp_path: Path, harm: str) -> None:
    zone, said = deliver(tmp_path, "2026-09-01", lines(1, 2)), list[str]()
    stage_newest("store_a", zone, tmp_path / "staged")
    part = tmp_path / "staged" / "source_recording" / "part-00000.parquet"
    content = part.read_bytes()
    if harm == "rotten":
        rot(part, 0.2)
    elif harm == "torn":
        part.write_bytes(content[:-20])
    else:
        part.unlink()
    assert stage_newest("store_a", zone, tmp_path / "staged", said.append).status == "staged"
    assert part.read_bytes() == content
    assert any("are not as they were written, so the dump is staged again" in line for line in said)
    assert stage_newest("store_a", zone, tmp_path / "staged").status == "unchanged"


def test_other_code_stages_the_same_dump_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = deliver(tmp_path, "2026-09-01", lines(1))
    stage_newest("store_a", zone, tmp_path / "staged")
    monkeypatch.setattr(newest_dump, "hash_code", lambda: "another")
    assert stage_newest("store_a", zone, tmp_path / "staged").status == "staged"


def test_a_broken_dump_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    deliver(tmp_path, "2026-08-01", lines(1))
    zone = deliver(tmp_path, "2026-09-01", "")
    result = stage_newest("store_a", zone, tmp_path / "staged")
    assert (result.status, result.dump) == ("kept_last_good", "2026-08-01")
    assert "2026-09-01" in str(result.problem)
    assert staged_ids(tmp_path) == ["1"]


def test_with_no_readable_dump_left_the_staged_tables_stay(tmp_path: Path) -> None:
    zone = deliver(tmp_path, "2026-08-01", lines(1))
    stage_newest("store_a", zone, tmp_path / "staged")
    for path in zone.iterdir():
        if path.name.startswith("2026-08-01."):
            path.unlink()
    deliver(tmp_path, "2026-09-01", "")
    result = stage_newest("store_a", zone, tmp_path / "staged")
    assert result.status == "kept_last_good"
    assert staged_ids(tmp_path) == ["1"]


def test_nothing_readable_and_nothing_staged_is_an_error_that_names_the_dump(tmp_path: Path) -> None:
    zone = deliver(tmp_path, "2026-09-01", "")
    with pytest.raises(DumpError, match="2026-09-01"):
        stage_newest("store_a", zone, tmp_path / "staged")
    assert not (tmp_path / "staged").exists()


def test_a_platform_without_any_dump_is_missing(tmp_path: Path) -> None:
    assert stage_newest("store_a", tmp_path / "zone", tmp_path / "staged").status == "missing"
