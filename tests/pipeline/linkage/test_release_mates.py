"""Tests that tracks of one release are different recordings unless strong evidence joins them."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from pipeline.linkage import link, release_mates
from pipeline.linkage.credits import build_name_table
from pipeline.linkage.normal_forms import collect_names, normalise
from pipeline.linkage.overrides import load_overrides
from pipeline.linkage.release_mates import find_mate_pairs, part_release_mates
from tests.pipeline.linkage.worlds import Records, partition

if TYPE_CHECKING:
    from pathlib import Path

CODE, OTHER = "USAAA2000001", "DEBBB2000002"


def names(*groups: str) -> set[frozenset[str]]:
    return {frozenset(group) for group in groups}


def test_tracks_of_one_title_without_durations_are_as_many_recordings() -> None:
    records = Records()
    for number in range(1, 7):
        records.add(str(number), "Blue", platform="catalog_a", release="r", track=number, seconds=None)
    assert records.linked() == names(*"123456")


def test_two_ids_of_a_platform_on_one_release_stay_two() -> None:
    records = Records().add("a", "Blue", release="r", seconds=200).add("b", "Blue", release="r", seconds=200)
    assert records.linked() == names("a", "b")


def test_tracks_of_one_release_with_one_code_are_one_recording() -> None:
    records = Records().add("a", "Blue", release="r", isrcs=CODE).add("b", "Blue", release="r", isrcs=CODE)
    assert records.linked() == names("ab")


def test_repeated_track_list_is_one_recording() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r").add("b", "Blue", platform="catalog_a", release="r", repeats="a")
    assert records.linked() == names("ab")


def test_records_of_a_release_join_through_a_third_in_any_order() -> None:
    for order in permutations(((CODE,), (CODE, OTHER), (OTHER,))):
        records = Records()
        for number, codes in enumerate(order):
            records.add(str(number), "Blue", release="r", isrcs=list(codes))
        assert records.linked() == names("012")


def test_repetition_and_code_join_in_any_order() -> None:
    for order in permutations((("r-1", (), None), ("r-2", (CODE,), "r-1"), ("r-3", (CODE,), None))):
        records = Records()
        for name, codes, repeats in order:
            records.add(name, "Blue", platform="catalog_a", release="r", isrcs=list(codes), repeats=repeats)
        assert records.linked() == {frozenset({"r-1", "r-2", "r-3"})}


def test_repetition_of_an_absent_record_joins_nothing() -> None:
    records = (
        Records().add("a", "Blue", platform="catalog_a", release="r", repeats="gone").add("b", "Blue", platform="catalog_a", release="r")
    )
    assert records.linked() == names("a", "b")


def test_record_that_joined_two_tracks_leaves_them_apart_by_a_decision(tmp_path: Path) -> None:
    records = Records().add("a", "Blue", release="r", isrcs=CODE).add("b", "Blue", release="r", isrcs=OTHER)
    records.add("m", "Blue", release="r", isrcs=[CODE, OTHER])
    review = "\n  why: heard\n  by: m\n  on: 2026-03-01\n"
    cannot = f"- cannot_link: [streamsvc_a:a, streamsvc_a:m]{review}"
    for text, expected in (
        (cannot, names("a", "bm")),
        (f"{cannot}- must_link: [streamsvc_a:a, streamsvc_a:b]{review}", names("ab", "m")),
    ):
        file = tmp_path / "overrides.yaml"
        file.write_text(text)
        assert partition(link(records.frame(), overrides=load_overrides(file))) == expected


@pytest.mark.parametrize("heading", ["Side A", "CD 2", "Act I", "Bonus Tracks", "Vinyl"])
def test_heading_of_a_medium_or_section_is_not_a_work(heading: str) -> None:
    frame = Records().add("a", "Overture", platform="catalog_a", release="r", heading=heading).frame()
    nobody = TABLES["source_artist"].build_empty()
    assert normalise(frame, build_name_table(collect_names(frame)), nobody)["title_key"].to_list() == ["overture"]


def test_untimed_track_joins_by_its_key_beside_another_that_has_joined_by_a_code() -> None:
    records = Records()
    for number, seconds in enumerate((200, 203.5, 207, 210.5)):
        records.add(f"t{number}", "Blue", platform="streamsvc_b", isrcs=CODE, seconds=seconds)
    records.add("u1", "Blue", platform="catalog_b", isrcs=CODE, seconds=None).add("u2", "Blue", platform="catalog_a", seconds=None)
    assert len(records.linked()) == 1


def test_thousands_of_tracks_of_one_title_are_separated() -> None:
    records = Records()
    for number in range(2_500):
        records.add(str(number), "Blue", platform="catalog_a", release="r", track=number % 30, seconds=None)
    assert len(records.linked()) == 2_500


def test_track_with_the_code_of_other_records_joins_them() -> None:
    records = (
        Records().add("a", "Blue", release="r", isrcs=CODE).add("b", "Blue", release="r").add("c", "Blue", platform="store_a", isrcs=CODE)
    )
    assert records.linked() == names("ac", "b")


def test_track_with_the_nearest_duration_joins_the_other_records() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r", seconds=203).add("b", "Blue", platform="catalog_a", release="r")
    records.add("c", "Blue", platform="store_a", seconds=200.4).add("d", "Blue", platform="streamsvc_b", seconds=199.8)
    assert records.linked() == names("a", "bcd")


def test_only_track_with_a_duration_joins_the_other_records() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="box", seconds=None, track=7)
    records.add("b", "Blue", platform="catalog_a", release="box", seconds=200, track=9).add("c", "Blue", track=7, release="album")
    assert records.linked() == names("a", "bc")


def test_track_in_the_place_of_other_records_joins_them() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r", seconds=None, track=3)
    records.add("b", "Blue", platform="catalog_a", release="r", seconds=None, track=12)
    records.add("c", "Blue", release="album", track=3, disc=1)
    assert records.linked() == names("ac", "b")


def test_no_track_joins_where_nothing_decides() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r", seconds=None)
    records.add("b", "Blue", platform="catalog_a", release="r", seconds=None).add("c", "Blue")
    assert records.linked() == names("a", "b", "c")


def test_tracks_of_two_editions_join_by_place_and_duration() -> None:
    records = Records()
    for edition in ("r", "s"):
        for number, seconds in enumerate((200, 203), 1):
            records.add(f"{edition}{number}", "Blue", platform="catalog_a", release=edition, seconds=seconds, track=number)
    assert records.linked() == {frozenset({"r1", "s1"}), frozenset({"r2", "s2"})}


def test_movements_join_under_the_name_of_their_work() -> None:
    records = Records()
    for release in ("r", "s"):
        for number, work in enumerate(("Concerto No. 1", "Concerto No. 2"), 1):
            records.add(f"{release}{number}", "Allegro", platform="catalog_a", release=release, heading=work, track=number)
    records.add("t", "Concerto No. 1: Allegro")
    assert records.linked() == {frozenset({"r1", "s1", "t"}), frozenset({"r2", "s2"})}


def test_heading_above_a_song_changes_nothing() -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r", heading="Bonus Tracks").add("b", "Blue")
    assert records.linked() == names("ab")


def test_chain_of_typing_errors_does_not_join_two_tracks_of_a_release() -> None:
    records = Records().add("a", "Wonderful Blue", release="r").add("b", "Wonderfull Bluee", release="r")
    records.add("c", "Wonderfull Blue", platform="store_a", release="q")
    assert len(records.linked()) == 2
    assert not any({"a", "b"} <= group for group in records.linked())


def test_wrong_code_on_one_platform_does_not_join_the_tracks_of_another() -> None:
    records = Records().add("a", "Blue", platform="streamsvc_a", release="r", isrcs=CODE)
    records.add("b", "Blue Again", platform="streamsvc_a", release="r", isrcs=OTHER)
    records.add("c", "Blue", platform="streamsvc_c", release="q", isrcs=CODE)
    records.add("d", "Blue Again", platform="streamsvc_c", release="q", isrcs=CODE)
    records.add("e", "Blue Again", platform="streamsvc_b", isrcs=OTHER)
    assert not any({"a", "b"} <= group for group in records.linked())


@pytest.mark.parametrize("rows_at_a_time", [1, 2, 1_000])
def test_mate_pairs_share_a_release_and_no_code_on_it(rows_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_mates, "ROWS_AT_A_TIME", rows_at_a_time)
    rows = [(1, 10, [CODE]), (2, 10, [CODE]), (3, 11, []), (4, 11, [CODE]), (5, 12, []), (6, 13, [])]
    coded = pl.DataFrame(rows, schema={"atom_id": pl.Int64, "release": pl.UInt64, "isrcs": pl.List(pl.String)}, orient="row")
    components = pl.DataFrame({"atom_id": [1, 2, 3, 4, 5, 6], "cluster_id": [1, 1, 3, 3, 5, 5]})
    found = find_mate_pairs(coded.drop("isrcs"), lambda _: coded, components)
    assert found.rows() == [(3, 4)]


@pytest.mark.slow
@settings(max_examples=20)
@given(st.permutations(range(6)), st.integers(1, 3))
def test_answer_depends_neither_on_order_nor_on_buckets(order: list[int], buckets: int) -> None:
    records = Records().add("a", "Blue", platform="catalog_a", release="r", seconds=200, track=1)
    records.add("b", "Blue", platform="catalog_a", release="r", seconds=203, track=2).add("c", "Blue", release="q", track=2, seconds=202)
    records.add("d", "Blue", platform="catalog_a", release="s", seconds=None, track=1).add("e", "Blue", platform="store_a", seconds=203)
    records.add("f", "Blue", platform="catalog_a", release="s", seconds=None, track=2)
    frame = records.frame()
    assert partition(link(frame[order], buckets=buckets)) == names("a", "bcef", "d")


@pytest.mark.parametrize("ids", list(permutations("abc")))
def test_answer_does_not_depend_on_ids(ids: tuple[str, str, str]) -> None:
    one, other, third = ids
    records = Records().add(one, "Blue", platform="catalog_a", release="r", seconds=200)
    records.add(other, "Blue", platform="catalog_a", release="r", seconds=203).add(third, "Blue", platform="store_a", seconds=203)
    assert records.linked() == {frozenset({one}), frozenset({other, third})}


def part(*tracks: tuple[str, str | None, str, int | None, tuple[int | None, int | None]]) -> set[frozenset[str]]:
    """Part records of one atom: (id, release, codes, duration, (disc, track)). Return the ids that stay together."""
    columns = {
        "platform": ["catalog_a"] * len(tracks),
        "external_id": [track[0] for track in tracks],
        "release_id": [track[1] for track in tracks],
        "isrcs": [track[2].split() for track in tracks],
        "duration_ms": [track[3] for track in tracks],
        "disc_number": [track[4][0] for track in tracks],
        "track_number": [track[4][1] for track in tracks],
        "repeats": [None] * len(tracks),
    }
    types = {"release_id": pl.String, "isrcs": pl.List(pl.String), "repeats": pl.String}
    types |= dict.fromkeys(("duration_ms", "disc_number", "track_number"), pl.Int32)
    records = pl.DataFrame(columns, schema_overrides=types)
    placed = pl.DataFrame({"row": range(len(tracks)), "part": [1] * len(tracks)}, schema={"row": pl.UInt32, "part": pl.Int64})
    parted = part_release_mates(placed, records).with_columns(name=records["external_id"])
    return {frozenset(held) for held in parted.group_by("part").agg("name")["name"].to_list()}


@pytest.mark.parametrize(("duration", "stays"), [(201_000, False), (201_001, True), (199_999, False)])
def test_track_is_clearly_nearest_a_second_before_the_others(duration: int, stays: bool) -> None:  # noqa: FBT001
    # The other record lasts 200 s: one track is 1 ms away, the second at least a second more or less.
    found = part(("a", "r", "", 200_001, (1, 1)), ("b", "r", "", duration, (1, 2)), ("c", None, "", 200_000, (None, None)))
    assert found == (names("ac", "b") if stays else names("a", "b", "c"))


@pytest.mark.parametrize(("place", "stays"), [((1, 3), True), ((None, 3), True), ((2, 3), False), ((1, 4), False), ((1, None), False)])
def test_place_of_a_release_without_discs_is_on_the_first(place: tuple[int | None, int | None], stays: bool) -> None:  # noqa: FBT001
    found = part(("a", "r", "", None, place), ("b", "r", "", None, (1, 9)), ("c", None, "", None, (1, 3)))
    assert found == (names("ac", "b") if stays else names("a", "b", "c"))


@pytest.mark.parametrize(
    ("duration", "place", "is_one"), [(201_000, 1, True), (201_001, 1, False), (200_000, 3, False), (None, 1, False), (199_000, 1, True)]
)
def test_tracks_of_two_releases_are_one_within_a_second_of_one_place(duration: int | None, place: int, is_one: bool) -> None:  # noqa: FBT001
    mates = [("b", "r", "", 300_000, (1, 2)), ("d", "s", "", 400_000, (1, 7))]
    found = part(("a", "r", "", 200_000, (1, 1)), ("c", "s", "", duration, (1, place)), *mates)
    assert (frozenset("ac") in found) is is_one


def test_code_outweighs_duration_and_duration_outweighs_place() -> None:
    other = ("c", None, "USAAA2000001", 200_000, (1, 1))
    coded, near, placed = ("x", "r", "USAAA2000001", 300_000, (1, 8)), ("y", "r", "", 200_000, (1, 9)), ("z", "r", "", 250_000, (1, 1))
    assert frozenset("cx") in part(coded, near, placed, other)
    assert frozenset("cy") in part(near, placed, other)
    assert frozenset("cz") in part(placed, ("w", "r", "", 250_000, (1, 2)), other)


@pytest.mark.parametrize(("most", "is_one"), [(4, True), (3, False)])
def test_too_many_leaving_tracks_stay_alone(monkeypatch: pytest.MonkeyPatch, most: int, is_one: bool) -> None:  # noqa: FBT001
    monkeypatch.setattr(release_mates, "MOST_COMPARED", most)
    found = part(*((f"{release}{track}", release, "", 200_000, (1, track)) for release in "rs" for track in (1, 2)))
    assert (frozenset({"r1", "s1"}) in found) is is_one


def test_parts_without_two_tracks_of_a_release_are_unchanged() -> None:
    assert part(("a", "r", "", 200_000, (1, 1)), ("b", "s", "", 200_000, (1, 1)), ("c", None, "", None, (None, None))) == names("abc")
