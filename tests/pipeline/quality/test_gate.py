from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.quality.code_loss import CodeLoss
from pipeline.quality.gate import QUESTIONS, Limits, Verdict, judge_build
from pipeline.quality.id_drift import IdDrift

YESTERDAY = {
    ("rows", "recording"): 10_000.0,
    ("rows", "isrc_owner"): 8_000.0,
    ("golden", "pairs"): 200.0,
    ("golden", "precision"): 1.0,
    ("golden", "recall"): 0.99,
    ("golden_pair", "right"): 1.0,
    ("golden_pair", "wrong"): 0.0,
    ("truth", "precision"): 0.9999,
    ("truth", "recall"): 0.995,
    ("truth", "true_pairs"): 4e6,
    ("mixed", "wide_durations"): 40.0,
    ("conflicts", "variant"): 100.0,
    ("nulls", "recording.isrc"): 0.2,
    ("staged", "streamsvc_b.source_recording"): 5_000.0,
    ("filled", "streamsvc_b.source_recording.isrcs"): 4_500.0,
    ("filled", "streamsvc_b.source_recording.artists.role=featured"): 900.0,
    ("staged", "store_a.source_recording"): 10.0,
    ("filled", "store_a.source_recording.isrcs"): 10.0,
}
STAYED = IdDrift(kept=10_000, new=0, split=0, merged=0, retired=0, records=25_000, moved=0)


def failed(changes: dict[tuple[str, str], float], drift: IdDrift | None = STAYED, limits: Limits | None = None) -> dict[str, str]:
    answers = judge_build({**YESTERDAY, **changes}, YESTERDAY, drift, limits or Limits())
    assert [answer.name for answer in answers] == list(QUESTIONS)
    return {answer.name: answer.message for answer in answers if not answer.passed}


def test_the_same_figures_pass() -> None:
    assert failed({}) == {}


def test_the_first_build_is_measured_by_the_floors_alone() -> None:
    answers = judge_build({**YESTERDAY, ("mixed", "wide_durations"): 9_000.0}, {}, None, Limits())
    assert all(answer.passed for answer in answers)
    low = judge_build({**YESTERDAY, ("golden", "recall"): 0.5}, {}, None, Limits())
    assert [answer.name for answer in low if not answer.passed] == ["golden_pairs_hold"]


def test_a_snapshot_published_without_figures_still_guards_the_size() -> None:
    answers = judge_build({**YESTERDAY, ("rows", "recording"): 10.0}, {("rows", "recording"): 10_000.0}, None, Limits())
    assert [answer.name for answer in answers if not answer.passed] == ["catalog_did_not_shrink"]


@pytest.mark.parametrize(
    ("changes", "check", "says", "setting", "limits"),
    [
        (
            {("rows", "recording"): 7_999.0},
            "catalog_did_not_shrink",
            "7,999 recordings, the live snapshot 10,000",
            "SHRINK=1",
            Limits(shrink=1),
        ),
        ({("golden_pair", "right"): 0.0}, "golden_pairs_hold", "this build has them wrong: right", "FALL=1", Limits(fall=1)),
        (
            {("golden", "precision"): 0.87},
            "golden_pairs_hold",
            "0.8700 is below 0.9",
            "LOWEST_GOLDEN_PRECISION",
            Limits(golden_precision=0.8),
        ),
        ({("truth", "recall"): 0.99}, "simulated_truth_holds", "recall fell from 0.9950 to 0.9900", "FALL=1", Limits(fall=1)),
        ({("truth", "precision"): 0.9}, "simulated_truth_holds", "0.9000 is below", "LOWEST_PRECISION", Limits(precision=0.5, fall=1)),
        ({("mixed", "wide_durations"): 81.0}, "no_jump_of_mixed_recordings", "wide_durations 40 -> 81", "JUMP=1000", Limits(jump=1000)),
        ({("mixed", "twice_on_a_release"): 1.0}, "releases_list_recordings_once", "1 recordings hold two", "TWICE=1", Limits(twice=1)),
        ({("conflicts", "variant"): 171.0}, "no_jump_of_isrc_conflicts", "variant 100 -> 171", "JUMP=1000", Limits(jump=1000)),
    ],
)
def test_each_question_can_refuse_a_build_with_a_remedy(
    changes: dict[tuple[str, str], float], check: str, says: str, setting: str, limits: Limits
) -> None:
    no = failed(changes)
    assert list(no) == [check]
    assert says in no[check]
    assert f"CATALOG_L{'' if setting.startswith('LOWEST') else 'ARGEST_'}{setting.removeprefix('L')}" in no[check]
    assert failed(changes, limits=limits) == {}


def test_a_pair_that_was_wrong_before_and_a_pair_that_is_new_do_not_stop_a_build() -> None:
    assert failed({("golden_pair", "wrong"): 0.0, ("golden_pair", "just-written"): 0.0}) == {}


def test_a_catalog_that_doubled_may_double_its_signs() -> None:
    twice = {("rows", "recording"): 20_000.0, ("rows", "isrc_owner"): 16_000.0}
    assert failed({**twice, ("mixed", "wide_durations"): 100.0, ("conflicts", "variant"): 250.0}) == {}


def test_a_small_world_may_differ_by_chance_from_night_to_night() -> None:
    small = {**YESTERDAY, ("truth", "true_pairs"): 1_000.0}
    answers = judge_build({**small, ("truth", "recall"): 0.99}, small, STAYED, Limits())
    assert all(answer.passed for answer in answers)


@pytest.mark.parametrize(("moved", "passes"), [(500, True), (501, False)])
def test_records_stay_under_their_ids(moved: int, passes: bool) -> None:  # noqa: FBT001
    drift = IdDrift(kept=9_000, new=1_000, split=300, merged=700, retired=0, records=25_000, moved=moved)
    no = failed({}, drift)
    assert (no == {}) is passes
    if not passes:
        assert "501 of 25,000 records" in no["ids_stay"]
        assert "CATALOG_LARGEST_MOVE=1" in no["ids_stay"]
        assert failed({}, drift, Limits(move=1)) == {}


def test_few_moves_pass_in_a_tiny_catalog() -> None:
    assert failed({}, IdDrift(kept=5, new=5, split=5, merged=0, retired=0, records=40, moved=20)) == {}


def test_passed_verdict_names_its_figures() -> None:
    found = {answer.name: answer for answer in judge_build(YESTERDAY, YESTERDAY, STAYED, Limits())}
    assert found["golden_pairs_hold"] == Verdict("golden_pairs_hold", passed=True, message="precision 1.0000, recall 0.9900; wrong: wrong")
    assert found["ids_stay"].message.startswith("0 of 25,000 records")


@pytest.mark.parametrize(
    ("changes", "says", "setting", "limits"),
    [
        (
            {("filled", "streamsvc_b.source_recording.isrcs"): 0.0},
            "streamsvc_b: source_recording.isrcs 4,500 -> 0",
            "LARGEST_LOSS=1",
            Limits(loss=1),
        ),
        (
            {("filled", "streamsvc_b.source_recording.artists.role=featured"): 600.0},
            "streamsvc_b: source_recording.artists.role=featured 900 -> 600",
            "LARGEST_LOSS=1",
            Limits(loss=1),
        ),
        (
            {("staged", "streamsvc_b.source_recording"): 1_000.0},
            "streamsvc_b: source_recording 5,000 -> 1,000",
            "LOWEST_ROWS=0",
            Limits(rows=0),
        ),
    ],
)
def test_a_platform_that_lost_rows_or_values_stops_the_build(
    changes: dict[tuple[str, str], float], says: str, setting: str, limits: Limits
) -> None:
    no = failed(changes)
    assert list(no) == ["platforms_keep_their_values"]
    assert says in no["platforms_keep_their_values"]
    assert f"CATALOG_{setting}" in no["platforms_keep_their_values"]
    assert failed(changes, limits=limits) == {}
    assert failed(changes, limits=Limits(shrink=1)) == {}


def test_platform_of_ten_records_may_lose_them() -> None:
    assert failed({("filled", "store_a.source_recording.isrcs"): 0.0}) == {}
    assert failed({("staged", "store_a.source_recording"): 0.0, ("filled", "store_a.source_recording.isrcs"): 0.0}) == {}


def test_a_column_that_lost_its_values_stops_the_build() -> None:
    no = failed({("nulls", "recording.isrc"): 0.5})
    assert list(no) == ["columns_keep_their_values"]
    assert "recording.isrc 8,000 -> 5,000 values" in no["columns_keep_their_values"]
    assert "CATALOG_LARGEST_LOSS=1" in no["columns_keep_their_values"]
    assert failed({("nulls", "recording.isrc"): 0.5}, limits=Limits(loss=1)) == {}
    assert failed({("nulls", "recording.isrc"): 0.25}) == {}


@pytest.mark.parametrize(("lost", "passes"), [(0, True), (500, True), (2_000, False)])
def test_lost_codes_stop_the_build_despite_as_many_new_ones(lost: int, passes: bool) -> None:  # noqa: FBT001
    codes = [CodeLoss("ISRC", 8_000, lost), CodeLoss("ISWC", 10, 10)]
    answers = {answer.name: answer for answer in judge_build(YESTERDAY, YESTERDAY, STAYED, Limits(), codes)}
    assert answers["codes_stay"].passed is passes
    assert f"{lost:,} of 8,000 ISRCs gone" in answers["codes_stay"].message
    if not passes:
        assert "CATALOG_LARGEST_LOSS=1" in answers["codes_stay"].message
        assert all(answer.passed for answer in judge_build(YESTERDAY, YESTERDAY, STAYED, Limits(loss=1), codes))


@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(0, 3))
def test_growing_catalog_with_equal_shares_loses_no_values(rows: int, empty: float, growth: float) -> None:
    before = YESTERDAY | {("rows", "release"): float(rows), ("nulls", "release.gtin"): empty}
    now = before | {("rows", "release"): float(round(rows * growth))}
    assert all(answer.passed for answer in judge_build(now, before, STAYED, Limits()) if answer.name == "columns_keep_their_values")
