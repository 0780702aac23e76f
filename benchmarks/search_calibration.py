"""Train the weights of `possible` answers: a logistic regression of which answers are right.

    python -m benchmarks.search_calibration CATALOG SEARCH_WORK TYPED_WORK [--per-class 100] [--drawn 2500] [--seed 5]

CATALOG and SEARCH_WORK are those of `benchmarks.search --work`, TYPED_WORK that of `benchmarks.typed_search --work`; both hold an index.
Asked are the simulated classes, eight times as many absent queries of another seed, queries drawn from real names
(benchmarks/drawn_queries.py) and the typed queries of the development part: never the held-out parts, nor recordings that they ask for.
The weights printed go into catalog_store/search/calibration.py. A table of reliability of queries of other seeds follows: how often the
first answer is right, by its score. The weights of artist, variant and popularity are not trained (`FIXED`).
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.drawn_queries import draw_queries as draw_typed_queries
from benchmarks.real_names import read_recordings
from benchmarks.search import Answers, Judge
from benchmarks.typed_search import PARTS, read_queries
from benchmarks.typed_search import Judge as TypedJudge
from catalog_store.queries.track_search import FAIR_SCORE, Request, find_by_fields, find_in_line
from catalog_store.search.calibration import LEAST_SCORE, list_features
from catalog_store.search.query_names import read_query
from catalog_store.search.search_index import SearchIndex
from simulator.queries import ABSENT, draw_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    _Floats = NDArray[np.float64]

ANSWERS = 3
"""Answers of a query that train."""
FIXED = {1: 2.0, 3: 12.0, 8: 0.5, 9: -0.25}
"""Weights, by place in `list_features`, that these queries do not tell: they ask for recordings of any popularity, misspelt artists are
more common among them than among those of people, the judge takes no other variant than the one asked for, while a person does, and chance
depends on the size of the catalog."""
ABSENT_TIMES = 8
EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01)
_STEPS, _SMALL = 50, 1e-6


class Answer(NamedTuple):
    """An answer of the wide reading: recording, features, and whether it is right."""

    identifier: int
    features: tuple[float, ...]
    right: bool = False


class Asked(NamedTuple):
    """A query that reached the wide reading, its best answers, and whether another class stands before them."""

    row: dict[str, Any]
    answers: list[Answer]
    is_behind: bool


def ask(index: SearchIndex, rows: Iterable[dict[str, Any]]) -> list[Asked]:
    """Return the queries that the comparison by fields does not answer well, with answers not judged yet."""
    asked: list[Asked] = []
    for row in rows:
        request = Request(row["artist"], row["title"])
        query = read_query(request.artist, request.title)
        found = find_by_fields(index, query, time.monotonic() + 60)
        if max((match.score for match in found.values()), default=0.0) < FAIR_SCORE:
            fits = find_in_line(index, request, query, found)
            best = sorted(fits.items(), key=lambda item: -item[1].likeness)[:ANSWERS]
            answers = [Answer(index.ids[document], list_features(fit.evidence, index.popularity[document])) for document, fit in best]
            asked.append(Asked(row, answers, bool(found)))
    return asked


def collect_simulated(catalog: Path, index: SearchIndex, per_class: int, seed: int, *, only_absent: bool = False) -> list[Asked]:
    """Return simulated queries, judged."""
    tracks = pl.scan_parquet(catalog / "work" / "catalog" / "track" / "*.parquet").select("recording_id", "title", "artists")
    rows = draw_queries(tracks, per_class, seed, loose=not only_absent).with_row_index("query")
    rows = rows.filter(pl.col("class") == ABSENT) if only_absent else rows
    asked = ask(index, rows.iter_rows(named=True))
    judge = Judge(tracks, rows, [Answers("ours", _list_ids(asked), np.zeros(0))])
    return [_judge(one, lambda row, found: judge.find_place(row["class"], row["recording_id"], found)) for one in asked]


def collect_typed(work: Path, rows: pl.DataFrame) -> list[Asked]:
    """Return queries for real names, judged."""
    asked = ask(SearchIndex(work / "ours"), rows.iter_rows(named=True))
    judge = TypedJudge({name: work / "tables" / name for name in ("recording", "recording_artist")}, _list_ids(asked)["id"])
    return [_judge(one, judge.find_place) for one in asked]


def _judge(one: Asked, find_place: Callable[[dict[str, Any], list[int]], int | None]) -> Asked:
    is_absent = one.row["class"] == ABSENT
    return one._replace(
        answers=[answer._replace(right=not is_absent and find_place(one.row, [answer.identifier]) == 0) for answer in one.answers]
    )


def _list_ids(asked: list[Asked]) -> pl.DataFrame:
    return pl.DataFrame({"id": [answer.identifier for one in asked for answer in one.answers]}, schema={"id": pl.Int64})


def train(asked: list[Asked]) -> _Floats:
    """Return the weights: fitted to the best answers of each query, then stretched so that the first answers' shares are right."""
    answers = [answer for one in asked for answer in one.answers]
    features = np.array([answer.features for answer in answers])
    right = np.array([answer.right for answer in answers], dtype=np.float64)
    fixed = np.zeros(features.shape[1])
    for place, weight in FIXED.items():
        fixed[place] = weight
    free = [place for place in range(features.shape[1]) if place not in FIXED]
    weights = fixed
    weights[free] = _fit(features[:, free], right, features @ fixed, penalty=1.0)
    first = [max((float(np.dot(weights, answer.features)), answer.right) for answer in one.answers) for one in _list_first(asked)]
    odds = np.array([[1.0, odd] for odd, _ in first])
    start, stretch = _fit(odds, np.array([right for _, right in first], dtype=np.float64), np.zeros(len(first)), penalty=0.01)
    stretched: _Floats = stretch * weights
    stretched[0] += start
    return stretched


def _list_first(asked: list[Asked]) -> list[Asked]:
    return [one for one in asked if one.answers and not one.is_behind]


def _fit(features: _Floats, right: _Floats, offset: _Floats, penalty: float) -> _Floats:
    """Return the weights of greatest likelihood by Newton's method; `penalty` pulls all but the first towards 0."""
    pull = np.full(features.shape[1], penalty)
    pull[0] = _SMALL
    weights = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(-(features @ weights + offset)))
        slope = features.T @ (right - share) - pull * weights
        step = np.linalg.solve((features.T * (share * (1 - share))) @ features + np.diag(pull), slope)
        weights += step
        if np.abs(step).max() < _SMALL:
            break
    return weights


def print_reliability(name: str, asked: list[Asked], weights: _Floats) -> None:
    """Print how often the first answer is right, by its score, and the share of absent queries without an answer."""
    scored = [
        max((1 / (1 + math.exp(-float(np.dot(weights, answer.features)))), answer.right) for answer in one.answers)
        for one in _list_first(asked)
    ]
    seen = pl.DataFrame(scored, schema={"score": pl.Float64, "right": pl.Boolean}, orient="row")
    print(f"{name:<14}{'answers':>8}{'mean':>8}{'right':>8}")
    for low, high in pairwise(EDGES):
        part = seen.filter(pl.col("score").is_between(low, high, closed="left"))
        if part.height:
            scores, right = part["score"].to_numpy(), part["right"].cast(pl.Float64).to_numpy()
            print(f"{low:.2f} to {min(high, 1):.2f}{part.height:>10}{scores.mean():>8.3f}{right.mean():>8.3f}")
    absent = [one for one in asked if one.row["class"] == ABSENT]
    least = math.log(LEAST_SCORE / (1 - LEAST_SCORE))
    silent = sum(all(np.dot(weights, answer.features) < least for answer in one.answers) for one in absent)
    print(f"absent queries without a `possible` answer: {silent} of {len(absent)}")


def main() -> None:
    """Read the command line, train, and print the reliability of other seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("search_work", type=Path)
    parser.add_argument("typed_work", type=Path)
    parser.add_argument("--per-class", type=int, default=100)
    parser.add_argument("--drawn", type=int, default=2_500)
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    index = SearchIndex(arguments.search_work / "ours")
    catalog, per_class, seed = arguments.catalog, arguments.per_class, arguments.seed
    held_out = {row for part in PARTS[1:] for row in read_queries(part).select("answer_artists", "answer_title").iter_rows()}
    real = read_recordings()
    trained = [
        *collect_typed(arguments.typed_work, draw_typed_queries(real, held_out, arguments.drawn, seed)),
        *collect_typed(arguments.typed_work, read_queries(PARTS[0])),
        *collect_simulated(catalog, index, per_class, seed),
        *collect_simulated(catalog, index, ABSENT_TIMES * per_class, seed + 1, only_absent=True),
    ]
    weights = train(trained)
    print("POSSIBLE_WEIGHTS =", tuple(weights.round(3).tolist()))
    drawn = draw_typed_queries(real, held_out, arguments.drawn // 2, seed + 2)
    print_reliability("drawn", collect_typed(arguments.typed_work, drawn), weights)
    print_reliability("simulated", collect_simulated(catalog, index, per_class, seed + 2), weights)


if __name__ == "__main__":
    main()
