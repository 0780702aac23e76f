"""The mapping from likeness to score. A best answer with score x is the recording asked for in about x of 100 cases.

KNOTS come from answers to the nine classes of simulated queries, equally many of each class, over several worlds (table in
docs/design/search.md). The function only stretches and keeps the order. The likeness itself comes from reranker.py.
"""

from __future__ import annotations

from bisect import bisect_right

KNOTS = ((0.78, 0.20), (0.80, 0.70), (0.82, 0.90), (0.86, 0.97), (0.90, 0.987), (0.95, 0.995), (1.0, 1.0))
"""(likeness, score), both rising, with straight lines between."""
DECIMALS = 6
"""Scores are rounded so that a cursor finds its place on every machine."""
_LIKENESSES = [likeness for likeness, _ in KNOTS]


def calibrate(likeness: float) -> float:
    """Return the score of a likeness between the first knot and 1."""
    # A likeness of 1 lies after the last knot. The clamp takes the last line for it.
    place = min(max(1, bisect_right(_LIKENESSES, likeness)), len(KNOTS) - 1)
    (low, low_score), (high, high_score) = KNOTS[place - 1], KNOTS[place]
    return round(low_score + (likeness - low) / (high - low) * (high_score - low_score), DECIMALS)
