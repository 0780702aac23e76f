"""Figures of a linkage by the dirt of the records, so that a class of failures shows by itself: for worlds whose truth names it.

A pair counts for each kind of dirt that either of its records has. Records whose information is destroyed (the simulator's rule) count for
precision and not for recall: nobody could decide them, but joining them wrongly is still a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.linkage.evaluation import count_cells, count_figures, count_rest_figures

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE = ["platform", "external_id"]
HALVES = {"with_codes": True, "without_codes": False}


def evaluate_dirt(member: pl.DataFrame, truth: pl.DataFrame, dirt: pl.DataFrame) -> dict[str, object]:
    """Return the figures of the halves of a world and of each kind of dirt.

    Args:
        member: platform, external_id, recording_id.
        truth: platform, external_id, true_recording_id.
        dirt: platform, external_id, has_codes, is_decidable, dirt (names).

    Returns:
        halves: `with_codes` and `without_codes`, each with precision (of all records), recall, f1, records, destroyed. A pair across the
        halves is wrong and counts in neither. kinds: by name, records, precision, recall, missed_pairs and false_pairs of the pairs that
        touch a record with this dirt; most missed and false pairs first; `clean` has the pairs of records without any.
    """
    both = member.select(*_SOURCE, "recording_id").join(truth.select(*_SOURCE, "true_recording_id"), on=_SOURCE).join(dirt, on=_SOURCE)
    return {
        "halves": {name: _evaluate_half(both.filter(pl.col("has_codes") == coded)) for name, coded in HALVES.items()},
        "kinds": _evaluate_kinds(both.filter("is_decidable")),
    }


def _evaluate_half(both: pl.DataFrame) -> dict[str, object]:
    decidable = both.filter("is_decidable")
    precision = float(count_figures(count_cells(both))["precision"])
    recall = float(count_figures(count_cells(decidable))["recall"])
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {
        "precision": precision,
        "recall": recall,
        "f1": round(f1, 7),
        "records": both.height,
        "destroyed": both.height - decidable.height,
    }


def _evaluate_kinds(both: pl.DataFrame) -> Mapping[str, object]:
    cells = count_cells(both)
    kinds = both["dirt"].explode().drop_nulls().unique().sort().to_list()
    found = {kind: _evaluate_kind(both, cells, pl.col("dirt").list.contains(kind)) for kind in kinds}
    unspoilt = both.filter(pl.col("dirt").list.len() == 0)
    found["clean"] = _name_pairs(unspoilt.height, count_figures(count_cells(unspoilt)))
    return dict(sorted(found.items(), key=lambda entry: (-entry[1]["missed_pairs"] - entry[1]["false_pairs"], entry[0])))


def _evaluate_kind(both: pl.DataFrame, cells: pl.DataFrame, is_touched: pl.Expr) -> dict[str, float]:
    others = both.filter(~is_touched)
    return _name_pairs(both.height - others.height, count_rest_figures(cells, count_cells(others)))


def _name_pairs(records: int, figures: Mapping[str, float]) -> dict[str, float]:
    return {
        "records": records,
        "precision": figures["precision"],
        "recall": figures["recall"],
        "missed_pairs": figures["true_pairs"] - figures["right_pairs"],
        "false_pairs": figures["linked_pairs"] - figures["right_pairs"],
    }
