"""From likeness to score: a score of x on the best answer means that it is the recording asked for in about x of 100 cases.

KNOTS were read from answers to the nine classes of simulated queries, as many of each class, over several worlds (docs/design/search.md
has the table). The function only stretches, so it changes no order. What must not live here: how likeness is told (rerank.py).
"""

from __future__ import annotations

from bisect import bisect_right

KNOTS = ((0.78, 0.20), (0.80, 0.70), (0.82, 0.90), (0.86, 0.97), (0.90, 0.987), (0.95, 0.995), (1.0, 1.0))
"""(likeness, score), both rising; straight lines between."""
DECIMALS = 6
"""Scores are rounded so that a cursor finds its place on every machine."""
_LIKENESSES = [likeness for likeness, _ in KNOTS]


def calibrated(likeness: float) -> float:
    """Likeness, from the first knot to 1, -> score."""
    place = min(max(1, bisect_right(_LIKENESSES, likeness)), len(KNOTS) - 1)
    (low, low_score), (high, high_score) = KNOTS[place - 1], KNOTS[place]
    return round(low_score + (likeness - low) / (high - low) * (high_score - low_score), DECIMALS)
