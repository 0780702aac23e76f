"""How well a linkage agrees with a known truth, pair by pair: precision, recall, mixed clusters, per platform.

A pair is two source records of one recording. Counts come from the contingency table (recording x true recording), never from listing
pairs. Only records that both sides know are compared; how many were left out is part of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.files import parts, scan_table

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = ["platform", "external_id"]


def evaluate(member: pl.DataFrame, truth: pl.DataFrame) -> dict[str, object]:
    """Figures of a linkage.

    Args:
        member: platform, external_id, recording_id.
        truth: platform, external_id, true_recording_id.

    Returns:
        precision, recall, f1 (1.0 when there is no pair to find), true_pairs, linked_pairs, right_pairs, records, recordings,
        true_recordings, mixed_clusters (recordings with records of several true ones), mixed_per_million (of records),
        split_recordings (true ones over several recordings), truth_missing_in_member, member_missing_in_truth, and per platform
        `platforms[key]` with records, recall and precision of the pairs that have a record there.
    """
    both = member.select(*_SOURCE, "recording_id").join(truth.select(*_SOURCE, "true_recording_id"), on=_SOURCE)
    cells = both.group_by("recording_id", "true_recording_id").agg(n=pl.len().cast(pl.Int64))
    right, linked, true = (_pairs(frame) for frame in (cells, _sums(cells, "recording_id"), _sums(cells, "true_recording_id")))
    records = both.height
    mixed = int((cells.group_by("recording_id").len()["len"] > 1).sum())
    return {
        **_rates(right, linked, true),
        "true_pairs": true,
        "linked_pairs": linked,
        "right_pairs": right,
        "records": records,
        "recordings": cells["recording_id"].n_unique(),
        "true_recordings": cells["true_recording_id"].n_unique(),
        "mixed_clusters": mixed,
        "mixed_per_million": round(mixed / records * 1e6, 1) if records else 0.0,
        "split_recordings": int((cells.group_by("true_recording_id").len()["len"] > 1).sum()),
        "truth_missing_in_member": truth.height - records,
        "member_missing_in_truth": member.height - records,
        "platforms": {platform: _platform(both, cells, platform) for platform in sorted(both["platform"].unique())},
    }


def evaluate_build(catalog: Path, truth: Path) -> dict[str, object]:
    """`evaluate` of the last linkage below a catalog root against a simulated world (the folder that holds `truth/recording`)."""
    member = scan_table(TABLES["recording_member"], catalog / "work" / "linkage" / "recording_member").collect()
    known = pl.read_parquet(parts(truth / "truth" / "recording"))
    return evaluate(member, known)


def _sums(cells: pl.DataFrame, by: str) -> pl.DataFrame:
    return cells.group_by(by).agg(pl.col("n").sum())


def _pairs(counts: pl.DataFrame) -> int:
    n = counts["n"]
    return int((n * (n - 1) // 2).sum())


def _rates(right: int, linked: int, true: int) -> dict[str, object]:
    precision = right / linked if linked else 1.0
    recall = right / true if true else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": round(precision, 7), "recall": round(recall, 7), "f1": round(f1, 7)}


def _platform(both: pl.DataFrame, cells: pl.DataFrame, platform: str) -> dict[str, object]:
    """Pairs with at least one record on `platform`: all pairs less those among the other platforms."""
    others = both.filter(pl.col("platform") != platform)
    rest = others.group_by("recording_id", "true_recording_id").agg(n=pl.len().cast(pl.Int64))
    right = _pairs(cells) - _pairs(rest)
    linked = _pairs(_sums(cells, "recording_id")) - _pairs(_sums(rest, "recording_id"))
    true = _pairs(_sums(cells, "true_recording_id")) - _pairs(_sums(rest, "true_recording_id"))
    return {"records": both.height - others.height, **_rates(right, linked, true)}
