"""Train the scores of `possible` answers: how often the first answer of a likeness is right.

    python -m benchmarks.search_calibration CATALOG SEARCH_WORK TYPED_WORK [--per-class 400] [--seed 5]

CATALOG and SEARCH_WORK are those of `benchmarks.search --work`, TYPED_WORK that of `benchmarks.typed_search --work`; both hold an index.
Asked are the simulated classes, absent queries among them, and the typed queries of the development half. Isotonic regression (pool
adjacent violators) fits the share of right answers, and the knots printed go into catalog_store/search/calibration.py. A table of
reliability of another seed follows.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.search import Answers, Judge
from benchmarks.typed_search import QUERIES
from benchmarks.typed_search import Judge as TypedJudge
from catalog_store.cursors import CursorCodec
from catalog_store.queries.track_search import Request, search
from catalog_store.search.calibration import POSSIBLE_KNOTS
from catalog_store.search.line_comparison import LEAST
from catalog_store.search.reranker import POSSIBLE
from catalog_store.search.search_index import SearchIndex
from simulator.queries import ABSENT, draw_queries

if TYPE_CHECKING:
    from collections.abc import Iterable

_Outcome = tuple[float, bool]
KNOTS = 6
EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.01)


def collect_simulated(catalog: Path, index: SearchIndex, per_class: int, seed: int) -> list[_Outcome]:
    """Return (score, whether right) of each query whose first answer is `possible`."""
    tracks = pl.scan_parquet(catalog / "work" / "catalog" / "track" / "*.parquet").select("recording_id", "title", "artists")
    asked = draw_queries(tracks, per_class, seed, loose=True).with_row_index("query")
    first = {row["query"]: (row, hit) for row in asked.iter_rows(named=True) if (hit := _ask_first(index, row["artist"], row["title"]))}
    hits = pl.DataFrame({"id": [identifier for _, (identifier, _) in first.values()]}, schema={"id": pl.Int64})
    judge = Judge(tracks, asked, [Answers("ours", hits, np.zeros(0))])
    return [
        (score, row["class"] != ABSENT and judge.find_place(row["class"], row["recording_id"], [identifier]) == 0)
        for row, (identifier, score) in first.values()
    ]


def collect_typed(work: Path) -> list[_Outcome]:
    """Return the same of the typed queries of the development half."""
    index = SearchIndex(work / "ours")
    rows = pl.read_csv(QUERIES / "development.tsv", separator="\t", quote_char=None, infer_schema=False).fill_null("")
    first = [(row, hit) for row in rows.iter_rows(named=True) if (hit := _ask_first(index, row["artist"], row["title"]))]
    tables = {name: work / "tables" / name for name in ("recording", "recording_artist")}
    judge = TypedJudge(tables, pl.Series([identifier for _, (identifier, _) in first], dtype=pl.Int64))
    return [(score, row["class"] != ABSENT and judge.find_place(row, [identifier]) == 0) for row, (identifier, score) in first]


def _ask_first(index: SearchIndex, artist: str, title: str) -> tuple[int, float] | None:
    hits = search(index, CursorCodec(), Request(artist, title, 1), deadline=60).hits
    return (hits[0].id, hits[0].score) if hits and hits[0].match_class == POSSIBLE else None


def fit_knots(outcomes: Iterable[_Outcome]) -> list[tuple[float, float]]:
    """Return at most KNOTS (likeness, score), both rising."""
    scores, likenesses = [score for _, score in POSSIBLE_KNOTS], [likeness for likeness, _ in POSSIBLE_KNOTS]
    # Scores of this program become likenesses again.
    ordered = sorted((float(np.interp(score, scores, likenesses)), right) for score, right in outcomes)
    blocks: list[list[float]] = []
    for likeness, right in ordered:
        blocks.append([float(right), 1.0, likeness])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            right_too, count, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + right_too, blocks[-1][1] + count, last]
    lasts = [block[2] for block in blocks]
    fitted = [block[0] / block[1] for block in blocks]
    chosen = np.unique(np.quantile([likeness for likeness, _ in ordered], np.linspace(0, 1, KNOTS)).round(3))
    chosen[0], chosen[-1] = LEAST, 1.0
    shares = np.interp(chosen, lasts, fitted)
    # A score that does not rise would make answers of different fit equal.
    return [
        (round(float(at), 3), round(min(0.999, float(share)) + 0.0001 * place, 4))
        for place, (at, share) in enumerate(zip(chosen, shares, strict=True))
    ]


def main() -> None:
    """Read the command line, train, and print the reliability of another seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("search_work", type=Path)
    parser.add_argument("typed_work", type=Path)
    parser.add_argument("--per-class", type=int, default=400)
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    index = SearchIndex(arguments.search_work / "ours")
    trained = collect_simulated(arguments.catalog, index, arguments.per_class, arguments.seed) + collect_typed(arguments.typed_work)
    print("POSSIBLE_KNOTS =", fit_knots(trained))
    seen = pl.DataFrame(
        collect_simulated(arguments.catalog, index, arguments.per_class, arguments.seed + 1), schema=["score", "right"], orient="row"
    )
    print(f"{'score':<14}{'answers':>8}{'mean':>8}{'right':>8}")
    for low, high in pairwise(EDGES):
        part = seen.filter(pl.col("score").is_between(low, high, closed="left"))
        if part.height:
            scores, right = part["score"].to_numpy(), part["right"].cast(pl.Float64).to_numpy()
            print(f"{low:.2f} to {min(high, 1):.2f}{part.height:>10}{scores.mean():>8.3f}{right.mean():>8.3f}")


if __name__ == "__main__":
    main()
