"""Tests of the comparison of two whole fingerprints: encodings and shifts of one recording, unrelated audio, uniform audio."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.chromaprint import SILENCE_ITEM, fingerprint
from audio_recognition.decoding import decode
from audio_recognition.matching import compare_pair
from audio_recognition.matching.pair_comparison import LEAST_OVERLAP, MOST_SHIFT
from tests.audio_recognition.audio import encoded, melody
from tests.audio_recognition.fingerprint_world import damaged, music


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 20), share=st.floats(0, 0.2), shift=st.integers(-MOST_SHIFT, MOST_SHIFT), length=st.integers(260, 400))
def test_distance_of_a_shifted_and_damaged_copy_is_its_damage(seed: int, share: float, shift: int, length: int) -> None:
    whole = music(seed, 600)
    one, other = whole[100:500], damaged(whole[100 + shift :][:length], share, seed)
    compared = compare_pair(one, other)
    assert compared is not None
    assert compared.distance == pytest.approx(share, abs=0.04)
    back = compare_pair(other, one)
    assert back is not None
    assert (back.distance, back.overlap) == pytest.approx((compared.distance, compared.overlap), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds=st.lists(st.integers(0, 10_000), min_size=2, max_size=2, unique=True))
def test_unrelated_items_are_far_apart(seeds: list[int]) -> None:
    compared = compare_pair(*(music(seed) for seed in seeds))
    assert compared is not None
    assert compared.distance > 0.4


@pytest.mark.parametrize(
    "nothing",
    [
        np.zeros(0, np.uint32),
        music(1, LEAST_OVERLAP - 1),
        np.full(400, SILENCE_ITEM, np.uint32),
        np.where(np.arange(400) < 200, np.uint32(SILENCE_ITEM), music(1)),
        np.full(400, 0x1234ABCD, np.uint32),
    ],
    ids=["nothing", "short", "silence", "half silence", "drone"],
)
def test_audio_that_resembles_too_much_proves_nothing(nothing: np.ndarray) -> None:  # type: ignore[type-arg]
    assert compare_pair(nothing, nothing) is None
    assert compare_pair(nothing, music(2)) is None
    assert compare_pair(music(2), nothing) is None


def test_overlap_of_the_least_length_is_compared() -> None:
    items = music(3, LEAST_OVERLAP)
    compared = compare_pair(items, items)
    assert compared is not None
    assert (compared.distance, compared.overlap) == (0.0, LEAST_OVERLAP)


def test_encodings_of_one_sound_are_near_and_another_sound_is_far() -> None:
    tunes = [melody(40, seed=seed) for seed in (1, 2)]
    wide = np.repeat(tunes[0], 4)
    files = [encoded(wide, "mp3", kbps=64), encoded(wide[44_100 // 3 :], "m4a")]
    heard = [fingerprint(np.concatenate(list(decode(io.BytesIO(file))))) for file in files]
    near, far = compare_pair(*heard), compare_pair(heard[0], fingerprint(tunes[1]))
    assert near is not None
    assert near.distance < 0.12
    assert far is not None
    assert far.distance > 0.4
