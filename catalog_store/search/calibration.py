"""The mapping from likeness to score. A best answer with score x is the recording asked for in about x of 100 cases.

KNOTS come from answers to the nine classes of simulated queries, equally many of each class, over several worlds (table in
docs/design/search.md). The function only stretches and keeps the order. The likeness itself comes from reranker.py.
"""

from __future__ import annotations

from bisect import bisect_right
from math import exp, log
from typing import NamedTuple

KNOTS = ((0.78, 0.20), (0.80, 0.70), (0.82, 0.90), (0.86, 0.97), (0.90, 0.987), (0.95, 0.995), (1.0, 1.0))
"""(likeness, score), both rising, with straight lines between."""


class Evidence(NamedTuple):
    """Fit of a document to the wide reading of a query (line_comparison.py).

    Values of artist, title and variant; the share of the title field that the title explains, and the share of the title that was asked
    for; the same shares of the artist; the logarithm of the number of documents with these words by chance (chance.py).
    """

    artist: float
    title: float
    variant: float
    covered: float
    of_title: float
    artist_covered: float
    of_artist: float
    chance: float = -64.0


POSSIBLE_WEIGHTS = (-7.853, 3.646, 3.824, 21.879, 5.597, 2.815, 2.184, 1.007, 0.912, -0.25)
"""Weights of `list_features` in the logarithm of the odds that a `possible` answer is right: `python -m benchmarks.search_calibration`."""
RARE = -10.0
"""Chance from which on an answer is doubted: one in a thousand of such queries would have it by chance."""
LEAST_SCORE = 0.54
"""`possible` answers below are not returned."""
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


def list_features(evidence: Evidence, popularity: float) -> tuple[float, ...]:
    """Return what the weights apply to."""
    return (
        1.0,
        log(evidence.artist),
        log(evidence.title),
        log(evidence.variant),
        evidence.covered,
        evidence.of_title,
        evidence.artist_covered,
        evidence.of_artist,
        popularity,
        max(0.0, evidence.chance - RARE),
    )


def score_possible(evidence: Evidence, popularity: float) -> float:
    """Return the score of a `possible` answer."""
    total = sum(weight * feature for weight, feature in zip(POSSIBLE_WEIGHTS, list_features(evidence, popularity), strict=True))
    return round(1.0 / (1.0 + exp(-total)), DECIMALS)


def doubt(score: float, chance: float) -> float:
    """Return the score of an answer whose words meet in so many documents by chance."""
    odds = log(score / (1.0 - score)) + POSSIBLE_WEIGHTS[-1] * max(0.0, chance - RARE)
    return round(1.0 / (1.0 + exp(-odds)), DECIMALS)


def cut_possible(score: float, limit: float) -> float:
    """Return the score of a `possible` answer below `limit`, the least score of the other answers."""
    return round(min(score, _BELOW * limit), DECIMALS)
