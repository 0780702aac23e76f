from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_store.lists.shuffle import SEED_BITS, Shuffle


@given(st.integers(0, 2**SEED_BITS - 1), st.integers(1, 12))
def test_every_number_has_one_place(seed: int, bits: int) -> None:
    shuffle = Shuffle(seed, bits)
    numbers = np.arange(shuffle.size, dtype=np.uint32)
    places = shuffle.find_places(numbers)
    assert sorted(places.tolist()) == numbers.tolist()
    assert shuffle.find_numbers(places).tolist() == numbers.tolist()


@given(st.integers(0, 2**SEED_BITS - 1), st.integers(30, 63), st.lists(st.integers(0, 2**30 - 1), max_size=20))
def test_large_numbers_are_read_back(seed: int, bits: int, numbers: list[int]) -> None:
    shuffle = Shuffle(seed, bits)
    places = shuffle.find_places(np.array(numbers, dtype=np.uint64))
    assert all(place < shuffle.size for place in places.tolist())
    assert shuffle.find_numbers(places).tolist() == numbers


@pytest.mark.parametrize("bits", [10, 17, 24])
def test_the_order_looks_random_and_differs_by_seed(bits: int) -> None:
    first = [Shuffle(seed, bits).find_numbers(np.arange(200, dtype=np.uint64)).astype(np.float64) for seed in range(40)]
    size = 1 << bits
    # Means of 8,000 numbers spread over 0..1 are within 0.0032 of a half, one standard deviation.
    assert abs(np.mean([numbers.mean() for numbers in first]) / size - 0.5) < 0.02
    steps = np.concatenate([np.abs(np.diff(numbers)) for numbers in first]) / size
    # Two random numbers are a third apart on average.
    assert abs(steps.mean() - 1 / 3) < 0.03
    assert len({tuple(numbers[:5]) for numbers in first}) == 40
