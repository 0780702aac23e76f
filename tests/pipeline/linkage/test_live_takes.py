"""Tests of titles with a bare `Live`: a code or an album decides the show."""

from __future__ import annotations

import polars as pl
import pytest

from catalog_store.tables import TABLES
from pipeline.linkage import link
from pipeline.linkage.live_takes import is_unplaced_live
from tests.pipeline.linkage.worlds import Records, partition

CODES = ("USSM19900001", "USSM19900002", "USSM19900003")


def takes(*seconds: float, codes: tuple[str, ...] = CODES) -> Records:
    """Return bare live takes of `Corduroy`, each on an album of its own."""
    records = Records()
    for number, (length, code) in enumerate(zip(seconds, codes, strict=False)):
        records.add(f"t{number}", "Corduroy (Live)", "Pearl Jam", seconds=length, isrcs=code, release=f"r{number}")
    return records


@pytest.mark.parametrize(
    ("variant", "is_unplaced"),
    [("live", True), ("acoustic+live", True), ("live:wembleystadium", False), ("", False), ("liveversion", False), ("live+remix", True)],
)
def test_live_take_is_unplaced_without_a_name(variant: str, is_unplaced: bool) -> None:  # noqa: FBT001
    assert pl.select(is_unplaced_live(pl.lit(variant))).item() is is_unplaced


def test_takes_of_three_codes_are_three_shows_at_one_length() -> None:
    assert takes(281.0, 281.4, 281.9).linked() == {frozenset({"t0"}), frozenset({"t1"}), frozenset({"t2"})}


def test_take_with_two_codes_is_one_recording_at_one_length() -> None:
    assert takes(281.0, 281.4, codes=CODES[:2]).linked() == {frozenset({"t0", "t1"})}


def test_takes_of_several_lengths_join_by_code_alone() -> None:
    records = takes(281.0, 283.5, codes=CODES[:2])
    records.add("same", "Corduroy (Live)", "Pearl Jam", platform="streamsvc_b", seconds=281.3, isrcs=CODES[0])
    records.add("bare", "Corduroy (Live)", "Pearl Jam", platform="catalog_b", seconds=281.2)
    assert records.linked() == {frozenset({"t0", "same"}), frozenset({"t1"}), frozenset({"bare"})}


def test_takes_without_codes_are_those_of_their_albums() -> None:
    records = takes(281.0, 283.5, codes=("", ""))
    records.add("other", "Corduroy (Live)", "Pearl Jam", platform="streamsvc_b", seconds=281.3, release="r9")
    titles = {"r0": "Live at the Gorge", "r1": "Live at Benaroya Hall", "r9": "Live at the Gorge"}
    releases = TABLES["source_release"].conform(
        pl.DataFrame(
            {
                "platform": ["streamsvc_b" if name == "r9" else "streamsvc_a" for name in titles],
                "release_id": list(titles),
                "title": list(titles.values()),
                "artists": [[]] * 3,
                "is_compilation": [False] * 3,
                "is_official": [True] * 3,
            }
        )
    )
    found = partition(link(records.frame(), releases=releases, tracks=TABLES["source_release_track"].build_empty()))
    assert found == {frozenset({"t0", "other"}), frozenset({"t1"})}


def test_bare_take_without_length_joins_no_show() -> None:
    records = Records().add("placed", "Corduroy (Live at Wembley)", "Pearl Jam", seconds=281)
    records.add("bare", "Corduroy (Live)", "Pearl Jam", platform="catalog_a", seconds=None)
    assert records.linked() == {frozenset({"placed"}), frozenset({"bare"})}


def test_only_take_of_a_song_joins_at_one_length() -> None:
    records = Records().add("placed", "Corduroy (Live at Wembley)", "Pearl Jam", seconds=281)
    records.add("bare", "Corduroy (Live)", "Pearl Jam", platform="catalog_a", seconds=281.5)
    assert records.linked() == {frozenset({"placed", "bare"})}
    records.add("second", "Corduroy (Live at Red Rocks)", "Pearl Jam", seconds=275)
    assert records.linked() == {frozenset({"placed"}), frozenset({"bare"}), frozenset({"second"})}


def test_untimed_track_of_a_live_album_joins_no_studio_take() -> None:
    records = Records().add("a", "Blue Evening").add("b", "Blue Evening", platform="catalog_a", seconds=None, traits=("live",))
    assert len(records.linked()) == 2


def test_timed_track_of_a_live_album_is_identified_by_its_length() -> None:
    records = Records().add("a", "Blue Evening").add("b", "Blue Evening", platform="catalog_a", seconds=200.4, traits=("live",))
    assert len(records.linked()) == 1


def test_untimed_track_of_a_live_album_joins_the_take_of_that_code() -> None:
    records = Records().add("a", "Blue Evening (Live)", isrcs="GBABC2000001")
    records.add("b", "Blue Evening", platform="catalog_a", seconds=None, traits=("live",), isrcs="GBABC2000001")
    assert len(records.linked()) == 1


def on_albums(records: Records, **titles: str) -> set[frozenset[str]]:
    """Return the recordings of `records` on releases with these titles."""
    platforms = {row["release_id"]: row["platform"] for row in records.rows}
    rows = [
        {"platform": platforms[name], "release_id": name, "title": title, "artists": [], "is_compilation": False, "is_official": True}
        for name, title in titles.items()
    ]
    releases = TABLES["source_release"].conform(pl.DataFrame(rows))
    return partition(link(records.frame(), releases=releases, tracks=TABLES["source_release_track"].build_empty()))


def test_takes_on_albums_of_two_shows_are_two_at_one_length() -> None:
    records = takes(281.0, 281.4, codes=("", ""))
    assert on_albums(records, r0="Live at the Gorge", r1="Live at Benaroya Hall, 2003-10-22") == {frozenset({"t0"}), frozenset({"t1"})}
    assert on_albums(records, r0="Live at the Gorge", r1="Greatest Hits") == {frozenset({"t0", "t1"})}


def test_takes_on_albums_of_one_show_are_one_under_three_codes() -> None:
    records = takes(281.0, 281.4, 281.9)
    assert on_albums(records, r0="Live at the Gorge", r1="Live at the Gorge", r2="Live in Rome") == {
        frozenset({"t0", "t1"}),
        frozenset({"t2"}),
    }


def test_take_that_names_its_show_joins_no_take_on_the_album_of_another() -> None:
    records = Records().add("placed", "Corduroy (Live at Wembley)", "Pearl Jam", seconds=281, release="r0")
    records.add("bare", "Corduroy (Live)", "Pearl Jam", platform="catalog_a", seconds=281.5, release="r1")
    assert on_albums(records, r0="Box", r1="Live at Red Rocks") == {frozenset({"placed"}), frozenset({"bare"})}
    assert on_albums(records, r0="Box", r1="Live at Wembley") == {frozenset({"placed", "bare"})}


def test_code_in_common_is_one_take_whatever_the_albums_say() -> None:
    records = takes(281.0, 281.4, codes=(CODES[0], CODES[0]))
    assert on_albums(records, r0="Live at the Gorge", r1="Live in Rome") == {frozenset({"t0", "t1"})}


@pytest.mark.parametrize("album", ["Live at the Gorge", "Live on Two Legs (Live)", "Live on Two Legs: Live"])
def test_track_of_a_live_album_joins_the_take_of_its_length(album: str) -> None:
    records = Records().add("marked", "Corduroy (Live)", "Pearl Jam", seconds=281, release="r0")
    records.add("bare", "Corduroy", "Pearl Jam", platform="streamsvc_b", seconds=281.5, release="r1")
    records.add("studio", "Corduroy", "Pearl Jam", platform="streamsvc_c", seconds=275, release="r2")
    assert on_albums(records, r0=album, r1=album, r2="Vitalogy") == {frozenset({"marked", "bare"}), frozenset({"studio"})}


def test_track_of_another_album_joins_no_take_of_its_length() -> None:
    records = Records().add("marked", "Corduroy (Live)", "Pearl Jam", seconds=281, release="r0")
    records.add("studio", "Corduroy", "Pearl Jam", platform="streamsvc_b", seconds=281.5, release="r1")
    for title in ("Vitalogy", "Live Through This", "Live in Rome"):
        assert len(on_albums(records, r0="Live at the Gorge", r1=title)) == 2, title


def test_track_of_a_live_album_joins_no_take_of_another_length() -> None:
    records = Records().add("marked", "Corduroy (Live)", "Pearl Jam", seconds=281, release="r0")
    records.add("bare", "Corduroy", "Pearl Jam", platform="streamsvc_b", seconds=284, release="r1")
    assert len(on_albums(records, r0="Live at the Gorge", r1="Live at the Gorge")) == 2


@pytest.mark.parametrize(
    ("note", "seconds", "count"),
    [("Live", 204, 1), ("Live", 204.1, 2), ("Live at Wembley", 204, 1), ("Live at Wembley", 204.1, 2)],
)
def test_live_take_without_a_show_is_one_recording_with_another_of_its_code_at_one_length(note: str, seconds: float, count: int) -> None:
    """Another length under the code of a live take is another show of it."""
    records = Records().add("a", f"Corduroy ({note})", isrcs="GBABC2000001", seconds=200)
    assert len(records.add("b", "Corduroy (Live)", platform="streamsvc_b", isrcs="GBABC2000001", seconds=seconds).linked()) == count


def test_live_takes_of_one_code_and_show_may_differ_in_length() -> None:
    records = Records().add("a", "Corduroy (Live at Wembley)", isrcs="GBABC2000001", seconds=200)
    records.add("b", "Corduroy - Live at Wembley", platform="streamsvc_b", isrcs="GBABC2000001", seconds=214)
    assert len(records.linked()) == 1
