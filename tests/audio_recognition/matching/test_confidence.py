from __future__ import annotations

import pytest

from audio_recognition.matching.confidence import ACCEPTED, WHOLE_FILE_GATE, compute_confidence, compute_distance, find_gate


def test_confidence_is_one_without_a_difference_and_one_half_at_the_gate() -> None:
    assert compute_confidence(0.0, 0.3) == 1.0
    assert compute_confidence(0.3, 0.3) == pytest.approx(ACCEPTED)
    assert compute_confidence(0.15, 0.3) == pytest.approx(0.75)
    assert compute_confidence(0.9, 0.3) == 0.0


def test_gate_widens_with_the_items_up_to_that_of_whole_files() -> None:
    gates = [find_gate(items) for items in (1, 6, 12, 18, 30, 40, 59, 100, 223, 500, 900, 5000)]
    assert gates == sorted(gates)
    assert gates[0] < gates[-1] == WHOLE_FILE_GATE


def test_distance_of_lively_music_is_its_bit_error_rate_and_of_drones_more() -> None:
    assert compute_distance(0.1, 0.5) == pytest.approx(0.1)
    assert compute_distance(0.1, 0.2) == pytest.approx(0.25)
    assert compute_distance(0.1, 0.6) == pytest.approx(0.1)
    assert compute_distance(0.0, 0.0) == 0.0
