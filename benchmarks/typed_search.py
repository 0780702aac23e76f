"""Queries that people typed, on real names among made-up recordings: our search beside tantivy.

    python -m benchmarks.typed_search WORLD --part development [--peers] [--misses] [--work DIR]

WORLD is a folder that `benchmarks.catalog_world --tables-only` made. The recordings of real_names.py are added to its tables, with their
artists' aliases, and both engines index the result. Ours is asked with the two fields as typed. tantivy gets the words of both fields as
free text over artist and title, in five forms, each a row. An answer is right when it has the song, the variant (edits of one performance
are one) and one of the main artists. For absent queries silence is right; `strong` counts those without an answer of a class above
`possible`. The parts `test`, `second_test` and `third_test` are for final figures only: typed_queries/SOURCES.txt. Needs
`scripts/setup .venv-bench requirements-bench.lock`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.measurement import Run, measure
from benchmarks.real_names import read_aliases, read_recordings
from catalog_store.name_keys import build_title_keys
from catalog_store.name_keys.variants import build_variants_expr
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, list_parts
from simulator.queries import find_answer_names

if TYPE_CHECKING:
    from benchmarks.real_names import RealRecording

ROOT = Path(__file__).resolve().parent.parent
QUERIES = ROOT / "benchmarks" / "typed_queries"
PEER_PYTHON = str(ROOT / ".venv-bench" / "bin" / "python")
PEER_FORMS = ("free-exact", "free-fuzzy1", "free-fuzzy2", "free-staged1", "free-staged2")
PARTS = ("development", "test", "second_test", "third_test")
ABSENT = "absent"
POSSIBLE = "possible"
_ADDED = ("recording", "recording_artist", "artist_alias")


def read_queries(part: str) -> pl.DataFrame:
    """Return the typed queries of one of PARTS."""
    return pl.read_csv(QUERIES / f"{part}.tsv", separator="\t", quote_char=None, infer_schema=False).fill_null("")


def write_tables(world: Path, folder: Path, real: list[RealRecording]) -> dict[str, Path]:
    """Write the tables that search reads: those of `world` and, behind them, the real recordings with ids above all others."""
    tables = world / "work" / "catalog"
    first = 1 + int(pl.scan_parquet(tables / "recording" / "*.parquet").select(pl.col("recording_id").max()).collect().item())
    first_artist = 1 + int(pl.scan_parquet(tables / "artist" / "*.parquet").select(pl.col("artist_id").max()).collect().item())
    names = {name: first_artist + number for number, name in enumerate(dict.fromkeys(name for one in real for name in one.artists))}
    recordings = pl.DataFrame(
        [
            (first + number, one.title, build_title_keys(one.title).variant, ", ".join(one.artists), one.popularity)
            for number, one in enumerate(real)
        ],
        schema={"recording_id": pl.Int64, "title": pl.String, "variant": pl.String, "artist_credit": pl.String, "popularity": pl.Float64},
        orient="row",
    ).with_columns(variants=build_variants_expr(pl.col("variant")), source_count=1, platform_count=1)
    credits_ = pl.DataFrame(
        [(first + number, place, names[name], name) for number, one in enumerate(real) for place, name in enumerate(one.artists)],
        schema={"recording_id": pl.Int64, "position": pl.Int16, "artist_id": pl.Int64, "name": pl.String},
        orient="row",
    ).with_columns(is_primary=True, is_remixer=False)
    aliases = pl.DataFrame(
        [(names[name], other) for name, others in read_aliases().items() if name in names for other in others],
        schema={"artist_id": pl.Int64, "alias": pl.String},
        orient="row",
    ).with_columns(kind=pl.lit("alias"), platform=pl.lit("catalog_b"))
    for name, frame in zip(_ADDED, (recordings, credits_, aliases.sort("artist_id", "alias")), strict=True):
        with TableWriter(TABLES[name], folder / name) as writer:
            for part in list_parts(tables / name):
                writer.take(part)
            writer.write(frame)
    return {name: folder / name for name in _ADDED}


class _Names(NamedTuple):
    artists: set[str]
    songs: set[str]
    variant: str


def _read_names(artists: list[str], title: str) -> _Names:
    """Read what makes an answer right: a subtitle in brackets and spaces do not make another song (`YMCA`, `Y.M.C.A.`)."""
    keys, _, variant = find_answer_names(artists, title, absorbs_edits=True)
    titled = build_title_keys(title)
    return _Names(set(keys), {titled.core.replace(" ", ""), titled.stem.replace(" ", "")}, variant)


class Judge:
    """Decides whether an answer is right."""

    def __init__(self, tables: dict[str, Path], ids: pl.Series) -> None:
        """Read the names of all answered recordings."""
        wanted = ids.unique().rename("recording_id").to_frame().lazy()
        titles = (
            pl.scan_parquet(tables["recording"] / "*.parquet").join(wanted, on="recording_id").select("recording_id", "title").collect()
        )
        artists = pl.scan_parquet(tables["recording_artist"] / "*.parquet").filter("is_primary").join(wanted, on="recording_id")
        self._titles = dict(titles.iter_rows())
        self._artists: dict[int, list[str]] = defaultdict(list)
        for identifier, name in artists.select("recording_id", "name").collect().iter_rows():
            self._artists[identifier].append(name)

    def describe(self, identifier: int) -> str:
        """Return the names of a recording."""
        return f"{', '.join(self._artists[identifier])} ~ {self._titles[identifier]}"

    def find_place(self, row: dict[str, Any], found: list[int]) -> int | None:
        """Return the place of the first right answer, from 0."""
        artists, songs, variant = _read_names(row["answer_artists"].split("; "), row["answer_title"])
        for place, identifier in enumerate(found):
            names = _read_names(self._artists[identifier], self._titles[identifier])
            if names.variant == variant and artists & names.artists and songs & names.songs:
                return place
        return None


def print_result(engine: str, asked: pl.DataFrame, hits: pl.DataFrame, judge: Judge, *, classes: bool, misses: bool) -> None:
    """Print the shares first, in ten and silent; with `classes` a row for each class, with `misses` each query not answered first."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for query, identifier, kind in hits.sort("query", "rank").select("query", "id", "class").iter_rows():
        found[query].append((identifier, kind))
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for row in asked.iter_rows(named=True):
        answers, kind = found[row["query"]], row["class"]
        count = sums[kind]
        count["queries"] += 1
        if kind == ABSENT:
            count["first"] += not answers
            count["ten"] += all(one == POSSIBLE for _, one in answers)
            wrong = bool(answers)
        else:
            place = judge.find_place(row, [identifier for identifier, _ in answers])
            count["first"] += place == 0
            count["ten"] += place is not None
            wrong = place != 0
        if misses and wrong:
            shown = f"{judge.describe(answers[0][0])} [{answers[0][1]}]" if answers else "-"
            print(f"  {kind}: {row['artist']} | {row['title']} -> {shown}; wanted {row['answer_artists']} ~ {row['answer_title']}")
    total = sum((count for kind, count in sums.items() if kind != ABSENT), Counter())
    absent = sums[ABSENT]
    print(
        f"{engine:<20}{total['queries']:>8}{total['first'] / total['queries']:>10.4f}{total['ten'] / total['queries']:>10.4f}"
        f"{absent['queries']:>8}{absent['first'] / absent['queries']:>10.4f}{absent['ten'] / absent['queries']:>10.4f}"
    )
    if classes:
        for kind, count in sorted(sums.items()):
            print(f"  {kind:<18}{count['queries']:>8}{count['first'] / count['queries']:>10.4f}{count['ten'] / count['queries']:>10.4f}")


def run(arguments: argparse.Namespace, work: Path) -> None:
    """Build, ask, judge, print."""
    real = read_recordings()
    tables = {name: work / "tables" / name for name in _ADDED}
    if not (work / "tables").exists():
        write_tables(arguments.world, work / "tables", real)
    rows = int(pl.scan_parquet(tables["recording"] / "*.parquet").select(pl.len()).collect().item())
    if not (work / "ours").exists():
        built = measure("benchmarks.search_runs:build", str(work / "tables"), str(work / "ours"))
        print(f"ours: built in {built.cpu / rows * 1e6:.1f} us of CPU a recording, {built.answer / rows:.1f} bytes a recording", flush=True)
    asked = read_queries(arguments.part).with_row_index("query").with_columns(pl.col("query").cast(pl.Int64), is_measured=True)
    has_both = (pl.col("artist").str.strip_chars() != "") & (pl.col("title").str.strip_chars() != "")
    print(f"{asked.filter(~has_both).height} queries with a blank field are left out: the API refuses them")
    asked = asked.filter(has_both)
    asked.write_parquet(work / "typed.parquet")
    out = work / "ours.parquet"
    runs: list[tuple[str, Run, Path]] = [
        ("ours", measure("benchmarks.search_runs:ask", str(work / "ours"), str(work / "typed.parquet"), str(out)), out)
    ]
    if arguments.peers:
        runs += ask_peer(tables, work)
    hits = [pl.read_parquet(out).with_columns(pl.col("id").cast(pl.Int64)) for _, _, out in runs]
    judge = Judge(tables, pl.concat([one["id"] for one in hits]))
    print(f"{rows:,} recordings, {arguments.part!s}")
    print(f"{'engine':<20}{'queries':>8}{'first':>10}{'in ten':>10}{'absent':>8}{'empty':>10}{'not strong':>11}")
    for (engine, ran, _), found in zip(runs, hits, strict=True):
        named = found if "class" in found.columns else found.with_columns(pl.lit("strong").alias("class"))
        own = engine == "ours"
        print_result(engine, asked, named, judge, classes=own or arguments.misses, misses=own and arguments.misses)
        spent = np.array(ran.answer["cpu"]) * 1e3
        print(f"  CPU ms: mean {spent.mean():.3f}, p50 {np.median(spent):.3f}, p99 {np.quantile(spent, 0.99):.3f}")


def ask_peer(tables: dict[str, Path], work: Path) -> list[tuple[str, Run, Path]]:
    """Index the names in tantivy, most popular first because ties go to the lower document, and ask in all forms."""
    if not (work / "tantivy").exists():
        recording = pl.scan_parquet(tables["recording"] / "*.parquet").sort("popularity", descending=True)
        names = recording.select(pl.col("recording_id").alias("id"), pl.col("artist_credit").alias("artist"), "title")
        names.sink_parquet(work / "names.parquet")
        measure("benchmarks.search_tantivy:build", str(work / "names.parquet"), str(work / "tantivy"), python=PEER_PYTHON)
    runs: list[tuple[str, Run, Path]] = []
    for form in PEER_FORMS:
        out = work / f"{form}.parquet"
        asked = str(work / "typed.parquet")
        ran = measure("benchmarks.search_tantivy:ask", str(work / "tantivy"), asked, str(out), form, python=PEER_PYTHON)
        runs.append((f"tantivy {form}", ran, out))
    return runs


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", type=Path)
    parser.add_argument("--part", choices=PARTS, default="development")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--work", type=Path, help="keep tables and indexes there and use those that are")
    arguments = parser.parse_args()
    if arguments.work:
        arguments.work.mkdir(parents=True, exist_ok=True)
        run(arguments, arguments.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(arguments, Path(folder))


if __name__ == "__main__":
    main()
