"""Tests of records that left out the version of their code."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.linkage.version_edges import adopt_versions
from tests.pipeline.linkage.worlds import Records

REMIX = "GBABC2000002"


def song(**bare: Any) -> Records:  # noqa: ANN401 - arguments of `Records.add`
    """Return a song of 200 s, its remix of 312 s on two platforms, and record `bare` of the song's title under the remix's code."""
    records = Records().add("song", "Roses", isrcs="GBABC2000001", seconds=200)
    records.add("a", "Roses (Imanbek Remix)", isrcs=REMIX, seconds=312)
    records.add("b", "Roses - Imanbek Remix", platform="streamsvc_c", isrcs=REMIX, seconds=312.6)
    return records.add("bare", **{"title": "Roses", "platform": "streamsvc_b", "isrcs": REMIX, "seconds": 311.8, **bare})


def test_record_of_the_length_and_code_of_a_remix_is_the_remix() -> None:
    assert song().linked() == {frozenset({"song"}), frozenset({"a", "b", "bare"})}


@pytest.mark.parametrize(
    "bare",
    [
        {"seconds": 200.5},
        {"seconds": 309},
        {"seconds": None},
        {"isrcs": ""},
        {"isrcs": "GBABC2000003"},
        {"artists": "Somebody Else"},
        {"title": "Roses and Thorns"},
    ],
    ids=["length of the song", "another length", "no length", "no code", "another code", "another artist", "another title"],
)
def test_record_without_all_signs_is_not_the_remix(bare: dict[str, Any]) -> None:
    assert frozenset({"a", "b"}) in song(**bare).linked()


def test_song_that_is_not_known_without_the_word_joins_no_remix() -> None:
    records = song()
    records.rows.pop(0)
    assert records.linked() == {frozenset({"a", "b"}), frozenset({"bare"})}


def test_song_with_two_records_under_the_code_of_a_remix_stays_the_song() -> None:
    """A code that stands on a song and its remix is a wrong code, not a missing word."""
    records = song().add("second", "Roses", platform="store_a", isrcs=REMIX, seconds=311.5)
    assert frozenset({"bare", "second"}) in records.linked()


@pytest.mark.parametrize("version", ["Karaoke", "Instrumental", "Clean"])
def test_version_of_the_length_of_its_song_needs_its_word(version: str) -> None:
    records = Records().add("song", "Roses", isrcs="GBABC2000001", seconds=230)
    records.add("a", f"Roses ({version})", isrcs=REMIX, seconds=200).add("bare", "Roses", platform="streamsvc_b", isrcs=REMIX, seconds=200)
    assert frozenset({"a"}) in records.linked()


def test_order_of_records_changes_no_recording() -> None:
    records = song()
    found = records.linked()
    records.rows.reverse()
    assert records.linked() == found


def test_atom_without_a_word_adopts_the_version_that_it_is_joined_to() -> None:
    atoms = pl.DataFrame({"atom_id": [1, 2, 3, 4], "variant": ["", "live:paris", "", "radio"]})
    edges = pl.DataFrame({"atom_id_a": [1, 3], "atom_id_b": [2, 4], "kind": ["isrc", "isrc"]})
    assert adopt_versions(atoms, edges)["variant"].to_list() == ["live:paris", "live:paris", "", "radio"]


@pytest.mark.parametrize(
    ("code", "is_song"),
    [("GBABC2000007", True), (REMIX, False), ("GBABC2000001", True)],
    ids=["code of its own", "code of the remix", "code of the song"],
)
def test_record_without_a_length_stays_out_of_its_song_if_its_code_is_a_versions(code: str, is_song: bool) -> None:  # noqa: FBT001
    """Nothing tells whether the code is wrong or the word is missing."""
    records = song(isrcs=code, seconds=None)
    assert records.linked() == {frozenset({"song", "bare"} if is_song else {"song"}), frozenset({"a", "b"})} | (
        set() if is_song else {frozenset({"bare"})}
    )


def test_place_on_a_release_decides_about_a_record_in_doubt() -> None:
    records = song(isrcs=REMIX, seconds=None, release="r", track=1)
    assert frozenset({"bare"}) in records.linked()
    listed = records.add("second", "Roses", platform="streamsvc_b", isrcs="GBABC2000001", seconds=200, release="r", track=2)
    assert frozenset({"bare"}) in listed.linked()
