from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.chromaprint import (
    FIRST_ITEM_SECONDS,
    HOP_SAMPLES,
    ITEMS_PER_SECOND,
    PHASES,
    SAMPLE_RATE,
    SILENCE_ITEM,
    WEAK_BITS,
    Incremental,
    count_items,
    fingerprint,
    fingerprint_phases,
    fingerprint_phases_softly,
)
from audio_recognition.chromaprint.classifiers import _Classifier
from tests.audio_recognition.audio import melody, noise
from tests.audio_recognition.chromaprint.reference import libchromaprint
from tests.audio_recognition.chromaprint.sounds import SOUNDS

RECORDED = {
    "silence": (19, 627964279, "2d98753475b8ed9d"),
    "constant": (19, 627964279, "2d98753475b8ed9d"),
    "noise": (27, 3716019541, "106690de6c79f77f"),
    "faint": (27, 627964279, "fde608e296d65c5f"),
    "tone": (19, 558758263, "6a36989ffebce990"),
    "tone on a bin": (19, 694810999, "9316884099c50f6b"),
    "clipped": (19, 558496119, "59e5e9c61c4b9c5b"),
    "sweep": (140, 3383359862, "9259be26169dd919"),
    "gated": (140, 558758263, "786f51b2e6535454"),
    "music": (221, 1192995720, "3fabc5fa9754c787"),
    "odd length": (15, 3716011519, "f0b5f889005af665"),
}
"""Answers of libchromaprint 1.5.1 for `SOUNDS`: items, the last one, SHA-256 of all (little-endian), cut to 16 digits."""
FIRST_ITEM_SAMPLES = 30_031


@pytest.mark.parametrize("name", SOUNDS)
def test_items_equal_those_of_libchromaprint(name: str) -> None:
    items = fingerprint(SOUNDS[name])
    assert (len(items), int(items[-1]), hashlib.sha256(items.astype("<u4").tobytes()).hexdigest()[:16]) == RECORDED[name]


@pytest.mark.parametrize("name", SOUNDS)
@pytest.mark.parametrize("phase", PHASES)
def test_no_bit_differs_from_libchromaprint_at_any_phase(name: str, phase: int) -> None:
    expected = libchromaprint().fingerprint(SOUNDS[name][phase:])
    assert fingerprint(SOUNDS[name], phase=phase).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "samples", [0, 1, 4095, 4096, 4097, FIRST_ITEM_SAMPLES - 1, FIRST_ITEM_SAMPLES, FIRST_ITEM_SAMPLES + HOP_SAMPLES - 1]
)
def test_very_short_clips_have_the_items_of_libchromaprint(samples: int) -> None:
    sound = noise(samples, seed=3)
    assert fingerprint(sound).tolist() == libchromaprint().fingerprint(sound).tolist()


@pytest.mark.parametrize(
    ("samples", "phase", "items"),
    [
        (0, 0, 0),
        (FIRST_ITEM_SAMPLES - 1, 0, 0),
        (FIRST_ITEM_SAMPLES, 0, 1),
        (FIRST_ITEM_SAMPLES, 1, 0),
        (FIRST_ITEM_SAMPLES + HOP_SAMPLES, 0, 2),
        (30 * SAMPLE_RATE, 0, 221),
        (30 * SAMPLE_RATE, 1024, 220),
    ],
)
def test_item_count_follows_from_the_number_of_samples(samples: int, phase: int, items: int) -> None:
    assert count_items(samples, phase=phase) == items
    assert len(fingerprint(np.zeros(samples, np.int16), phase=phase)) == items


def test_items_have_the_declared_rate() -> None:
    assert pytest.approx(FIRST_ITEM_SAMPLES / SAMPLE_RATE) == FIRST_ITEM_SECONDS
    assert count_items(FIRST_ITEM_SAMPLES + 1000 * HOP_SAMPLES) == pytest.approx(1 + ITEMS_PER_SECOND * (1000 * HOP_SAMPLES / SAMPLE_RATE))


def test_silence_has_one_item() -> None:
    assert set(fingerprint(np.zeros(10 * SAMPLE_RATE, np.int16)).tolist()) == {SILENCE_ITEM}


def test_each_phase_gives_one_fingerprint() -> None:
    sound = melody(6)
    assert [one.tolist() for one in fingerprint_phases(sound)] == [fingerprint(sound[phase:]).tolist() for phase in PHASES]


MUSIC = melody(12)
WHOLE = {phase: fingerprint(MUSIC, phase=phase) for phase in (*PHASES, 7)}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, len(MUSIC)), max_size=30), st.sampled_from(sorted(WHOLE)))
def test_stream_in_any_pieces_gives_the_items_of_the_whole(cuts: list[int], phase: int) -> None:
    growing = Incremental(phase)
    pieces = np.split(MUSIC, sorted(cuts))
    assert np.concatenate([growing.feed(piece) for piece in pieces]).tolist() == WHOLE[phase].tolist()


def test_stream_may_arrive_in_pieces_smaller_than_a_hop() -> None:
    growing = Incremental(phase=341)
    items = [growing.feed(MUSIC[start : start + 100]) for start in range(0, len(MUSIC), 100)]
    assert np.concatenate(items).tolist() == WHOLE[341].tolist()
    assert {len(new) for new in items} == {0, 1}


def test_stream_samples_are_not_retained() -> None:
    growing = Incremental()
    for _ in range(5):
        growing.feed(noise(20 * SAMPLE_RATE))
    held = [array.base if array.base is not None else array for array in (growing._samples, growing._chroma, growing._image)]
    assert sum(array.nbytes for array in held) < 50_000


@pytest.mark.parametrize("samples", [np.zeros(9, np.int32), np.zeros(9, np.float32), np.zeros((2, 9), np.int16), np.zeros(9, ">i2")])
def test_samples_of_another_type_are_refused(samples: np.ndarray) -> None:
    with pytest.raises(ValueError, match="int16"):
        fingerprint(samples)


def test_negative_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        Incremental(-1)


def test_classifier_of_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape 6"):
        _Classifier(6, 0, 1, 1, (0.0, 0.0, 0.0)).list_areas()


def test_weak_bits_are_one_of_each_classifier_and_flip_first_in_noise() -> None:
    samples = melody(60)
    noisy = (samples + noise(len(samples), loudest=900, seed=5)).astype(np.int16)
    for clean, damaged in zip(fingerprint_phases_softly(samples), fingerprint_phases_softly(noisy), strict=True):
        assert (np.sort(clean.weak_bits // 2, axis=1) == np.arange(WEAK_BITS)).all()
        flipped = (((clean.items ^ damaged.items)[:, None] >> clean.weak_bits.astype(np.uint32)) & 1).mean(axis=0)
        assert flipped[:4].mean() > 3 * flipped[8:].mean()


def test_soft_fingerprints_have_the_items_of_plain_ones() -> None:
    for samples in (melody(12), melody(1), np.zeros(5 * SAMPLE_RATE, np.int16)):
        assert [one.items.tolist() for one in fingerprint_phases_softly(samples)] == [one.tolist() for one in fingerprint_phases(samples)]
