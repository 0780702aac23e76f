"""Reads of staged records: slices, content hashes, and searches by hash or by credited name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from catalog_store.record_keys.content_hash import LINKED_COLUMNS, add_content_hash
from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.linkage import staged_records
from pipeline.linkage.staged_records import (
    count_records,
    cut_slices,
    find_records_crediting,
    list_record_parts,
    read_content_hashes,
    read_records_with,
)
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.worlds import Records

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> BuildPaths:
    """Return a catalog with five records: two parts of one platform, one of another; one part was staged without hashes."""
    paths = BuildPaths(tmp_path)
    one = Records().add("a", artists="Mira").add("b", artists=["Kask", "Mira"]).frame()
    two = Records().add("c", artists="Other").frame()
    three = Records().add("d", artists="Mira K", platform="store_a").add("e", artists="Other", platform="store_a").frame()
    write_table(TABLES["source_recording"], paths.staging("streamsvc_a") / "source_recording", [hashed(one), two])
    write_table(TABLES["source_recording"], paths.staging("store_a") / "source_recording", [hashed(three)])
    names = [("streamsvc_a", "id Mira", "Mira"), ("streamsvc_a", "id Other", "The Other"), ("store_a", "id Mira K", "Mira")]
    artists = pl.DataFrame(names, schema=["platform", "artist_id", "name"], orient="row")
    artists = artists.with_columns(aliases=pl.lit([], pl.List(pl.String)), is_placeholder=False)
    for (platform,), rows in artists.group_by("platform"):
        write_table(TABLES["source_artist"], paths.staging(str(platform)) / "source_artist", TABLES["source_artist"].conform(rows))
    return paths


def hashed(rows: pl.DataFrame) -> pl.DataFrame:
    hashes = add_content_hash(rows.select(*LINKED_COLUMNS, "content_hash"))["content_hash"]
    return rows.with_columns(content_hash=hashes)


def test_slices_hold_every_record_once_in_order_of_parts(paths: BuildPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 1)
    slices = list(cut_slices(paths))
    assert [(each.start, each.rows) for each in slices if each.part == slices[0].part] in ([(0, 1), (1, 1)], [(0, 1)])
    held = [name for each in slices for name in each.read()["external_id"]]
    assert len(held) == len(set(held)) == count_records(paths) == 5
    assert [each.part for each in slices] == sorted((each.part for each in slices), key=list_record_parts(paths).index)
    monkeypatch.setattr(staged_records, "ROWS_PER_SLICE", 2)
    assert sorted((each.start, each.rows) for each in cut_slices(paths)) == [(0, 1), (0, 2), (0, 2)]


def test_hash_of_a_record_is_the_same_whether_staging_wrote_it_or_not(paths: BuildPaths) -> None:
    expected = pl.concat([each.read() for each in cut_slices(paths)])["content_hash"]
    assert expected.null_count() == 0
    assert pl.concat(read_content_hashes(paths))["content_hash"].to_list() == expected.to_list()


@pytest.mark.parametrize("wanted", ["a", "c", "ac", "be", "abcde", ""])
def test_records_are_found_by_their_hashes_with_and_without_staged_ones(paths: BuildPaths, wanted: str) -> None:
    rows = pl.concat([each.read() for each in cut_slices(paths)]).filter(pl.col("external_id").is_in(list(wanted)))
    found = read_records_with(paths, rows["content_hash"])
    assert sorted(found["external_id"]) == list(wanted)
    assert found.sort("content_hash").equals(rows.sort("content_hash"))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["Mira"], ["d", "a", "b"]),  # d by the artist id, whose own name on that platform is Mira
        (["Kask"], ["b"]),
        (["Kask, Mira"], ["b"]),  # the credit as text
        (["The Other"], ["c"]),  # on the other platform the id belongs to an unknown artist
        (["Other"], ["e", "c"]),
        (["Nobody"], []),
    ],
)
def test_records_are_found_by_a_credited_name_or_id(paths: BuildPaths, names: list[str], found: list[str]) -> None:
    rows = find_records_crediting(paths, pl.Series(names), 9)
    assert sorted(rows["external_id"]) == sorted(found)
    assert rows.columns == ["platform", "external_id"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_records_are_found_than_asked_for(paths: BuildPaths, most: int) -> None:
    assert find_records_crediting(paths, pl.Series(["Mira"]), most).height == most
