from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.uploads.audio_windows import iterate_window_starts
from audio_recognition.uploads.limits import WINDOW_SECONDS


@pytest.mark.parametrize(
    ("duration", "starts"),
    [
        (0.0, [0]),
        (4.0, [0]),
        (30.0, [0]),
        (35.0, [0, 5]),
        (240.0, [0, 120, 60, 180, 30, 90, 150, 210]),
        (250.0, [0, 120, 60, 180, 30, 90, 150, 210, 220]),
    ],
)
def test_beginning_middle_and_quarters_come_first(duration: float, starts: list[float]) -> None:
    assert list(iterate_window_starts(duration)) == starts


def test_without_a_duration_windows_follow_each_other() -> None:
    assert list(itertools.islice(iterate_window_starts(math.inf), 4)) == [0, 30, 60, 90]


def test_impossible_duration_is_ignored() -> None:
    assert list(itertools.islice(iterate_window_starts(9e15), 3)) == [0, 4.5e15, 2.25e15]


@given(st.floats(0.1, 40_000))
def test_windows_cover_everything_once(duration: float) -> None:
    starts = list(iterate_window_starts(duration))
    assert len(starts) == len(set(starts)) == math.ceil(duration / WINDOW_SECONDS)
    assert starts[0] == 0
    reached = 0.0
    for start in sorted(starts):
        assert start <= reached + 1e-6
        reached = start + WINDOW_SECONDS
    assert reached >= duration - 1e-6
    assert max(starts) <= max(0, duration - WINDOW_SECONDS)
