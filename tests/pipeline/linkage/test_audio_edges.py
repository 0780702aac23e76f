"""Tests of fingerprints as evidence: equal audio joins under the guards, different audio separates, doubtful claims have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.chromaprint import SILENCE_ITEM
from catalog_store.tables import TABLES
from pipeline.linkage import audio_verdicts, stages
from pipeline.linkage.atom_fingerprints import FIRM_LINKS, SAME_LENGTH_SECONDS
from pipeline.linkage.audio_verdicts import DIFFERENT_DISTANCE, EQUAL_DISTANCE, judge_atoms
from pipeline.paths import BuildPaths
from tests.pipeline.linkage.staged_audio import SECOND, StagedAudio, mbid, performance
from tests.pipeline.linkage.test_stages import build, stage
from tests.pipeline.linkage.worlds import Records

if TYPE_CHECKING:
    from pathlib import Path

CODE = "GBABC2000001"
OTHER_CODE = "GBABC2000002"


class World:
    """Records of catalog_b by number, records of other platforms by name, and their audio."""

    def __init__(self, root: Path) -> None:
        self.paths, self.records, self.audio = BuildPaths(root), Records(), StagedAudio()

    def add(self, number: int, title: str = "Song", artist: str = "Some Singer", *, seconds: float | None = 200, isrcs: str = "") -> None:
        self.records.add(mbid(number), title, artist, platform="catalog_b", seconds=seconds, isrcs=isrcs)

    def link(self) -> set[frozenset[str]]:
        """Return the recordings as sets of the last digits of catalog_b ids, and of names."""
        self.audio.stage(self.paths)
        self.tables = build(stage(self.paths, self.records.frame()))
        groups = self.tables["recording_member"].group_by("recording_id").agg("external_id")["external_id"].to_list()
        return {frozenset(name.split("-")[-1].lstrip("0") for name in names) for names in groups}

    def kinds(self) -> list[str]:
        return self.tables["edge"]["kind"].to_list()

    def verdicts(self) -> list[tuple[str, str | None]]:
        return self.tables["audio_comparison"].select("verdict", "reason").rows()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


JOINED, PARTED = {frozenset("12")}, {frozenset("1"), frozenset("2")}


@pytest.mark.parametrize(
    ("other", "seconds", "reason"),
    [
        ({"title": "Song (The Long Way Home)"}, 200, None),
        ({"artist": "Some Singer & The Band"}, 206, None),
        ({"seconds": 206}, 206, None),
        ({"seconds": None}, 200, None),
        ({"title": "Song - Live"}, 200, "variant"),
        ({"title": "Song (Karaoke Version)"}, 200, "variant"),
        ({"title": "Something Else Entirely"}, 200, "title"),
        ({"artist": "Another Person"}, 200, "artist"),
    ],
)
@pytest.mark.parametrize("is_one_track", [True, False])
def test_equal_audio_joins_records_whose_names_allow_it(
    world: World, other: dict[str, object], seconds: int, reason: str | None, *, is_one_track: bool
) -> None:
    world.add(1)
    world.add(2, **other)  # type: ignore[arg-type]
    if is_one_track:
        world.audio.track(7, performance(1), (1, 5), (2, 4), seconds=(200 + seconds) // 2)
    else:
        world.audio.track(7, performance(1), (1, 5))
        world.audio.track(8, performance(1, copy=2), (2, 4), seconds=seconds)
    linked = world.link()
    if other == {"seconds": None}:
        # An untimed record joins its only namesake without any audio.
        assert linked == JOINED
        return
    assert linked == (PARTED if reason else JOINED)
    if is_one_track:
        assert world.verdicts() == [("equal", reason)]
    assert ("audio" in world.kinds()) == (reason is None)


def test_two_codes_of_one_recording_join_by_audio(world: World) -> None:
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    assert world.link() == PARTED
    world.audio.track(7, performance(1), (1, 5))
    world.audio.track(8, performance(1, copy=1), (2, 5))
    assert world.link() == JOINED
    (edge,) = world.tables["edge"].iter_rows(named=True)
    assert edge["kind"] == "audio"
    assert edge["score"] > 0.9
    assert edge["evidence"] in {"fingerprints 7 ~ 8: 49 s compared", "fingerprints 8 ~ 7: 49 s compared"}


def test_different_audio_separates_two_performances_under_one_code(world: World) -> None:
    world.add(1, isrcs=CODE)
    world.add(2, seconds=207, isrcs=CODE)
    assert world.link() == JOINED
    world.audio.track(7, performance(1), (1, FIRM_LINKS))
    world.audio.track(8, performance(2), (2, FIRM_LINKS), seconds=207)
    assert world.link() == PARTED
    assert world.verdicts() == [("different", None)]
    # The edge stays in the table, as evidence that was not used.
    assert world.kinds() == ["isrc"]


def test_different_audio_separates_records_that_a_third_one_joins(world: World) -> None:
    world.add(1, isrcs=CODE)
    world.add(2, seconds=210, isrcs=OTHER_CODE)
    world.records.add("third", "Song", "Some Singer", isrcs=f"{CODE} {OTHER_CODE}", seconds=205)
    assert world.link() == {frozenset({"1", "2", "third"})}
    world.audio.track(7, performance(1), (1, 5))
    world.audio.track(8, performance(2), (2, 5), seconds=210)
    assert sorted(map(len, world.link())) == [1, 2]
    assert world.verdicts() == [("different", None)]


def test_reviewed_decision_joins_in_spite_of_different_audio(world: World) -> None:
    test_different_audio_separates_two_performances_under_one_code(world)
    why = "  why: one was taped too fast\n  by: someone\n  on: 2026-03-01\n"
    world.paths.overrides.write_text(f"- must_link: [catalog_b:{mbid(1)}, catalog_b:{mbid(2)}]\n{why}")
    assert world.link() == JOINED
    world.paths.overrides.write_text(f"- cannot_link: [catalog_b:{mbid(1)}, catalog_b:{mbid(2)}]\n{why}")
    world.audio = StagedAudio()
    world.audio.track(7, performance(1), (1, 5), (2, 5), seconds=203)
    assert world.link() == PARTED


@pytest.mark.parametrize(
    ("links", "is_joined"),
    [
        ([(1, 2), (2, 2)], True),
        ([(1, 9), (2, 2)], False),
        ([(1, 8), (2, 2)], True),
        ([(1, 5), (2, 1)], False),
    ],
)
def test_claim_needs_two_users_and_a_quarter_of_the_votes(world: World, links: list[tuple[int, int]], *, is_joined: bool) -> None:
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.audio.track(7, performance(1), *links)
    assert world.link() == (JOINED if is_joined else PARTED)


def test_claim_of_another_length_counts_neither_for_nor_against(world: World) -> None:
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.audio.track(7, performance(1), (1, 5), (2, 5), seconds=230)
    assert world.link() == PARTED
    assert world.verdicts() == []


def test_doubtful_claim_does_not_part(world: World) -> None:
    world.add(1, isrcs=CODE)
    world.add(2, seconds=207, isrcs=CODE)
    world.audio.track(7, performance(1), (1, FIRM_LINKS))
    world.audio.track(8, performance(2), (2, FIRM_LINKS - 1), seconds=207)
    assert world.link() == JOINED
    assert world.verdicts() == [("unclear", None)]


def test_wrong_attachment_beside_a_right_one_does_not_part(world: World) -> None:
    world.add(1, isrcs=CODE)
    world.add(2, seconds=207, isrcs=CODE)
    world.audio.track(7, performance(1), (1, 5), seconds=203)
    world.audio.track(8, performance(2), (2, 9), seconds=207)
    world.audio.track(9, performance(1, copy=1), (2, 3), seconds=204)
    assert world.link() == JOINED
    assert {verdict for verdict, _ in world.verdicts()} == {"equal"}


@pytest.mark.parametrize(
    "nothing", [np.full(400, SILENCE_ITEM, np.uint32), np.full(400, 7, np.uint32), performance(1)[:60]], ids=["silence", "drone", "short"]
)
def test_audio_that_proves_nothing_neither_joins_nor_separates(world: World, nothing: np.ndarray) -> None:  # type: ignore[type-arg]
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.add(3, "A Third One", isrcs="GBABC2000003")
    world.add(4, "A Third One", seconds=207, isrcs="GBABC2000003")
    world.audio.track(7, nothing, (1, 5), (2, 5))
    world.audio.track(8, nothing, (3, 5))
    world.audio.track(9, performance(3), (4, 5), seconds=207)
    assert world.link() == {*PARTED, frozenset("34")}
    assert world.tables["audio_comparison"]["distance"].null_count() == 2
    assert {verdict for verdict, _ in world.verdicts()} == {"unclear"}


def test_same_beginning_of_another_length_does_not_join(world: World) -> None:
    # The database knows the first two minutes only: an edit begins like the whole song.
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", seconds=200 + SAME_LENGTH_SECONDS + 1, isrcs=OTHER_CODE)
    world.audio.track(7, performance(1), (1, 5))
    world.audio.track(8, performance(1, copy=1), (2, 5), seconds=200 + SAME_LENGTH_SECONDS + 1)
    assert world.link() == PARTED


def test_own_file_joins_a_record_of_any_platform(world: World) -> None:
    world.records.add("mine", "Song of the Sea", "Some Singer", platform="streamsvc_a", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.audio.track(8, performance(1, copy=1), (2, 5))
    world.audio.own_file(1, performance(1), target_platform="streamsvc_a", external_id="mine")
    assert world.link() == {frozenset({"mine", "2"})}
    by_code = World(world.paths.root / "by_code")
    by_code.records, by_code.audio = world.records, StagedAudio()
    by_code.audio.track(8, performance(1, copy=1), (2, 5))
    by_code.audio.own_file(1, performance(1), isrc=CODE)
    assert by_code.link() == {frozenset({"mine", "2"})}


def test_file_mapped_by_a_code_of_several_atoms_speaks_for_none(world: World) -> None:
    world.records.add("mine", "Song of the Sea", "Some Singer", platform="streamsvc_a", isrcs=CODE)
    world.records.add("theirs", "Whatever", "Somebody Else", platform="streamsvc_b", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.audio.track(8, performance(1, copy=1), (2, 5))
    world.audio.own_file(1, performance(1), isrc=CODE)
    assert world.link() == {frozenset({"mine"}), frozenset({"theirs"}), frozenset("2")}


def test_link_that_is_taken_back_and_a_fingerprint_that_came_again_count_as_they_are_now(world: World) -> None:
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.add(2, "Song of the Seas", isrcs=OTHER_CODE)
    world.audio.track(7, performance(1), (1, 5), (2, 5))
    assert world.link() == JOINED
    world.audio.link(701, 7, 2, 5, day=SECOND, is_disabled=True)
    assert world.link() == PARTED
    world.audio.track(8, performance(3), (2, 5), day=SECOND)
    assert world.link() == PARTED
    world.audio.track(8, performance(1, copy=1), day="2026-07-22")
    assert world.link() == JOINED


def test_world_without_fingerprints_measures_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add(1, isrcs=CODE)
    world.add(2, seconds=207, isrcs=CODE)

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("pipeline.linkage.audio_edges.find_atom_fingerprints", fail)
    monkeypatch.setattr("pipeline.linkage.audio_edges.measure_pairs", fail)
    assert world.link() == JOINED
    assert world.tables["audio_comparison"].is_empty()


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_recordings_do_not_depend_on_ids_or_order(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    songs = [
        ("Song of the Sea", CODE, 1, 200),
        ("Song of the Seas", OTHER_CODE, 1, 201),
        ("Song of the Sea", CODE, 2, 207),
        ("Song of the Sea (Live)", "", 1, 200),
        ("Night Train", "GBABC2000003", 3, 200),
        ("Night Trains", "GBABC2000004", 3, 200),
    ]
    numbers = data.draw(st.permutations(range(1, len(songs) + 1)))
    tracks = data.draw(st.permutations(range(11, 11 + len(songs))))
    world = World(tmp_path_factory.mktemp("order"))
    for place in data.draw(st.permutations(range(len(songs)))):
        title, code, seed, seconds = songs[place]
        world.add(numbers[place], title, isrcs=code, seconds=seconds)
        world.audio.track(tracks[place], performance(seed, copy=place), (numbers[place], 5), seconds=seconds)
    by_number = {str(number): place for place, number in enumerate(numbers)}
    assert {frozenset(by_number[number] for number in names) for names in world.link()} == {
        frozenset({0, 1}),
        frozenset({2}),
        frozenset({3}),
        frozenset({4, 5}),
    }


@pytest.mark.parametrize(
    ("distances", "lengths", "firm", "verdict"),
    [
        ([EQUAL_DISTANCE], (200, 200 + SAME_LENGTH_SECONDS), (False, False), "equal"),
        ([EQUAL_DISTANCE], (200, 201 + SAME_LENGTH_SECONDS), (True, True), "unclear"),
        ([EQUAL_DISTANCE + 0.001], (200, 200), (True, True), "unclear"),
        ([DIFFERENT_DISTANCE], (200, 200), (True, True), "different"),
        ([DIFFERENT_DISTANCE], (200, 200), (True, False), "unclear"),
        ([DIFFERENT_DISTANCE - 0.001], (200, 200), (True, True), "unclear"),
        ([DIFFERENT_DISTANCE, EQUAL_DISTANCE], (200, 200), (True, True), "equal"),
        ([DIFFERENT_DISTANCE, None], (200, 200), (True, True), "different"),
        ([DIFFERENT_DISTANCE, 0.3], (200, 200), (True, True), "unclear"),
        ([None], (200, 200), (True, True), "unclear"),
    ],
)
def test_verdict_weighs_all_fingerprints_of_both_atoms(
    distances: list[float | None], lengths: tuple[int, int], firm: tuple[bool, bool], verdict: str
) -> None:
    rows = pl.DataFrame({"distance": distances}, schema={"distance": pl.Float64}).with_columns(
        a=1, b=2, seconds_a=lengths[0], seconds_b=lengths[1], is_firm_a=firm[0], is_firm_b=firm[1]
    )
    assert set(judge_atoms(rows)["verdict"]) == {verdict}


def test_known_measures_are_used_again_and_fingerprints_that_are_gone_measure_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add(1, "Song of the Sea", isrcs=CODE)
    world.audio.track(7, performance(1), (1, 5))
    world.link()
    gone = pl.DataFrame({"one": [1], "other": [2]}, schema={"one": pl.Int64, "other": pl.Int64})
    assert audio_verdicts.measure_pairs(world.paths, gone).rows() == [(1, 2, None, None)]
    monkeypatch.setattr(audio_verdicts, "iterate_fingerprints", None)
    assert audio_verdicts.measure_pairs(world.paths, gone.clear()).is_empty()
    assert TABLES["audio_comparison"].build_empty().equals(world.tables["audio_comparison"])
    assert stages.write_edges(world.paths)["edges"] == 0
