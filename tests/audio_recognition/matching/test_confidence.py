from __future__ import annotations

import pytest

from audio_recognition.matching.confidence import ACCEPTED, WHOLE_FILE_GATE, compute_confidence, compute_distance, find_gate


def test_no_difference_is_sure_and_the_gate_is_what_is_just_accepted() -> None:
    assert compute_confidence(0.0, 0.3) == 1.0
    assert compute_confidence(0.3, 0.3) == pytest.approx(ACCEPTED)
    assert compute_confidence(0.15, 0.3) == pytest.approx(0.75)
    assert compute_confidence(0.9, 0.3) == 0.0


def test_the_gate_widens_with_the_items_and_ends_at_whole_files() -> None:
    gates = [find_gate(items) for items in (40, 59, 100, 223, 500, 900, 5000)]
    assert gates == sorted(gates)
    assert gates[0] < gates[-1] == WHOLE_FILE_GATE


def test_lively_music_is_measured_by_its_bit_errors_and_drones_more_strictly() -> None:
    assert compute_distance(0.1, 0.5) == pytest.approx(0.1)
    assert compute_distance(0.1, 0.2) == pytest.approx(0.25)
    assert compute_distance(0.1, 0.6) == pytest.approx(0.1)
    assert compute_distance(0.0, 0.0) == 0.0
