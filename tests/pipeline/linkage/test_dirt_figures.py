from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.linkage.dirt_figures import evaluate_dirt

ROWS = [
    # recording, true recording, has codes, is decidable, dirt
    (1, 1, True, True, []),
    (1, 1, True, True, ["capitals"]),
    (2, 1, True, True, ["capitals", "cut_name"]),
    (2, 2, True, True, []),
    (3, 3, False, True, []),
    (3, 3, False, True, []),
    (4, 3, False, False, ["placeholder_title"]),
    (3, 4, False, False, ["placeholder_title"]),
]


def evaluate_rows() -> dict[str, Any]:
    base = pl.DataFrame({"platform": "p", "external_id": [str(number) for number in range(len(ROWS))]})
    recording, true, coded, decidable, dirt = zip(*ROWS, strict=True)
    return evaluate_dirt(
        base.with_columns(recording_id=pl.Series(recording)),
        base.with_columns(true_recording_id=pl.Series(true)),
        base.with_columns(has_codes=pl.Series(coded), is_decidable=pl.Series(decidable), dirt=pl.Series(dirt, dtype=pl.List(pl.String))),
    )


def test_halves_are_judged_apart() -> None:
    halves = evaluate_rows()["halves"]
    assert (halves["with_codes"]["precision"], halves["with_codes"]["recall"]) == (0.5, 0.3333333)
    assert halves["with_codes"]["records"] == 4
    assert halves["with_codes"]["destroyed"] == 0


def test_destroyed_records_count_for_precision_and_not_for_recall() -> None:
    half = evaluate_rows()["halves"]["without_codes"]
    assert half["destroyed"] == 2
    # Two of three joined pairs take in a record that nobody could decide; its own recording need not be found.
    assert (half["precision"], half["recall"]) == (0.3333333, 1.0)


def test_pair_counts_for_the_dirt_of_either_record() -> None:
    kinds = evaluate_rows()["kinds"]
    assert kinds["capitals"] == {"records": 2, "precision": 0.5, "recall": 0.3333333, "missed_pairs": 2, "false_pairs": 1}
    assert kinds["cut_name"]["missed_pairs"] == 2
    assert kinds["clean"] == {"records": 4, "precision": 1.0, "recall": 1.0, "missed_pairs": 0, "false_pairs": 0}
    assert list(kinds) == ["capitals", "cut_name", "clean"]


def test_kinds_leave_out_destroyed_records() -> None:
    assert "placeholder_title" not in evaluate_rows()["kinds"]
