from __future__ import annotations

import numpy as np

from audio_recognition.chromaprint import SILENCE_ITEM
from audio_recognition.index.layout import (
    ADDRESS_BITS,
    HASH_BITS,
    HASHED_BITS,
    HASHED_MASK,
    SAMPLE_BITS,
    WORD_BITS,
    count_bucket_bits,
    count_ordinal_bits,
    hash_items,
    is_sampled,
)


def test_two_items_share_a_code_exactly_when_their_hashed_bits_are_equal() -> None:
    items = np.arange(1 << 17, dtype=np.uint32) * np.uint32(32_749)
    assert len(np.unique(hash_items(items))) == len(np.unique(items & HASHED_MASK))
    assert (hash_items(items) == hash_items(items ^ ~HASHED_MASK)).all()


def test_codes_stay_within_their_bits() -> None:
    assert hash_items(np.array([0xFFFF_FFFF, 0x8000_0000, 0xFFF0], dtype=np.uint32)).max() < 1 << HASH_BITS


def test_one_item_in_four_is_sampled_in_any_changed_copy() -> None:
    for bit in HASHED_BITS:
        near = (np.arange(20_000, dtype=np.uint32) << np.uint32(12)) ^ np.uint32(1 << bit)
        assert abs(is_sampled(hash_items(near)).mean() - 2.0**-SAMPLE_BITS) < 0.02


def test_silence_is_never_sampled() -> None:
    assert not is_sampled(hash_items(np.array([SILENCE_ITEM], dtype=np.uint32))).any()


def test_tags_and_ordinals_fit_in_a_word_at_any_size() -> None:
    for fingerprints in (0, 1, 2, 1000, 10**6, 9 * 10**7, 2**31):
        for items_each in (1, 40, 948, 65_536):
            bits = count_ordinal_bits(fingerprints)
            assert 0 <= fingerprints - 1 < 1 << bits or fingerprints == 0
            assert bits + ADDRESS_BITS - count_bucket_bits(fingerprints * items_each, bits) <= WORD_BITS
