"""The cost of genre rules: all rules over distinct strings, and whole dumps beside a plain join and beside regular expressions on rows.

    python -m benchmarks.genres [--strings 26000] [--rows 10000000] [--vocabulary FILE.csv] [--runs 3]

Strings: CPU-seconds for every rule over every distinct string; goal 2. Rows: Parquet in, Parquet with genres out. Ours finds the distinct
strings, classifies them and joins back; the plain join has the same answers ready and only joins them; the third asks one regular
expression per rule of every row (of a sample: the figure is scaled up). Each in a fresh process; imports are not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import duckdb
import polars as pl

from benchmarks.genre_rows import make_vocabulary, write_rows
from benchmarks.measurement import measure
from genre_rules import Classifier, compile_book, load_book
from genre_rules.normal_form import simplify
from pipeline.build.genre_strings import classify_strings, read_strings

STRINGS_GOAL = 2.0
JOIN_GOAL = 1.5
REGEX_GOAL = 20.0
PARTS = ("distinct", "ask", "join")
SAMPLE_ROWS = 100_000
SESSION = "SET threads = 2; SET disabled_optimizers = 'join_order'"
_ANSWER = """
SELECT r.platform, r.entity_id, r.position, t.genre_id, t.rule_id
FROM read_parquet('{rows}') r LEFT JOIN string_tag t USING (platform, parent, genre)
"""
_COPY = "COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"


def measure_strings(file: str) -> dict[str, float]:
    """Load and compile the rules and classify every string of `file` (Parquet, column string)."""
    strings = pl.read_parquet(file)["string"].to_list()
    started = time.process_time()
    book = load_book()
    compiled = compile_book(book)
    loaded = time.process_time()
    classifier = Classifier(compiled)
    classified = sum(bool(classifier.classify("catalog_b", string).tags) for string in strings)
    asked = time.process_time()
    return {"strings": len(strings), "rules": len(book.rules), "classified": classified, "load": loaded - started, "ask": asked - loaded}


def classify_rows(rows: str, folder: str) -> dict[str, float]:
    """Find distinct strings, classify and join them; keep the answers of the strings for `joined_rows`."""
    with duckdb.connect() as connection:
        connection.execute(SESSION)
        started = time.process_time()
        connection.execute(
            "CREATE TABLE string AS SELECT row_number() OVER () AS string_id, * "
            f"FROM (SELECT DISTINCT platform, parent, genre FROM read_parquet('{rows}'))"
        )
        strings = pl.DataFrame(connection.sql("SELECT * FROM string").to_arrow_table())
        found = time.process_time()
        tags, _ = classify_strings(strings, read_strings(strings, lambda: Classifier(compile_book(load_book()))))
        connection.register("tags", tags.to_arrow())
        connection.execute(
            "CREATE TABLE string_tag AS SELECT s.platform, s.parent, s.genre, t.* FROM string s JOIN tags t USING (string_id)"
        )
        asked = time.process_time()
        connection.execute(_COPY.format(query=_ANSWER.format(rows=rows), file=f"{folder}/ours.parquet"))
        joined = time.process_time()
        connection.execute(f"COPY string_tag TO '{folder}/string_tag.parquet' (FORMAT parquet)")
    return {"distinct": found - started, "ask": asked - found, "join": joined - asked, "strings": strings.height}


def join_rows(rows: str, folder: str) -> dict[str, float]:
    """Join the same rows with existing answers."""
    with duckdb.connect() as connection:
        connection.execute(SESSION)
        started = time.process_time()
        connection.execute(f"CREATE TABLE string_tag AS SELECT * FROM read_parquet('{folder}/string_tag.parquet')")
        connection.execute(_COPY.format(query=_ANSWER.format(rows=rows), file=f"{folder}/plain.parquet"))
        return {"cpu": time.process_time() - started}


def search_rows(rows: str, count: str) -> dict[str, float]:
    """Apply one regular expression per rule to the first `count` rows, as Polars runs them (compiled once, no look-around)."""
    strings = pl.scan_parquet(rows).select(pl.col("genre").str.to_lowercase()).head(int(count)).collect()["genre"]
    book = load_book()
    forms = [sorted({simplify(text) for text in rule.match} - {""}, key=len, reverse=True) for rule in book.rules if rule.kind != "regex"]
    patterns = [r"\b(?:" + "|".join(rule) + r")\b" for rule in forms if rule]
    started = time.process_time()
    hits = sum(int(strings.str.contains(pattern).sum()) for pattern in patterns)
    return {"cpu": time.process_time() - started, "rows": strings.len(), "patterns": len(patterns), "hits": hits}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strings", type=int, default=26_000, help="distinct strings to make up (default %(default)s)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the dump (default %(default)s)")
    parser.add_argument("--vocabulary", type=Path, help="CSV with a column `string`, instead of made-up strings")
    parser.add_argument("--runs", type=int, default=3, help="runs per measurement, of which the fastest counts (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, distinct = f"{folder}/rows.parquet", f"{folder}/strings.parquet"
        strings = make_vocabulary(options.strings, options.vocabulary)
        pl.DataFrame({"string": strings}).write_parquet(distinct)
        write_rows(strings, options.rows, Path(rows))
        once = _take_least([_run("measure_strings", distinct) for _ in range(options.runs)])
        print(f"{once['strings']:,} strings, {once['rules']} rules: {once['ask']:.2f} CPU-s ({once['load']:.2f} to load), ", end="")
        print(f"{once['classified']:,} classified; goal <= {STRINGS_GOAL} {_judge_figures(once['ask'] <= STRINGS_GOAL)}", flush=True)
        both = [(_run("classify_rows", rows, folder), _run("join_rows", rows, folder)) for _ in range(options.runs)]
        ours, joined = _take_least([run for run, _ in both]), _take_least([run for _, run in both])
        ours["cpu"] = sum(ours[name] for name in PARTS)
        searched = _run("search_rows", rows, str(min(SAMPLE_ROWS, options.rows)))
        parts = ", ".join(f"{name} {ours[name]:.2f}" for name in PARTS)
        scaled = searched["cpu"] * options.rows / searched["rows"]
        print(f"{options.rows:,} rows, {ours['strings']:,} distinct (platform, parent, string); CPU-seconds:")
        print(f"  classified     {ours['cpu']:9.2f}  ({parts})")
        print(f"  plain join     {joined['cpu']:9.2f}  {ours['cpu'] / joined['cpu']:.2f}x, ", end="")
        print(f"goal <= {JOIN_GOAL} {_judge_figures(ours['cpu'] <= JOIN_GOAL * joined['cpu'])}")
        print(f"  regexes on rows{scaled:9.2f}  {scaled / ours['cpu']:.0f}x ours, ", end="")
        print(f"goal >= {REGEX_GOAL:.0f} {_judge_figures(scaled >= REGEX_GOAL * ours['cpu'])} ", end="")
        print(f"({searched['patterns']} patterns, scaled from {searched['rows']:,} rows)")


def _run(function: str, *arguments: str) -> dict[str, float]:
    answer: dict[str, float] = measure(f"benchmarks.genres:{function}", *arguments).answer
    return answer


def _take_least(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the least value of each figure: other work on the machine only ever adds."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def _judge_figures(holds: bool) -> str:  # noqa: FBT001
    return "holds" if holds else "MISSED"


if __name__ == "__main__":
    main()
