from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog_store.tables import TABLES
from catalog_store.tables.files import write_table
from pipeline.linkage.evaluation import evaluate, evaluate_build, evaluate_entities, evaluate_fingerprints

if TYPE_CHECKING:
    from pathlib import Path


def frames(cells: list[tuple[int, int]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one record per (recording, true recording)."""
    names = [str(number) for number in range(len(cells))]
    base = pl.DataFrame(
        {"platform": ["p" if number % 3 else "q" for number in range(len(cells))], "external_id": names},
        schema={"platform": pl.String, "external_id": pl.String},
    )
    return (
        base.with_columns(recording_id=pl.Series([cell[0] for cell in cells], dtype=pl.Int64)),
        base.with_columns(true_recording_id=pl.Series([cell[1] for cell in cells], dtype=pl.Int64)),
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=14))
def test_counts_equal_those_of_listed_pairs(cells: list[tuple[int, int]]) -> None:
    figures = evaluate(*frames(cells))
    pairs = list(combinations(range(len(cells)), 2))
    linked = {pair for pair in pairs if cells[pair[0]][0] == cells[pair[1]][0]}
    true = {pair for pair in pairs if cells[pair[0]][1] == cells[pair[1]][1]}
    assert (figures["linked_pairs"], figures["true_pairs"], figures["right_pairs"]) == (len(linked), len(true), len(linked & true))
    touching = {pair for pair in pairs if 0 in (pair[0] % 3, pair[1] % 3)}
    if cells:
        platform = figures["platforms"]["q"]  # type: ignore[index]
        assert platform["recall"] == pytest.approx(
            len(linked & true & touching) / len(true & touching) if true & touching else 1.0, abs=1e-6
        )


def test_mixed_and_split_recordings_and_unknown_records_are_counted() -> None:
    member, truth = frames([(1, 1), (1, 2), (2, 2), (3, 3)])
    figures = evaluate(member.tail(3).vstack(member.head(1)), truth.head(3))
    assert figures["mixed_clusters"] == 1
    assert figures["split_recordings"] == 1
    assert figures["truth_missing_in_member"] == 0
    assert figures["member_missing_in_truth"] == 1
    assert evaluate(member.head(2), truth)["truth_missing_in_member"] == 2


def test_perfect_linkage_scores_one() -> None:
    figures = evaluate(*frames([(7, 1), (7, 1), (9, 2)]))
    assert (figures["precision"], figures["recall"], figures["f1"]) == (1.0, 1.0, 1.0)


def test_entities_are_counted_by_pairs_of_rows_that_both_sides_know() -> None:
    rows = pl.DataFrame({"platform": ["p", "q", "r", "p"], "external_id": ["1", "1", "1", "2"], "artist_id": [7, 7, 7, 8]})
    truth = pl.DataFrame({"platform": ["p", "q", "r", "s"], "external_id": ["1", "1", "1", "1"], "true_artist_id": [1, 1, 2, 2]})
    figures = evaluate_entities(rows, truth)
    assert (figures["linked_pairs"], figures["true_pairs"], figures["right_pairs"]) == (3, 1, 1)
    assert (figures["source_rows"], figures["truth_missing_in_sources"]) == (3, 1)
    assert (figures["mixed_entities"], figures["split_entities"]) == (1, 0)


def one_platform(kind: str, *ids: int) -> pl.DataFrame:
    """Return one record for each id, all on one platform."""
    return pl.DataFrame({"platform": ["p"] * len(ids), "external_id": [str(number) for number in range(len(ids))], kind: ids})


def test_figures_of_a_linkage_are_exact() -> None:
    member, truth = one_platform("recording_id", 1, 1, 1, 2, 3), one_platform("true_recording_id", 1, 1, 2, 2, 3)
    figures = evaluate(member, truth)
    assert (figures["linked_pairs"], figures["true_pairs"], figures["right_pairs"]) == (3, 2, 1)
    assert (figures["precision"], figures["recall"], figures["f1"]) == (0.3333333, 0.5, 0.4)
    assert (figures["records"], figures["recordings"], figures["true_recordings"]) == (5, 3, 3)
    assert (figures["mixed_clusters"], figures["mixed_per_million"], figures["split_recordings"]) == (1, 200_000.0, 1)
    assert figures["platforms"] == {"p": {"records": 5, "precision": 0.3333333, "recall": 0.5, "f1": 0.4}}
    wrong = evaluate(one_platform("recording_id", 1, 1, 2, 2), one_platform("true_recording_id", 1, 2, 1, 2))
    assert (wrong["precision"], wrong["recall"], wrong["f1"]) == (0.0, 0.0, 0.0)


def test_linkage_of_no_records_is_perfect() -> None:
    nothing = evaluate(one_platform("recording_id", 1).clear(), one_platform("true_recording_id", 1).clear())
    assert (nothing["precision"], nothing["recall"], nothing["f1"], nothing["mixed_per_million"]) == (1.0, 1.0, 1.0, 0.0)


def test_figures_of_entities_count_mixed_split_and_missing_ones() -> None:
    figures = evaluate_entities(one_platform("label_id", 1, 1, 2, 3), one_platform("true_label_id", 1, 2, 2, 3, 4))
    assert (figures["source_rows"], figures["entities"], figures["true_entities"]) == (4, 3, 3)
    assert (figures["mixed_entities"], figures["split_entities"], figures["truth_missing_in_sources"]) == (1, 1, 1)


def test_fingerprint_is_right_when_most_records_of_its_recording_are_of_that_song() -> None:
    member, truth = one_platform("recording_id", 1, 1, 1, 2, 2), one_platform("true_recording_id", 7, 8, 8, 9, 6)
    chosen = pl.DataFrame({"recording_id": [1, 1, 2, 2], "fingerprint_id": [70, 80, 90, 60]})
    true = pl.DataFrame({"fingerprint_id": [70, 80, 90, 60, 50], "true_recording_id": [7, 8, 9, 6, 5]})
    assert evaluate_fingerprints(chosen, member, truth, true) == {
        "fingerprints": 4, "right": 2, "precision": 0.5, "recordings": 5, "found": 2, "recall": 0.4,
    }  # fmt: skip
    nothing = evaluate_fingerprints(chosen.clear(), member, truth, true.clear())
    assert (nothing["precision"], nothing["recall"]) == (1.0, 1.0)


def write_truth(folder: Path, rows: pl.DataFrame) -> None:
    folder.mkdir(parents=True)
    rows.write_parquet(folder / "part-00000.parquet")


@pytest.mark.parametrize("has_fingerprints", [True, False])
def test_build_is_evaluated_by_its_tables_without_fingerprints_of_an_operator(tmp_path: Path, *, has_fingerprints: bool) -> None:
    work, truth = tmp_path / "catalog" / "work", tmp_path / "world"
    write_table(TABLES["recording_member"], work / "linkage" / "recording_member", one_platform("recording_id", 1, 1, 2))
    write_truth(truth / "truth" / "recording", one_platform("true_recording_id", 1, 2, 2))
    for kind, ids in (("artist", (1, 1)), ("release", (1, 2)), ("label", (1, 2))):
        write_table(TABLES[f"{kind}_source"], work / "catalog" / f"{kind}_source", one_platform(f"{kind}_id", *ids))
        write_truth(truth / "truth" / kind, one_platform(f"true_{kind}_id", 7, 7))
    # One source sorts before `fingerprints` and one behind it.
    rows = [(1, 0, "a station", 5), (1, 1, "fingerprints", 5), (2, 0, "zone", 6)]
    frame = pl.DataFrame(rows, schema=["recording_id", "position", "source", "fingerprint_id"], orient="row")
    rest = {"fingerprint_key": 0, "duration_seconds": 200, "submission_count": 1, "fingerprint_track_id": 0, "link_count": 1}
    table = TABLES["recording_fingerprint"]
    chosen = table.conform(frame.with_columns(pl.lit(value).alias(name) for name, value in rest.items()))
    write_table(table, work / "catalog" / table.name, chosen)
    if has_fingerprints:
        write_truth(truth / "truth" / "fingerprint", pl.DataFrame({"fingerprint_id": [5, 6], "true_recording_id": [1, 2]}))
    figures = evaluate_build(tmp_path / "catalog", truth)
    assert (figures["records"], figures["right_pairs"], figures["mixed_clusters"]) == (3, 0, 1)
    assert [figures[kind]["right_pairs"] for kind in ("artists", "releases", "labels")] == [1, 0, 0]  # type: ignore[index]
    assert ("fingerprints" in figures) is has_fingerprints
    if has_fingerprints:
        assert (figures["fingerprints"]["fingerprints"], figures["fingerprints"]["recordings"]) == (1, 2)  # type: ignore[index]
