from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.landmarks import HOP_SAMPLES, PeakFinder, are_ordered, find_peaks
from audio_recognition.landmarks.peaks import BIN_BITS
from tests.audio_recognition.audio import melody
from tests.audio_recognition.sound_damage import telephone

SOUND = melody(20, seed=3)
PEAKS = find_peaks(SOUND)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_pieces_of_any_size_give_the_peaks_of_the_whole(cuts: list[int]) -> None:
    finder = PeakFinder()
    found = [finder.feed(piece) for piece in np.split(SOUND, sorted(cuts))]
    assert np.array_equal(np.concatenate([*found, finder.finish()]), PEAKS)


def test_music_has_some_twenty_peaks_a_second_in_order() -> None:
    assert 8 < len(PEAKS) / 20 < 40
    assert are_ordered(PEAKS, len(SOUND))


@pytest.mark.parametrize("samples", [0, 1, 2047, 2048, 30_000])
def test_silence_and_next_to_nothing_have_no_peaks(samples: int) -> None:
    assert not len(find_peaks(np.zeros(samples, np.int16)))
    assert not len(find_peaks(np.ones(samples, np.int16)))


def shared(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.isin(one, other).mean())


def test_clip_has_the_peaks_of_its_place() -> None:
    start, frames = 100, 150
    clip = find_peaks(SOUND[start * HOP_SAMPLES : (start + frames) * HOP_SAMPLES])
    inside = clip[(clip >> BIN_BITS > 8) & (clip >> BIN_BITS < frames - 12)]
    assert shared(inside + np.uint32(start << BIN_BITS), PEAKS) > 0.95


def test_most_peaks_of_the_band_outlast_a_telephone() -> None:
    hertz = ((PEAKS & np.uint32((1 << BIN_BITS) - 1)) + 20) * 11025 / 2048
    in_band = PEAKS[(hertz > 400) & (hertz < 3_000)]
    assert shared(in_band, find_peaks(telephone(SOUND))) > 0.6


@pytest.mark.parametrize(("peaks", "is_allowed"), [([], True), ([5, 9], True), ([9, 5], False), ([5, 5], False), ([1 << 30], False)])
def test_peaks_out_of_order_or_beyond_the_audio_are_told_apart(peaks: list[int], is_allowed: bool) -> None:  # noqa: FBT001
    assert are_ordered(np.array(peaks, np.uint32), 11025) == is_allowed
