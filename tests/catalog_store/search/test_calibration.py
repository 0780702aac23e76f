"""Scores of `possible` answers rise with each kind of evidence, and stay below the answers of other classes."""

from __future__ import annotations

import pytest

from catalog_store.search.calibration import LEAST_SCORE, RARE, Evidence, cut_possible, doubt, score_possible

FITTING = Evidence(artist=1.0, title=1.0, variant=1.0, covered=1.0, of_title=1.0, artist_covered=1.0, of_artist=1.0)


@pytest.mark.parametrize("field", [field for field in Evidence._fields if field != "chance"])
def test_score_falls_with_each_kind_of_evidence(field: str) -> None:
    scores = [score_possible(FITTING._replace(**{field: value}), 0.5) for value in (1.0, 0.9, 0.7)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


def test_score_falls_with_chance_from_rare_on() -> None:
    scores = [score_possible(FITTING._replace(chance=bits), 0.5) for bits in (RARE - 20, RARE, RARE + 4, RARE + 14)]
    assert scores[0] == scores[1] > scores[2] > scores[3]
    doubted = [doubt(0.75, bits) for bits in (RARE - 20, RARE, RARE + 4, RARE + 14)]
    assert doubted[0] == doubted[1] == 0.75 > doubted[2] > doubted[3]


def test_popular_recording_scores_higher() -> None:
    assert score_possible(FITTING, 0.9) > score_possible(FITTING, 0.1)


def test_answer_with_whole_names_is_returned_and_one_with_halves_is_not() -> None:
    halves = FITTING._replace(artist=0.9, title=0.6, covered=0.4, of_title=0.3, artist_covered=0.5)
    assert score_possible(FITTING, 0.0) > 0.9
    assert score_possible(halves, 1.0) < LEAST_SCORE


def test_possible_score_is_cut_below_other_classes() -> None:
    assert cut_possible(0.99, 0.7) < 0.7
    assert cut_possible(0.3, 0.7) == 0.3
