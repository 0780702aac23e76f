from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_recognition.chromaprint import compressed, fingerprint
from tests.audio_recognition.chromaprint.reference import libchromaprint
from tests.audio_recognition.chromaprint.sounds import SOUNDS

ITEMS = [3336143568, 3325592096, 3341328928, 3307774496, 1428727328, 1462594100, 1445870356, 1446906132, 1450576080, 1456605379]
ITEMS += [1452409922, 1183854598]
TEXT = "AQAADFXkLIrCoEneBD9x_MPkLNHhUcrx5RiTD8k-IV-OkQoP4oBJFgADkAMIAQ"
"""Answer of libchromaprint 1.5.1 for `ITEMS`."""

uint32s = st.lists(st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2**31, 2**32 - 1])), max_size=60)


def test_text_of_libchromaprint_is_read_and_written() -> None:
    algorithm, items = compressed.decode(TEXT)
    assert (algorithm, items.tolist()) == (compressed.ALGORITHM_2, ITEMS)
    assert compressed.encode(np.array(ITEMS, np.uint32)) == TEXT


@pytest.mark.parametrize("name", SOUNDS)
def test_written_texts_equal_those_of_libchromaprint(name: str) -> None:
    items = fingerprint(SOUNDS[name])
    assert compressed.encode(items) == libchromaprint().compress(items)


@given(uint32s, st.integers(0, 255))
def test_written_fingerprint_is_read_back(items: list[int], algorithm: int) -> None:
    text = compressed.encode(np.array(items, np.uint32), algorithm=algorithm)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    found, read = compressed.decode(text)
    assert (found, read.dtype, read.tolist()) == (algorithm, np.uint32, items)


@given(st.lists(st.sampled_from(range(0, 2**24, 4097)), min_size=1, max_size=40))
def test_gaps_on_the_border_of_the_long_form_survive(numbers: list[int]) -> None:
    items = np.array([number << 6 | number >> 20 for number in numbers], np.uint32)
    assert compressed.decode(compressed.encode(items))[1].tolist() == items.tolist()


def test_base64_padding_is_optional() -> None:
    assert compressed.decode(TEXT + "=" * (-len(TEXT) % 4))[1].tolist() == ITEMS


def text_of(*data: int) -> str:
    return base64.urlsafe_b64encode(bytes(data)).decode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "header"),
        ("AQAA", "header"),
        ("A", "base64"),
        ("AQ!A", "base64"),
        ("AQAÄ", "base64"),
        (TEXT + "\n", "base64"),
        (TEXT[:40], "cut off"),
        (TEXT[:-2], "another number"),
        (TEXT + "AAAA", "another number"),
        ("AQAAAQ", "cut off"),
        (text_of(1, 255, 255, 255, 0), "cut off: 2 of 16777215"),
        (text_of(1, 0, 0, 1, 0b00111111, 0b11111111), "cut off"),
        # Gaps of 7 and 31 more, and 1: the 38th bit of an item.
        (text_of(1, 0, 0, 1, 0b00000111, 0b00011111), "sets bit 37"),
        # Six gaps of 6 and a closing 0: 36 bits.
        (text_of(1, 0, 0, 1, 0b10110110, 0b01101101, 0b00000011), "sets bit 35"),
    ],
)
def test_broken_text_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compressed.decode(text)


def test_claim_beyond_the_bound_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="claims 12 items: 11 are the most"):
        compressed.decode(TEXT, most_items=11)
    assert len(compressed.decode(TEXT, most_items=12)[1]) == 12


@given(st.binary(max_size=80), st.integers(0, 40))
def test_any_bytes_give_items_or_a_value_error(data: bytes, count: int) -> None:
    text = base64.urlsafe_b64encode(bytes([1, 0, 0, count]) + data).decode().rstrip("=")
    try:
        _, items = compressed.decode(text)
    except ValueError:
        return
    assert len(items) == count


def test_more_items_than_three_bytes_count_are_not_written() -> None:
    with pytest.raises(ValueError, match="16777215"):
        compressed.encode(np.broadcast_to(np.uint32(0), 2**24))
