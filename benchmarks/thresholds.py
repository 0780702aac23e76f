"""The best threshold for a scoring linker: clusters at many match weights, compared with the truth.

No user has the truth; a peer gets this advantage for free.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.linkage.clusters import find_components

COARSE, FINE = 30, 20
"""Weights tried over the whole range of scores, then between the neighbours of the best of them."""
LOWEST_SHARE = 0.5
"""Share of the pairs. A threshold that leaves fewer pairs loses too much to be the best, if the blocking rules are narrow."""


def find_best_weight(pairs: pl.DataFrame, truth: pl.Series, lowest_share: float = LOWEST_SHARE) -> tuple[float, float]:
    """Return the match weight whose clusters have the highest F1, and that F1.

    Args:
        pairs: a, b (positions in `truth`), weight.
        truth: the true recording of every record; null where it is not known.
        lowest_share: share of the pairs that the highest threshold tried leaves; wide blocking rules need a small one.
    """
    # Quantiles: each step leaves the same share of the pairs that the one before left.
    weights = np.unique(np.quantile(pairs["weight"].to_numpy(), 1 - np.geomspace(1, lowest_share, COARSE)))
    scores = [_compute_f1(pairs, truth, weight) for weight in weights]
    best = int(np.argmax(scores))
    low, high = weights[max(best - 1, 0)], weights[min(best + 1, len(weights) - 1)]
    # The search assumes one peak of F1, so only the neighbours of the best coarse weight are refined.
    between = pairs.filter(pl.col("weight").is_between(low, high))["weight"].round(3).unique().sort()
    finer = between.gather_every(max(1, len(between) // FINE)).to_numpy()
    tried = [(score, float(weight)) for score, weight in zip(scores, weights, strict=True)]
    score, weight = max(tried + [(_compute_f1(pairs, truth, weight), float(weight)) for weight in finer])
    return weight, score


def _compute_f1(pairs: pl.DataFrame, truth: pl.Series, weight: float) -> float:
    kept = pairs.filter(pl.col("weight") >= weight).select(atom_id_a="a", atom_id_b="b")
    records = pl.int_range(len(truth), dtype=pl.Int64, eager=True)
    found = find_components(records, kept).select("cluster_id").with_columns(true=truth).drop_nulls("true")
    cells = found.group_by("cluster_id", "true").len("n")
    right, linked, true = (
        _count_pairs(frame) for frame in (cells, *(cells.group_by(by).agg(pl.col("n").sum()) for by in ("cluster_id", "true")))
    )
    return 2 * right / (linked + true) if right else 0.0


def _count_pairs(counts: pl.DataFrame) -> int:
    n = counts["n"].cast(pl.Int64)
    return int((n * (n - 1) // 2).sum())
