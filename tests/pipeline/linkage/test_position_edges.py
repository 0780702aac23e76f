"""Tests of barcode, disc and track as evidence for misspelt records without a code, unless names or durations contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from catalog_store.record_keys.numbers import number_record
from catalog_store.record_keys.place_numbers import select_barcoded, select_placed
from catalog_store.tables import TABLES
from pipeline.linkage import link, position_edges
from pipeline.linkage.overrides import Overrides, load_overrides
from pipeline.linkage.position_edges import build_position_edges, find_position_pairs, judge_pairs
from pipeline.linkage.release_positions import PLATFORM, Positions, find_positions
from tests.pipeline.linkage.release_rows import GTIN, releases, tracks
from tests.pipeline.linkage.worlds import Records, partition

if TYPE_CHECKING:
    from pathlib import Path


def positions_of(of: pl.DataFrame, at: pl.DataFrame, members: pl.DataFrame, buckets: int = 1) -> Positions:
    coded = [select_barcoded(rows).with_columns(platform=pl.lit(rows["platform"][0], PLATFORM)) for rows in of.partition_by("platform")]
    return find_positions(lambda: coded, lambda: [select_placed(at)], lambda: [members], buckets)


def world(title: str, seconds: float | None = 200) -> Records:
    # Without an artist, weak signals cannot join a misspelt title.
    return Records().add("a", "Yesterday").add("b", title, artists=[], platform="catalog_a", seconds=seconds)


BOTH = releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", GTIN))
ONE_PLACE = tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", None, 3))


def linked(records: Records, of: pl.DataFrame = BOTH, at: pl.DataFrame = ONE_PLACE) -> set[frozenset[str]]:
    return partition(link(records.frame(), releases=of, tracks=at))


TOGETHER, APART = {frozenset({"a", "b"})}, {frozenset({"a"}), frozenset({"b"})}
WORN = "Yisterdiy"
"""Too short for two typing errors, and rare enough for a position."""


def test_badly_misspelt_record_is_joined_by_its_position() -> None:
    assert partition(link(world(WORN).frame())) == APART
    assert linked(world(WORN)) == TOGETHER


def test_record_without_duration_is_joined_by_its_position() -> None:
    assert linked(world(WORN, seconds=None)) == TOGETHER


def test_other_track_other_disc_or_missing_barcode_joins_nothing() -> None:
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 1, 4))) == APART
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 2, 3))) == APART
    assert linked(world(WORN), of=releases(("streamsvc_a", "r", GTIN), ("catalog_a", "s", None))) == APART


def test_contradicting_names_or_durations_prevent_a_join_by_position() -> None:
    assert linked(world("Mrs. Robinson")) == APART
    assert linked(world(WORN, seconds=206)) == APART
    assert linked(world("Yesterday - Live")) == APART


def test_platform_with_two_records_in_one_position_gives_no_evidence() -> None:
    records = world(WORN).add("c", "Another Song", platform="catalog_a")
    at = tracks(("streamsvc_a", "r", "a", 1, 3), ("catalog_a", "s", "b", 1, 3), ("catalog_a", "s", "c", 1, 3))
    assert linked(records, at=at) == APART | {frozenset({"c"})}


def test_absurd_track_numbers_name_no_position() -> None:
    assert linked(world(WORN), at=tracks(("streamsvc_a", "r", "a", 1, 5000), ("catalog_a", "s", "b", 1, 5000))) == APART


def test_positions_do_not_depend_on_the_number_of_buckets() -> None:
    codes = [f"{number:014d}" for number in range(40)]
    sides = ("streamsvc_a", "catalog_b")
    of = releases(*((platform, f"{platform}{code}", code) for code in codes for platform in sides))
    at = tracks(*((platform, f"{platform}{code}", f"x{code}", 1, 1) for code in codes for platform in sides))
    standing = [(platform, f"x{code}", number * 2 + side) for number, code in enumerate(codes) for side, platform in enumerate(sides)]
    members = pl.DataFrame(standing, schema=["platform", "external_id", "atom_id"], orient="row")
    members = members.select("atom_id", record=number_record())
    one = positions_of(of, at, members).contested
    assert one.height == 2 * len(codes)
    assert find_position_pairs(one).sort("a")["evidence"][0] == "00000000000000 1-1"
    assert positions_of(of, at, members, buckets=7).contested.equals(one)


def test_records_of_one_atom_with_cannot_links_become_recordings_of_their_own(tmp_path: Path) -> None:
    records = Records()
    for name in "abcd":
        records.add(name)
    assert partition(link(records.frame())) == {frozenset("abcd")}
    review = "  why: heard all\n  by: me\n  on: 2026-01-01\n"
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    platform = records.rows[0]["platform"]
    (tmp_path / "overrides.yaml").write_text("".join(f"- cannot_link: [{platform}:{x}, {platform}:{y}]\n{review}" for x, y in pairs))
    assert partition(link(records.frame(), overrides=load_overrides(tmp_path / "overrides.yaml"))) == {
        frozenset("ad"),
        frozenset("b"),
        frozenset("c"),
    }


def test_link_uses_decisions_and_cross_links(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text("- must_link: [streamsvc_a:a, catalog_a:b]\n  why: one take\n  by: me\n  on: 2026-01-01\n")
    decided: Overrides = load_overrides(file)
    assert partition(link(world("Mrs. Robinson").frame(), overrides=decided)) == TOGETHER
    url = {"entity_kind": "recording", "target_kind": "recording", "url": "u"}
    links = pl.DataFrame([{"platform": "catalog_a", "entity_id": "b", "target_platform": "streamsvc_a", "target_id": "a", **url}])
    assert partition(link(world(WORN).frame(), links=TABLES["source_link"].conform(links))) == TOGETHER


def test_each_two_atoms_of_a_position_are_paired_once_with_the_smallest_position() -> None:
    place = (4006381333931 << 20) + (2 << 12) + 7
    rows = [(place, "p", 5), (place, "q", 5), (place, "r", 3), (place, "s", 9), (place, "t", 8), (place, "t", 7)]
    rows += [(place + 1, "p", 3), (place + 1, "q", 5)]
    found = find_position_pairs(pl.DataFrame(rows, schema={"place": pl.Int64, "platform": pl.String, "atom_id": pl.Int64}, orient="row"))
    assert sorted(found.select("a", "b").rows()) == [(3, 5), (3, 9), (5, 9)]
    assert found["evidence"].n_unique() == 1


@pytest.mark.parametrize(("duration", "score"), [(204_000, 1.0), (204_001, None), (196_000, 1.0), (195_999, None), (None, 1.0)])
def test_position_joins_durations_as_close_as_for_a_typing_error(duration: int | None, score: float | None) -> None:
    plain = {"artist_key": "artist", "title_key": "song", "stem_key": "song", "number_key": "", "variant": "", "names": ["artist"]}
    rows = [
        plain | {"atom_id": number, "duration_ms": ms, "record_count": 2, "platform_count": 1}
        for number, ms in ((1, 200_000), (2, duration))
    ]
    atoms = TABLES["atom"].conform(pl.DataFrame(rows, schema=TABLES["atom"].polars_schema))
    pairs = pl.DataFrame({"a": [1], "b": [2], "evidence": ["x"]})
    judged = judge_pairs(pairs.select("a", "b"), atoms)
    assert judged.rows() == [(1, 2, score)]
    assert build_position_edges(pairs, judged).rows() == ([(1, 2, "position", 1.0, "x")] if score else [])


@pytest.mark.parametrize("rows_at_a_time", [1, 7, 1000])
def test_pairs_are_the_same_however_many_positions_are_paired_at_a_time(monkeypatch: pytest.MonkeyPatch, rows_at_a_time: int) -> None:
    rng = np.random.default_rng(rows_at_a_time)
    drawn = {
        "place": rng.integers(0, 200, 300),
        "platform": rng.choice(["streamsvc_a", "catalog_a", "store_a"], 300),
        "atom_id": rng.integers(0, 12, 300),
    }
    contested = pl.DataFrame(drawn, {"place": pl.UInt64, "platform": PLATFORM, "atom_id": pl.Int64})
    expected = find_position_pairs(contested).sort("a", "b")
    assert expected.height > 20, "the world has too few pairs to tell"
    monkeypatch.setattr(position_edges, "ROWS_AT_A_TIME", rows_at_a_time)
    assert find_position_pairs(contested).sort("a", "b").equals(expected)
