from __future__ import annotations

import csv
from pathlib import Path

import pytest

from audio_recognition.matching.confidence import (
    ACCEPTED,
    WHOLE_FILE_GATE,
    compute_confidence,
    compute_distance,
    compute_landmark_confidence,
    estimate_landmark_probability,
    estimate_probability,
    find_gate,
)


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


def test_landmarks_need_more_votes_the_less_the_fingerprint_agrees() -> None:
    needed = [next(votes for votes in range(1, 40) if compute_landmark_confidence(votes, distance) >= ACCEPTED) for distance in DISTANCES]
    assert needed == [3, 3, 4, 5, 8, 10, 24]
    assert compute_landmark_confidence(3, 0.1) == ACCEPTED
    assert compute_landmark_confidence(1, 0.5) == 0.0
    assert 0.9 < compute_landmark_confidence(60, 0.4) < 1


DISTANCES = (0.1, 0.28, 0.32, 0.36, 0.40, 0.44, 0.5)


def test_probability_of_landmarks_rises_with_their_confidence() -> None:
    probabilities = [estimate_landmark_probability(step / 100) for step in range(50, 101)]
    assert probabilities == sorted(set(probabilities))
    assert 0.95 < probabilities[0] < 0.98
    assert probabilities[25] > 0.998


RELIABILITY = Path(__file__).with_name("reliability.csv")
"""Answers to clips of benchmarks/recognition_conditions.py whose tracks were not used to fit the probability."""


def test_probability_rises_with_the_confidence_from_the_gate_to_almost_one() -> None:
    probabilities = [estimate_probability(step / 100) for step in range(50, 101)]
    assert probabilities == sorted(set(probabilities))
    assert 0.9 < probabilities[0] < 0.95
    assert probabilities[25] > 0.998
    assert 0.9999 < probabilities[-1] < 1


def test_probability_agrees_with_the_share_of_right_answers() -> None:
    """The answers of a bin may be better than its lowest probability, and worse only by chance: three standard deviations."""
    with RELIABILITY.open(newline="") as file:
        rows = [(float(row["from"]), float(row["to"]), int(row["right"]), int(row["answers"])) for row in csv.DictReader(file)]
    assert [row[0] for row in rows[1:]] == [row[1] for row in rows[:-1]]
    assert sum(row[3] for row in rows) > 400
    for low, _, right, answers in rows:
        expected = estimate_probability(low)
        assert right >= expected * answers - 3 * (expected * (1 - expected) * answers) ** 0.5 - 1
