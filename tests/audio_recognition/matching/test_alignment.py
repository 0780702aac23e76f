from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index, Segment
from audio_recognition.index.layout import STORE_STRIDE
from audio_recognition.matching.alignment import compare, estimate_chance
from tests.audio_recognition.fingerprint_world import music

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTHS = (41, 60, 97)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Segment:
    folder = tmp_path_factory.mktemp("alignment") / "index"
    build_index([FingerprintBatch.of(range(3), [music(seed, length) for seed, length in enumerate(LENGTHS)])], folder)
    return Index.open(folder).segments[0]


def pairs(query: NDArray[np.uint32], ordinal: int, offset: int) -> list[tuple[int, int]]:
    """Return the items of the query and the stored items that they are on, one by one."""
    stored = music(ordinal, LENGTHS[ordinal])
    return [
        (int(stored[place]), int(query[place - offset]))
        for place in range(0, len(stored), STORE_STRIDE)
        if 0 <= place - offset < len(query)
    ]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 5), length=st.integers(1, 120), ordinal=st.integers(0, 2), offset=st.integers(-120, 100))
def test_rates_and_chance_count_only_overlapping_items(segment: Segment, seed: int, length: int, ordinal: int, offset: int) -> None:
    query = music(seed, length)
    both = pairs(query, ordinal, offset)
    rates, overlaps = compare(segment, query[None], np.array([0]), np.array([ordinal]), np.array([offset]))
    expected = sum((one ^ other).bit_count() for one, other in both) / (32 * len(both)) if both else 1.0
    assert rates[0] == pytest.approx(expected)
    assert abs(overlaps[0] - STORE_STRIDE * len(both)) < STORE_STRIDE
    if both:
        shares = [[np.mean([(pair[side] >> bit) & 1 for pair in both]) for side in (0, 1)] for bit in range(32)]
        assert estimate_chance(segment, query, ordinal, offset) == pytest.approx(np.mean([a * (1 - b) + b * (1 - a) for a, b in shares]))


def test_places_are_compared_together_each_with_its_own_phase(segment: Segment) -> None:
    query = np.stack([music(seed, length)[:41] for seed, length in enumerate(LENGTHS)])
    rates, overlaps = compare(segment, query, np.array([2, 1, 0, 0]), np.array([2, 1, 0, 1]), np.array([0, 0, 0, 0]))
    assert rates[:3].tolist() == [0.0, 0.0, 0.0]
    assert rates[3] > 0.3
    assert overlaps.tolist() == [41, 41, 41, 41]
