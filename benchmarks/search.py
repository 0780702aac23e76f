"""Search beside the alternatives, pg_trgm in PostgreSQL and tantivy, on the same recordings and queries.

    python -m benchmarks.search CATALOG [--per-class 400] [--seed 11] [--loose] [--peers tantivy postgres] [--work DIR]

CATALOG is a catalog root that `benchmarks.catalog_world` made. Queries are those of simulator/queries.py: nine classes. Every
engine is asked in a process of its own, warm (as many queries of another seed before), one query at a time on one processor; CPU is that of
the thread that searches, for PostgreSQL that of the server's backend. Ours is asked all queries and, for the ratios, exactly those that
the peers are asked, before and after them. Found: a recording with the same names (`find_answer_names`) comes first, or among ten; for
absent queries: nothing is returned. Peers return their best ten always, so they have no share there. `--tantivy-forms` and
`--postgres-forms` choose the forms of query tried; each is a row, since the cheapest and the best are seldom the same. Needs PostgreSQL for
`postgres` and `scripts/setup .venv-bench requirements-bench.lock` for `tantivy`.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import postgres
from benchmarks.measurement import measure
from benchmarks.search_runs import POSTGRES_FORMS, drop_postgres
from simulator.loose_queries import LOOSE_CLASSES
from simulator.queries import ABSENT, ABSORBING, CLASSES, draw_queries, find_answer_names

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PEER_PYTHON = str(ROOT / ".venv-bench" / "bin" / "python")
WARMING_SEED = 1_000_003
SCORE_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01)


@dataclass(frozen=True)
class Answers:
    """The answers of one engine and the CPU seconds of each query."""

    engine: str
    hits: pl.DataFrame
    cpu: np.ndarray[Any, np.dtype[np.float64]]


class Judge:
    """Decides whether an answer is right."""

    def __init__(self, tracks: pl.LazyFrame, asked: pl.DataFrame, answers: list[Answers]) -> None:
        """Read the names of all requested and answered recordings."""
        ids = pl.concat([asked["recording_id"].drop_nulls(), *(one.hits["id"].cast(pl.Int64) for one in answers)]).unique()
        rows = tracks.join(ids.rename("recording_id").to_frame().lazy(), on="recording_id").collect()
        self._names = {row["recording_id"]: row for row in rows.iter_rows(named=True)}
        # The same recordings are judged for every engine.
        self.names = lru_cache(None)(self._read)

    def _read(self, recording_id: int, absorbs_edits: bool) -> tuple[tuple[str, ...], str, str]:  # noqa: FBT001 - a cache's key
        row = self._names[recording_id]
        artists = [one["name"] for one in row["artists"] if one["is_primary"]]
        return find_answer_names(artists, row["title"], absorbs_edits=absorbs_edits)

    def find_place(self, kind: str, wanted: int, found: list[int]) -> int | None:
        """Return the place of the first right answer, from 0."""
        absorbs = kind in ABSORBING or kind in LOOSE_CLASSES
        names = self.names(wanted, absorbs)
        return next((place for place, one in enumerate(found) if self.names(one, absorbs) == names), None)


def judge_answers(judge: Judge, asked: pl.DataFrame, answers: Answers) -> pl.DataFrame:
    """Return `asked` with cpu, first, ten (0 or 1), score of the best answer, in the queries' order."""
    found: dict[int, list[int]] = {}
    scores: dict[int, float] = {}
    for query, identifier, score in answers.hits.sort("query", "rank").select("query", "id", "score").iter_rows():
        found.setdefault(query, []).append(identifier)
        scores.setdefault(query, score)
    rows = []
    for query, kind, wanted in asked.select("query", "class", "recording_id").iter_rows():
        answered = found.get(query, [])
        if kind == ABSENT:
            # For an absent query silence is the right answer, in first place as well as among ten.
            rows.append((not answered, not answered, scores.get(query)))
        else:
            place = judge.find_place(kind, wanted, answered)
            rows.append((place == 0, place is not None, scores.get(query)))
    columns = dict(zip(("first", "ten", "score"), zip(*rows, strict=True), strict=True))
    return asked.with_columns(pl.Series("cpu", answers.cpu), *(pl.Series(name, values) for name, values in columns.items()))


def _compute_mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].cast(pl.Float64).to_numpy().mean())


def print_quality(result: pl.DataFrame) -> None:
    """Print one row per class, and the eight findable classes together."""
    print(f"{'class':<16}{'queries':>8}{'recall@1':>10}{'recall@10':>11}{'CPU ms':>9}{'p50':>8}{'p99':>8}")
    parts = [(kind, result.filter(pl.col("class") == kind)) for kind in CLASSES]
    eight = pl.col("class").is_in(CLASSES) & (pl.col("class") != ABSENT)
    parts += [("the eight", result.filter(eight)), ("all nine", result.filter(pl.col("class").is_in(CLASSES)))]
    parts += [(kind, part) for kind in LOOSE_CLASSES if not (part := result.filter(pl.col("class") == kind)).is_empty()]
    for name, part in parts:
        cpu = part["cpu"].to_numpy() * 1e3
        found = f"{_compute_mean(part, 'first'):>10.4f}{_compute_mean(part, 'ten'):>11.4f}" if name != "all nine" else " " * 21
        print(f"{name:<16}{part.height:>8}{found}{cpu.mean():>9.3f}{np.median(cpu):>8.3f}{np.quantile(cpu, 0.99):>8.3f}")


def print_calibration(result: pl.DataFrame) -> None:
    """Print how often the best answer is right, by its score."""
    answered = result.filter(pl.col("score").is_not_null()).with_columns(
        right=pl.when(pl.col("class") == ABSENT).then(statement=False).otherwise("first")
    )
    print(f"{'score':<16}{'answers':>8}{'mean':>10}{'right':>11}")
    for low, high in pairwise(SCORE_EDGES):
        part = answered.filter(pl.col("score").is_between(low, high, closed="left"))
        if part.height:
            score, right = _compute_mean(part, "score"), _compute_mean(part, "right")
            print(f"{low:.2f} to {min(high, 1):.2f}{'':<4}{part.height:>8}{score:>10.3f}{right:>11.3f}")


def print_peers(rows: list[tuple[str, pl.DataFrame]]) -> None:
    """Print the eight classes together; CPU of all nine."""
    ours = np.mean([_compute_mean(result, "cpu") for name, result in rows if name == "ours"])
    print(f"{'engine':<32}{'recall@1':>10}{'recall@10':>11}{'CPU ms':>10}{'p50':>9}{'p99':>9}{'x ours':>9}")
    for name, result in rows:
        eight = result.filter(pl.col("class") != ABSENT)
        cpu = result["cpu"].to_numpy() * 1e3
        quality = f"{_compute_mean(eight, 'first'):>10.4f}{_compute_mean(eight, 'ten'):>11.4f}"
        print(f"{name:<32}{quality}{cpu.mean():>10.3f}{np.median(cpu):>9.3f}{np.quantile(cpu, 0.99):>9.3f}{cpu.mean() / ours / 1e3:>9.1f}")


def _print_build(engine: str, cpu: float, memory: float | None, size: float, rows: int) -> None:
    peak = "" if memory is None else f", at most {memory:.0f} MiB"
    print(f"{engine}: built in {cpu / rows * 1e6:.1f} us of CPU a recording{peak}, {size / rows:.1f} bytes a recording", flush=True)


def _draw_asked(tracks: pl.LazyFrame, per_class: int, seed: int, *, loose: bool = False) -> pl.DataFrame:
    """Return warm-up queries, then the measured ones, shuffled: [query, class, artist, title, recording_id, is_measured]."""
    warming = draw_queries(tracks, max(1, per_class // 3), seed + WARMING_SEED).with_columns(is_measured=pl.lit(value=False))
    measured = draw_queries(tracks, per_class, seed, loose=loose).with_columns(is_measured=pl.lit(value=True))
    mixed = [part.sample(fraction=1, shuffle=True, seed=seed) for part in (warming, measured)]
    return pl.concat(mixed).with_row_index("query").with_columns(pl.col("query").cast(pl.Int64))


def _read_answers(engine: str, out: Path, answer: dict[str, Any]) -> Answers:
    hits = pl.read_parquet(out)
    if "score" not in hits.columns:
        hits = hits.with_columns(score=pl.lit(0.0))
    return Answers(engine, hits.with_columns(pl.col("query", "rank", "id").cast(pl.Int64)), np.array(answer["cpu"]))


def _ask_tantivy(work: Path, names: Path, asked: Path, forms: list[str], rows: int) -> Iterator[Answers]:
    folder = work / "tantivy"
    if not folder.exists():
        run = measure("benchmarks.search_tantivy:build", str(names), str(folder), python=PEER_PYTHON)
        _print_build("tantivy", run.cpu, run.memory, run.answer, rows)
    for form in forms:
        out = work / "tantivy.parquet"
        yield _read_answers(
            f"tantivy {form}",
            out,
            measure("benchmarks.search_tantivy:ask", str(folder), str(asked), str(out), form, python=PEER_PYTHON).answer,
        )


def _ask_postgres(work: Path, names: Path, asked: Path, forms: list[str], rows: int) -> Iterator[Answers]:
    is_new = not (work / "postgres").exists()
    with postgres.run_server(work / "postgres") as server:
        url = server.build_url()
        print(f"PostgreSQL {server.version}")
        if is_new:
            measure("benchmarks.search_runs:load_postgres", url, str(names))
        current = ""
        for form in forms:
            index = POSTGRES_FORMS[form][0]
            if index != current:
                drop_postgres(url)
                made = measure("benchmarks.search_runs:index_postgres", url, index).answer
                current = index
                print(
                    f"{index}: built in {made['cpu'] / rows * 1e6:.1f} us of CPU a recording, {made['bytes'] / rows:.1f} bytes a recording"
                )
            out = work / "postgres.parquet"
            yield _read_answers(
                f"pg_trgm {form}", out, measure("benchmarks.search_runs:ask_postgres", url, str(asked), str(out), form).answer
            )


def _ask_ours(work: Path, asked: Path) -> Answers:
    out = work / "ours.parquet"
    return _read_answers("ours", out, measure("benchmarks.search_runs:ask", str(work / "ours"), str(asked), str(out)).answer)


def run(arguments: argparse.Namespace, work: Path) -> None:
    """Build, ask, judge, print."""
    tables = arguments.catalog / "work" / "catalog"
    tracks = pl.scan_parquet(tables / "track" / "*.parquet").select("recording_id", "title", "artists")
    rows = int(tracks.select(pl.len()).collect().item())
    if not (work / "ours").exists():
        built = measure("benchmarks.search_runs:build", str(tables), str(work / "ours"))
        _print_build("ours", built.cpu, built.memory, built.answer, rows)
    many, few = work / "asked.parquet", work / "asked-of-peers.parquet"
    _draw_asked(tracks, arguments.per_class, arguments.seed, loose=arguments.loose).write_parquet(many)
    # Ours answers again before and after the peers: a machine that slows down meanwhile would show.
    answers = [_ask_ours(work, many)]
    if arguments.peers:
        _draw_asked(tracks, arguments.peer_per_class, arguments.seed).write_parquet(few)
        names = work / "names.parquet"
        recording = pl.scan_parquet(tables / "recording" / "*.parquet")
        recording.select(pl.col("recording_id").alias("id"), pl.col("artist_credit").alias("artist"), "title").sink_parquet(names)
        answers.append(_ask_ours(work, few))
        if "tantivy" in arguments.peers:
            answers += _ask_tantivy(work, names, few, arguments.tantivy_forms, rows)
        if "postgres" in arguments.peers:
            answers += _ask_postgres(work, names, few, arguments.postgres_forms, rows)
        answers.append(_ask_ours(work, few))
    asked = [pl.read_parquet(path).filter("is_measured") for path in ([many, few] if arguments.peers else [many])]
    judge = Judge(tracks, pl.concat(asked), answers)
    print(f"\n{rows:,} recordings, seed {arguments.seed}, {asked[0].height} queries")
    ours = judge_answers(judge, asked[0], answers[0])
    print_quality(ours)
    possible = answers[0].hits.filter((pl.col("rank") == 0) & (pl.col("class") == "possible"))["query"]
    absent = ours.filter(pl.col("class") == ABSENT)
    strong = absent.filter(pl.col("score").is_not_null() & ~pl.col("query").is_in(possible.implode()))
    print(f"absent queries without an answer above `possible`: {1 - strong.height / absent.height:.4f}")
    print_calibration(ours)
    if arguments.peers:
        print(f"\n{asked[1].height} queries to every engine")
        print_peers([(one.engine, judge_answers(judge, asked[1], one)) for one in answers[1:]])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--per-class", type=int, default=400)
    parser.add_argument("--peer-per-class", type=int, default=60)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--loose", action="store_true", help="ask the classes of simulator/loose_queries.py, too")
    parser.add_argument("--peers", nargs="*", choices=("tantivy", "postgres"), default=())
    parser.add_argument("--tantivy-forms", nargs="*", default=["staged1", "fuzzy1"])
    parser.add_argument("--postgres-forms", nargs="*", choices=tuple(POSTGRES_FORMS), default=["gin 0.3", "gin 0.45"])
    parser.add_argument("--work", type=Path, help="keep indexes there and use those that are")
    arguments = parser.parse_args()
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
        run(arguments, arguments.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's user must pass
        run(arguments, Path(folder))


if __name__ == "__main__":
    main()
