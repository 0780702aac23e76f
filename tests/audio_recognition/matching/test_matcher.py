from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audio_recognition.chromaprint import HOP_SAMPLES, ITEMS_PER_SECOND, SAMPLE_RATE, SILENCE_ITEM, WEAK_BITS
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index, write_index_file
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.layout import BASE, VOID
from audio_recognition.index.segment import write_segment
from audio_recognition.matching import FEWEST_ITEMS, SURE_ITEMS, Matcher, Pace, Reason, matcher
from audio_recognition.matching.candidates import build_plain_probes
from tests.audio_recognition.fingerprint_world import ITEMS, damaged, music

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

RECORDINGS = 60
FIRST_ID = 100


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    folder = tmp_path_factory.mktemp("whole") / "index"
    ids = range(FIRST_ID, FIRST_ID + RECORDINGS)
    build_index([FingerprintBatch.of(ids, [music(seed) for seed in range(RECORDINGS)], [200.0] * RECORDINGS)], folder)
    return Matcher(Index.open(folder))


def first(found: Matcher, items: NDArray[np.uint32], **how: int) -> tuple[int, float]:
    answer = found.match([items], **how)
    assert answer.matches, answer
    return answer.matches[0].recording_id, answer.matches[0].confidence


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, RECORDINGS - 1), start=st.integers(0, ITEMS - SURE_ITEMS), length=st.integers(SURE_ITEMS, ITEMS))
def test_any_slice_of_a_recording_is_found_at_its_place(whole: Matcher, seed: int, start: int, length: int) -> None:
    (match,) = whole.match([music(seed)[start : start + length]]).matches
    assert (match.recording_id, match.confidence, match.bit_error_rate) == (FIRST_ID + seed, 1.0, 0.0)
    assert match.offset_seconds == pytest.approx(start / ITEMS_PER_SECOND)
    assert match.overlap_items == min(length, ITEMS - start)


def test_confidence_falls_with_the_bits_that_differ(whole: Matcher) -> None:
    confidences = [first(whole, damaged(music(7)[50:275], share, 1))[1] for share in (0.0, 0.02, 0.06, 0.1)]
    assert confidences == sorted(confidences, reverse=True)
    assert confidences[0] == 1.0
    assert confidences[-1] > 0.5


def test_recording_that_differs_too_much_is_not_found(whole: Matcher) -> None:
    assert whole.match([damaged(music(7)[50:275], 0.35, 1)]).reason is Reason.NOT_FOUND


def test_later_lookups_find_audio_without_an_unchanged_item(whole: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [damaged(music(seed)[50:275], 0.13, seed) for seed in range(20)]
    both = [whole.match([query]).matches for query in queries]
    monkeypatch.setattr(matcher, "build_flipped_probes", build_plain_probes)
    alone = [whole.match([query]).matches for query in queries]
    assert all(found and found[0].recording_id == FIRST_ID + seed for seed, found in enumerate(both))
    assert sum(map(bool, alone)) < len(queries)


def flip_first_bits(items: NDArray[np.uint32], count: int, seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return items with `count` bits of each flipped, and weak bits that name these first."""
    draw = np.random.default_rng(seed)
    weak = np.argsort(draw.random((len(items), 32)), axis=1)[:, :WEAK_BITS].astype(np.uint8)
    for rank in range(count):
        items = items ^ (np.uint32(1) << weak[:, rank].astype(np.uint32))
    return items, weak


def test_weak_bits_find_audio_of_which_no_item_is_near(whole: Matcher) -> None:
    """Four flipped bits in every item: few items with one bit flipped are in the index, by bits that are not hashed."""
    damaged_ones = [flip_first_bits(music(seed)[50:110], 4, seed) for seed in range(RECORDINGS)]
    without = [whole.match([items]).matches for items, _ in damaged_ones]
    known = [whole.match([items], weak_bits=[weak]).matches for items, weak in damaged_ones]
    assert sum(map(bool, without)) < 0.3 * RECORDINGS
    assert sum(map(bool, known)) > 0.9 * RECORDINGS
    assert all(found[0].recording_id == FIRST_ID + seed for seed, found in enumerate(known) if found)


def test_weak_bits_name_no_recording_for_unknown_music(whole: Matcher) -> None:
    for seed in range(1000, 1030):
        items, weak = flip_first_bits(music(seed)[:100], 0, seed)
        assert whole.match([items], weak_bits=[weak]).reason is Reason.NOT_FOUND


def test_weak_bits_of_other_items_are_refused(whole: Matcher) -> None:
    items, weak = flip_first_bits(music(1)[:100], 0, 1)
    for wrong in ([weak[:99]], [weak[:, :5]], [weak, weak]):
        with pytest.raises(ValueError, match="weak bits must be of all items"):
            whole.match([items], weak_bits=wrong)


def test_other_pace_has_a_tighter_gate_and_is_part_of_the_match(whole: Matcher) -> None:
    (match,) = whole.match([music(4)[50:170]], pace=Pace(1.02, 1.0)).matches
    assert (match.recording_id, match.speed, match.pitch, match.confidence) == (FIRST_ID + 4, 1.02, 1.0, 1.0)
    query = damaged(music(4)[50:170], 0.06, 1)
    assert first(whole, query)[1] > whole.match([query], pace=Pace(1.02, 1.02)).matches[0].confidence


def test_unknown_music_is_not_found(whole: Matcher) -> None:
    assert [whole.match([music(seed)[:223]]).reason for seed in range(1000, 1030)] == [Reason.NOT_FOUND] * 30


def test_a_query_that_reaches_beyond_the_recording_is_compared_where_they_overlap(whole: Matcher) -> None:
    query = np.concatenate([music(2000, 60), music(3)[:150]])
    (match,) = whole.match([query]).matches
    assert (match.recording_id, match.overlap_items, match.confidence) == (FIRST_ID + 3, 150, 1.0)
    assert match.offset_seconds == pytest.approx(-60 / ITEMS_PER_SECOND)


def test_overlap_of_too_few_items_is_not_a_match(whole: Matcher) -> None:
    query = np.concatenate([music(2000, 100), music(3)[: SURE_ITEMS - 5]])
    assert whole.match([query]).reason is Reason.NOT_FOUND


@pytest.mark.parametrize("length", [FEWEST_ITEMS, 12, 18, 30, SURE_ITEMS - 1])
def test_most_short_pieces_are_found_at_their_place_and_none_elsewhere(whole: Matcher, length: int) -> None:
    answers = [(seed, whole.match([music(seed)[start : start + length]])) for seed in range(RECORDINGS) for start in (40, 233)]
    found = [(seed, match) for seed, answer in answers for match in answer.matches]
    assert all(match.recording_id == FIRST_ID + seed for seed, match in found)
    # One item in four is posted: a piece of six items may have none, and is then too short to decide.
    assert len(found) >= (0.5 if length < 10 else 0.9) * len(answers)
    assert {answer.reason for _, answer in answers if not answer.matches} <= {Reason.TOO_SHORT}


def test_gate_of_short_pieces_is_tighter(whole: Matcher) -> None:
    """The same share of differing bits is a match in ten seconds and decides nothing in five."""
    shares = [
        np.mean([bool(whole.match([damaged(music(seed)[50 : 50 + length], 0.17, seed)]).matches) for seed in range(40)])
        for length in (12, 75)
    ]
    assert shares[1] > shares[0] + 0.3


def test_unknown_short_pieces_are_undecided(whole: Matcher) -> None:
    assert {whole.match([music(seed)[:length]]).reason for seed in range(1000, 1060) for length in (6, 18, 39)} == {Reason.TOO_SHORT}


def test_length_of_the_file_does_not_widen_the_gate_of_a_short_piece(whole: Matcher) -> None:
    queries = [damaged(music(seed)[:20], 0.26, seed) for seed in range(RECORDINGS)]
    assert not any(whole.match([query], duration_seconds=200).matches for query in queries)


def test_short_piece_over_the_edge_of_a_recording_is_undecided(whole: Matcher) -> None:
    assert whole.match([np.concatenate([music(2000, 6), music(3)[:20]])]).reason is Reason.TOO_SHORT


def test_best_phase_gives_the_offset_of_the_query(whole: Matcher) -> None:
    items = music(5)
    phases = [damaged(items[101:221], 0.08, 1), damaged(items[101:221], 0.06, 2), items[101:221], damaged(items[101:221], 0.06, 3)]
    (match,) = whole.match(phases).matches
    assert match.bit_error_rate == 0.0
    assert match.offset_seconds == pytest.approx((101 * HOP_SAMPLES - 682) / SAMPLE_RATE)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (np.zeros(0, np.uint32), Reason.TOO_SHORT),
        (music(1)[: FEWEST_ITEMS - 1], Reason.TOO_SHORT),
        (np.full(223, SILENCE_ITEM, np.uint32), Reason.SILENCE),
        (np.concatenate([np.full(90, SILENCE_ITEM, np.uint32), music(1)[:133]]), Reason.SILENCE),
        (np.full(223, 0x1234_5678, np.uint32), Reason.LOW_DIVERSITY),
        (np.tile(music(1)[:20], 12), Reason.LOW_DIVERSITY),
    ],
)
def test_unusable_audio_is_answered_with_the_reason(whole: Matcher, items: NDArray[np.uint32], reason: Reason) -> None:
    answer = whole.match([items])
    assert (answer.matches, answer.reason) == ((), reason)


def test_without_phases_or_with_an_empty_one_the_query_is_too_short(whole: Matcher) -> None:
    assert whole.match([]).reason is Reason.TOO_SHORT
    assert whole.match([music(1)[:100], np.zeros(0, np.uint32)]).reason is Reason.TOO_SHORT


def test_near_ties_are_all_returned_best_first(tmp_path: Path) -> None:
    master = music(1)
    versions = [damaged(master, 0.05, 1), damaged(master, 0.003, 2), master, damaged(master, 0.006, 3)]
    build_index([FingerprintBatch.of([4, 3, 9, 2], versions)], tmp_path / "index")
    answer = Matcher(Index.open(tmp_path / "index")).match([master[40:263]])
    assert [match.recording_id for match in answer.matches] == [9, 3, 2]
    assert [match.recording_id for match in Matcher(Index.open(tmp_path / "index")).match([master[40:263]], limit=2).matches] == [9, 3]


def test_equally_good_recordings_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    build_index([FingerprintBatch.of([8, 5, 6], [music(1)] * 3)], tmp_path / "index")
    assert [match.recording_id for match in Matcher(Index.open(tmp_path / "index")).match([music(1)[:223]]).matches] == [5, 6, 8]


def test_duration_prefers_recordings_of_that_length(tmp_path: Path) -> None:
    build_index([FingerprintBatch.of([1, 2], [music(1)] * 2, [300.0, 200.0])], tmp_path / "index")
    found = Matcher(Index.open(tmp_path / "index"))
    query = damaged(music(1)[:223], 0.05, 1)
    assert first(found, query)[0] == 1
    assert first(found, query, duration_seconds=203)[0] == 2
    assert first(found, query, duration_seconds=203)[1] > first(found, query)[1]
    # In the middle of the recording the length of the file is no evidence, so nothing is excluded.
    assert first(found, damaged(music(1)[100:323], 0.05, 1), duration_seconds=203)[0] == 1
    assert first(found, query, duration_seconds=20)[0] == 1


def test_base_and_delta_answer_as_one_index_built_whole(whole: Matcher, tmp_path: Path) -> None:
    """The delta replaces three recordings, removes one, adds the last ten, and two were merged."""
    ids = list(range(FIRST_ID, FIRST_ID + RECORDINGS))
    fingerprints = [music(seed) for seed in range(RECORDINGS)]
    old = [music(9000 + number) if number < 3 else fingerprints[number] for number in range(51)]
    write_segment([FingerprintBatch.of([*ids[:50], 7], old)], tmp_path / "index" / BASE)
    write_segment([FingerprintBatch.of([*ids[:3], *ids[50:]], [*fingerprints[:3], *fingerprints[50:]])], tmp_path / "index" / "delta-0001")
    column = np.load(tmp_path / "index" / BASE / "ids.npy")
    column[np.isin(column, [*ids[:3], 7])] = VOID
    column[column == ids[20]] = ids[21]
    np.save(tmp_path / "index" / BASE / "ids.npy", column)
    write_index_file(tmp_path / "index", [BASE, "delta-0001"])
    parts = Matcher(Index.open(tmp_path / "index"))
    for number, items in enumerate(fingerprints):
        query = [damaged(items[30:253], 0.08, number)]
        answer, expected = parts.match(query).matches, whole.match(query).matches
        merged = [match.recording_id if match.recording_id != ids[20] else ids[21] for match in expected]
        assert [match.recording_id for match in answer] == merged
        assert [match.bit_error_rate for match in answer] == [match.bit_error_rate for match in expected]
    assert all(parts.match([items[30:253]]).reason is Reason.NOT_FOUND for items in old[:3])


def test_a_query_of_hours_is_answered_and_more_phases_than_there_are_are_refused(whole: Matcher) -> None:
    hours = np.concatenate([music(3), music(7000, 70_000)])
    (match,) = whole.match([hours]).matches
    assert (match.recording_id, match.overlap_items) == (FIRST_ID + 3, ITEMS)
    with pytest.raises(ValueError, match="there are 4 phases"):
        whole.match([music(3)] * 5)


def test_an_index_without_fingerprints_finds_nothing(tmp_path: Path) -> None:
    build_index([], tmp_path / "index")
    assert Matcher(Index.open(tmp_path / "index")).match([music(1)]).reason is Reason.NOT_FOUND
