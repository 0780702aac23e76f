from __future__ import annotations

import itertools

import pytest

from audio_recognition.matching import Match, Reason
from audio_recognition.timeline import Entry, Slice, list_entries


def heard(start: float, recording: int | None, anchor: float = 0.0, confidence: float = 0.9) -> Slice:
    """Return a slice of 10 s that names a recording which would begin at `anchor`."""
    if recording is None:
        return Slice(start, start + 10, reason=Reason.NOT_FOUND)
    return Slice(start, start + 10, (Match(recording, confidence, 0.05, start - anchor, 59),))


def shown(entries: list[Entry]) -> list[tuple[int | None, float, float]]:
    return [(entry.match and entry.match.recording_id, entry.start_seconds, entry.end_seconds) for entry in entries]


def test_slices_of_one_anchor_are_one_track_that_begins_at_its_anchor() -> None:
    slices = [heard(0, None), heard(10, 7, 6), heard(20, 7, 6.4), heard(30, 7, 6), heard(40, 9, 38.5), heard(50, 9, 38.5)]
    assert shown(list_entries(slices)) == [(None, 0, 6), (7, 6, 38.5), (9, 38.5, 60)]


def test_talk_over_a_track_does_not_split_it() -> None:
    slices = [heard(0, 7), heard(10, None), heard(20, None), heard(30, 7), heard(40, None)]
    assert shown(list_entries(slices)) == [(7, 0, 40), (None, 40, 50)]


def test_a_track_that_is_played_twice_is_listed_twice() -> None:
    slices = [heard(0, 7, 0), heard(10, 7, 0), heard(20, 7, 20), heard(30, 7, 20)]
    assert shown(list_entries(slices)) == [(7, 0, 20), (7, 20, 40)]


def test_a_track_cut_in_the_middle_begins_with_its_first_slice() -> None:
    slices = [heard(0, 7), heard(10, 9, -60), heard(20, 9, -60)]
    assert shown(list_entries(slices)) == [(7, 0, 10), (9, 10, 30)]


@pytest.mark.parametrize(("confidence", "tracks"), [(0.55, 0), (0.7, 1)])
def test_one_unsure_slice_is_no_track(confidence: float, tracks: int) -> None:
    entries = list_entries([heard(0, None), heard(10, 7, 10, confidence), heard(20, None)])
    assert sum(entry.match is not None for entry in entries) == tracks
    assert (entries[0].start_seconds, entries[-1].end_seconds) == (0, 30)


def test_near_ties_follow_the_recording_that_was_named_first() -> None:
    tie = (Match(9, 0.92, 0.04, 10.0, 59), Match(7, 0.92, 0.04, 10.0, 59))
    assert shown(list_entries([heard(0, 7), Slice(10, 20, tie), heard(20, 7)])) == [(7, 0, 30)]


def test_a_fade_keeps_both_tracks_apart_and_without_overlap() -> None:
    slices = [heard(0, 7), heard(10, 7), heard(20, 9, 18), heard(30, 7, 0), heard(40, 9, 18), heard(50, 9, 18)]
    entries = list_entries(slices)
    assert [entry.match and entry.match.recording_id for entry in entries] == [7, 9]
    assert all(one.end_seconds <= other.start_seconds for one, other in itertools.pairwise(entries))


def test_nothing_gives_no_entries_and_silence_one_gap() -> None:
    assert list_entries([]) == []
    assert shown(list_entries([heard(0, None), heard(10, None)])) == [(None, 0, 20)]
