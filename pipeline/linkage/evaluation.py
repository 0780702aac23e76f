"""Evaluation of a linkage against a known truth, pair by pair: precision, recall, mixed clusters, per platform.

A pair is two source records of one recording. Counts come from the contingency table (recording x true recording); pairs are never listed.
Only records that both sides know are compared, and the number left out is part of the answer. Artists, releases and labels are measured
alike: their source rows are the platforms' own artists, releases, labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import FINGERPRINTS
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, scan_table

if TYPE_CHECKING:
    from pathlib import Path

ENTITY_KINDS = ("artist", "release", "label")
_SOURCE = ["platform", "external_id"]


def evaluate(member: pl.DataFrame, truth: pl.DataFrame) -> dict[str, object]:
    """Return the figures of a linkage.

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
    cells = count_cells(both, "recording")
    return {
        **count_figures(cells, "recording"),
        "records": both.height,
        "recordings": cells["recording_id"].n_unique(),
        "true_recordings": cells["true_recording_id"].n_unique(),
        "mixed_clusters": (mixed := _count_spread(cells, "recording_id")),
        "mixed_per_million": round(mixed / both.height * 1e6, 1) if both.height else 0.0,
        "split_recordings": _count_spread(cells, "true_recording_id"),
        "truth_missing_in_member": truth.height - both.height,
        "member_missing_in_truth": member.height - both.height,
        "platforms": {platform: _evaluate_platform(both, cells, platform) for platform in sorted(both["platform"].unique())},
    }


def evaluate_entities(source_rows: pl.DataFrame, truth: pl.DataFrame) -> dict[str, object]:
    """Return the figures of artists, releases or labels.

    Args:
        source_rows: platform, external_id, `<kind>_id` (rows of artist_source, release_source or label_source).
        truth: platform, external_id, `true_<kind>_id`.

    Returns:
        precision, recall, f1, true_pairs, linked_pairs, right_pairs, source_rows (compared), entities, true_entities, mixed_entities
        (with rows of several true ones), split_entities (true ones over several), truth_missing_in_sources (without a source row).
    """
    (kind,) = (name.removeprefix("true_").removesuffix("_id") for name in truth.columns if name.startswith("true_"))
    both = source_rows.select(*_SOURCE, f"{kind}_id").join(truth.select(*_SOURCE, f"true_{kind}_id"), on=_SOURCE)
    cells = count_cells(both, kind)
    return {
        **count_figures(cells, kind),
        "source_rows": both.height,
        "entities": cells[f"{kind}_id"].n_unique(),
        "true_entities": cells[f"true_{kind}_id"].n_unique(),
        "mixed_entities": _count_spread(cells, f"{kind}_id"),
        "split_entities": _count_spread(cells, f"true_{kind}_id"),
        "truth_missing_in_sources": truth.height - both.height,
    }


def evaluate_build(catalog: Path, truth: Path) -> dict[str, object]:
    """Return the figures of the last build below a catalog root against a simulated world (the folder that holds `truth`).

    These are the figures of `evaluate`, of `evaluate_entities` under `artists`, `releases` and `labels`, of `evaluate_works` under `works`,
    of `evaluate_fingerprints` under `fingerprints` if the world has fingerprints, and of `dirt_figures.evaluate_dirt` under `dirt` if its
    truth names the dirt.
    """
    member = scan_table(TABLES["recording_member"], catalog / "work" / "linkage" / "recording_member").collect()
    true_records = pl.read_parquet(list_parts(truth / "truth" / "recording"), glob=False)
    figures = evaluate(member, true_records)
    for kind in ENTITY_KINDS:
        rows = scan_table(TABLES[f"{kind}_source"], catalog / "work" / "catalog" / f"{kind}_source").collect()
        figures[f"{kind}s"] = evaluate_entities(rows, pl.read_parquet(list_parts(truth / "truth" / kind), glob=False))
    if (true_works := truth / "truth" / "work").is_dir():
        rows = scan_table(TABLES["work_recording"], catalog / "work" / "catalog" / "work_recording").collect()
        figures["works"] = evaluate_works(rows, member, true_records, pl.read_parquet(list_parts(true_works), glob=False))
    if (true_dirt := truth / "truth" / "dirt").is_dir():
        from pipeline.linkage.dirt_figures import evaluate_dirt  # noqa: PLC0415 - it counts with the functions of this module

        figures["dirt"] = evaluate_dirt(member, true_records, pl.read_parquet(list_parts(true_dirt), glob=False))
    if (true_fingerprints := truth / "truth" / "fingerprint").is_dir():
        table = TABLES["recording_fingerprint"]
        chosen = scan_table(table, catalog / "work" / "catalog" / table.name).filter(pl.col("source") == FINGERPRINTS).collect()
        figures["fingerprints"] = evaluate_fingerprints(
            chosen, member, true_records, pl.read_parquet(list_parts(true_fingerprints), glob=False)
        )
    return figures


def evaluate_fingerprints(
    chosen: pl.DataFrame, member: pl.DataFrame, truth: pl.DataFrame, true_fingerprints: pl.DataFrame
) -> dict[str, object]:
    """Return how many fingerprints stand for the right recording: the true one of most of its records.

    Args:
        chosen: recording_id, fingerprint_id (rows of recording_fingerprint that are not an operator's own).
        member: platform, external_id, recording_id.
        truth: platform, external_id, true_recording_id.
        true_fingerprints: fingerprint_id, true_recording_id.

    Returns:
        fingerprints (chosen), right, precision; recordings (true ones with a fingerprint), found (with a right one), recall.
    """
    true_ids = _choose_true_ids(member, truth)
    judged = chosen.select("recording_id", "fingerprint_id").join(true_fingerprints, on="fingerprint_id")
    right = judged.join(true_ids, on=["recording_id", "true_recording_id"], how="semi")
    true, found = true_fingerprints["true_recording_id"].n_unique(), right["true_recording_id"].n_unique()
    return {
        "fingerprints": judged.height,
        "right": right.height,
        "precision": round(right.height / judged.height, 7) if judged.height else 1.0,
        "recordings": true,
        "found": found,
        "recall": round(found / true, 7) if true else 1.0,
    }


def evaluate_works(work_recording: pl.DataFrame, member: pl.DataFrame, truth: pl.DataFrame, true_works: pl.DataFrame) -> dict[str, object]:
    """Return how many ISWCs of recordings are right: a true one of the true recording of most of its records.

    Args:
        work_recording: iswc, recording_id.
        member: platform, external_id, recording_id.
        truth: platform, external_id, true_recording_id.
        true_works: true_recording_id, iswc.

    Returns:
        pairs (published), right, precision; true_pairs (of true recordings that the catalog holds), found, recall. The dumps do not tell
        all works, so recall ends below 1.
    """
    true_ids = _choose_true_ids(member, truth)
    judged = work_recording.select("iswc", "recording_id").join(true_ids, on="recording_id", how="left")
    right = judged.join(true_works, on=["true_recording_id", "iswc"], how="semi")
    true = true_works.join(true_ids, on="true_recording_id", how="semi").unique()
    found = right.select("true_recording_id", "iswc").unique().height
    return {
        "pairs": judged.height,
        "right": right.height,
        "precision": round(right.height / judged.height, 7) if judged.height else 1.0,
        "true_pairs": true.height,
        "found": found,
        "recall": round(found / true.height, 7) if true.height else 1.0,
    }


def _choose_true_ids(member: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Return recording_id, true_recording_id: for each recording the true one of most of its records."""
    return (
        member.select(*_SOURCE, "recording_id")
        .join(truth.select(*_SOURCE, "true_recording_id"), on=_SOURCE)
        .group_by("recording_id", "true_recording_id")
        .len()
        .sort("recording_id", -pl.col("len").cast(pl.Int64), "true_recording_id")
        .unique("recording_id", keep="first", maintain_order=True)
    )


def count_cells(both: pl.DataFrame, kind: str = "recording") -> pl.DataFrame:
    """Return the contingency table: `<kind>_id`, `true_<kind>_id`, n."""
    return both.group_by(f"{kind}_id", f"true_{kind}_id").agg(n=pl.len().cast(pl.Int64))


def count_figures(cells: pl.DataFrame, kind: str = "recording") -> dict[str, float]:
    """Return precision, recall, f1, true_pairs, linked_pairs and right_pairs of a contingency table."""
    right, linked, true = (_count_pairs(frame) for frame in (cells, _sum_cells(cells, f"{kind}_id"), _sum_cells(cells, f"true_{kind}_id")))
    return {**_compute_rates(right, linked, true), "true_pairs": true, "linked_pairs": linked, "right_pairs": right}


def _count_spread(cells: pl.DataFrame, by: str) -> int:
    """Return how many values of `by` are in several cells."""
    return int((cells.group_by(by).len()["len"] > 1).sum())


def _sum_cells(cells: pl.DataFrame, by: str) -> pl.DataFrame:
    return cells.group_by(by).agg(pl.col("n").sum())


def _count_pairs(counts: pl.DataFrame) -> int:
    n = counts["n"]
    return int((n * (n - 1) // 2).sum())


def _compute_rates(right: int, linked: int, true: int) -> dict[str, float]:
    precision = right / linked if linked else 1.0
    recall = right / true if true else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": round(precision, 7), "recall": round(recall, 7), "f1": round(f1, 7)}


def count_rest_figures(cells: pl.DataFrame, rest: pl.DataFrame) -> dict[str, float]:
    """Return the figures of the pairs in `cells` that are not in `rest`, the contingency table of some of the records."""
    all_pairs, others = count_figures(cells), count_figures(rest)
    right, linked, true = (int(all_pairs[name] - others[name]) for name in ("right_pairs", "linked_pairs", "true_pairs"))
    return {**_compute_rates(right, linked, true), "true_pairs": true, "linked_pairs": linked, "right_pairs": right}


def _evaluate_platform(both: pl.DataFrame, cells: pl.DataFrame, platform: str) -> dict[str, object]:
    """Return the figures of pairs with a record on `platform`: all pairs less those among the other platforms."""
    others = both.filter(pl.col("platform") != platform)
    found = count_rest_figures(cells, count_cells(others))
    return {"records": both.height - others.height, **{name: found[name] for name in ("precision", "recall", "f1")}}
