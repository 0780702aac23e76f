"""The mapping from likeness to score. A best answer with score x is the recording asked for in about x of 100 cases.

KNOTS come from answers to the nine classes of simulated queries, equally many of each class, over several worlds (table in
docs/design/search.md). The function only stretches and keeps the order. The likeness itself comes from reranker.py.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

KNOTS = ((0.78, 0.20), (0.80, 0.70), (0.82, 0.90), (0.86, 0.97), (0.90, 0.987), (0.95, 0.995), (1.0, 1.0))
"""(likeness, score), both rising, with straight lines between."""
POSSIBLE_KNOTS = ((0.6, 0.6), (0.773, 0.771), (0.92, 0.94), (0.94, 0.952), (0.98, 0.977), (1.0, 0.999))
"""The same for `possible` answers: `python -m benchmarks.search_calibration` trains them. The likeness comes from line_comparison.py."""
_BELOW = 0.999
DECIMALS = 6
"""Scores are rounded so that a cursor finds its place on every machine."""
_LIKENESSES = [likeness for likeness, _ in KNOTS]


def calibrate(likeness: float) -> float:
    """Return the score of a likeness between the first knot and 1."""
    # A likeness of 1 is after the last knot. The clamp takes the last line for it.
    place = min(max(1, bisect_right(_LIKENESSES, likeness)), len(KNOTS) - 1)
    (low, low_score), (high, high_score) = KNOTS[place - 1], KNOTS[place]
    return round(low_score + (likeness - low) / (high - low) * (high_score - low_score), DECIMALS)


def score_possible(likeness: float) -> float:
    """Return the score of a `possible` answer of this likeness."""
    return round(_interpolate(POSSIBLE_KNOTS, likeness), DECIMALS)


def cut_possible(score: float, limit: float) -> float:
    """Return the score of a `possible` answer below `limit`, the least score of the other answers."""
    return round(min(score, _BELOW * limit), DECIMALS)


def _interpolate(knots: tuple[tuple[float, float], ...], likeness: float) -> float:
    likeness = min(max(likeness, knots[0][0]), knots[-1][0])
    place = min(max(1, bisect_right(knots, likeness, key=itemgetter(0))), len(knots) - 1)
    (low, low_score), (high, high_score) = knots[place - 1], knots[place]
    return low_score + (likeness - low) / (high - low) * (high_score - low_score)
