"""The accuracy of the genre rules on strings whose genres were judged before the rules were touched.

    python -m benchmarks.genre_gold [--gold FILE.csv] [--split test] [--misses]

The file names for each string the most specific right nodes, none if the string is no genre. `wanted_below` is the nearest node that the
tree had when the file was written, for nodes that it did not have. An answer is strictly right if it holds exactly the nodes of the row; on
both sides a node is left out beside one below it, as the build does (docs/design/genres.md, Which source decides).
Rules are tuned on the split `development`; the misses of `test` are read after the rules are finished. A file may hold further splits for
further rounds, `reserve` and `last`: the misses of each are read only after the figures of that round were taken.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from genre_rules import Classifier, compile_book, load_book

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from genre_rules.compile import CompiledBook
    from genre_rules.taxonomy import Node

SPLITS = ("development", "test", "reserve", "last")
GOLD = Path(__file__).parents[1] / "tests" / "genre_rules" / "strict_gold.csv"
STRICT_GOAL, GENRE_GOAL, NONE_GOAL = 0.96, 0.93, 0.005
TODAY, FINEST = "wanted_below", "nodes"
"""Columns of nodes: those that the tree had when the file was written, and the most specific right ones."""


class Judged(NamedTuple):
    """A row of the file and the answer of the rules; `is_listed`: the whole string is in the rules."""

    row: dict[str, str]
    expected: frozenset[str]
    on_todays_tree: frozenset[str]
    answered: frozenset[str]
    expected_mains: frozenset[str]
    mains: frozenset[str]
    is_listed: bool

    @property
    def is_right(self) -> bool:
        """Whether the answer holds exactly the most specific nodes."""
        return self.answered == self.expected


def judge_rows(rows: Iterable[dict[str, str]]) -> list[Judged]:
    """Classify every row and set the answer beside the expected nodes."""
    compiled = compile_book(load_book())
    classifier = Classifier(compiled)
    judged = []
    for row in rows:
        tags = classifier.classify(row["platform"], row["string"], row["parent"]).tags
        expected, coarse = (frozenset(filter(None, row[column].split("|"))) for column in (FINEST, TODAY))
        # A node that the tree did not have stands beside its parent in the second column, at any place.
        known = frozenset(name for name in expected if name in compiled.taxonomy.by_name)
        mains = frozenset(_find_node(compiled, name).main_name for name in (known if known == expected else known | coarse))
        expected, answered = (_leave_lowest(compiled, names) for names in (expected, frozenset(tag.node.name for tag in tags)))
        judged.append(
            Judged(
                row, expected, known | (coarse if known != expected else frozenset()), answered, mains,
                frozenset(tag.node.main_name for tag in tags), _is_listed(compiled, row["string"]),
            )
        )  # fmt: skip
    return judged


def _leave_lowest(compiled: CompiledBook, names: frozenset[str]) -> frozenset[str]:
    """Return the names without those above another: beside Dub, Reggae says nothing more, and the sets differ in naming it."""
    nodes = [compiled.taxonomy.by_name[name] for name in names if name in compiled.taxonomy.by_name]
    above = {node_id for node in nodes if node.level for node_id in (node.parent_id, node.main_id)}
    return names - {node.name for node in nodes if node.id in above}


def _find_node(compiled: CompiledBook, name: str) -> Node:
    return compiled.taxonomy.by_name[name]


def _is_listed(compiled: CompiledBook, string: str) -> bool:
    form = compiled.spellings.normalise(string)
    return form in compiled.exact or form in compiled.phrases or form in compiled.drops or form in compiled.drop_rules


def measure_share(judged: Iterable[Judged], holds: Callable[[Judged], bool]) -> float:
    """Return the share of rows for which `holds`; nan without rows."""
    answers = [holds(row) for row in judged]
    return sum(answers) / len(answers) if answers else float("nan")


def main() -> None:
    """Measure each split and print a table; with --misses also the wrong answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, default=GOLD, help="CSV with split, kind, platform, parent, string, nodes, wanted_below")
    parser.add_argument("--split", choices=SPLITS, help="one split only")
    parser.add_argument("--misses", action="store_true", help="print the wrong answers")
    options = parser.parse_args()
    with options.gold.open(encoding="utf-8", newline="") as file:
        judged = judge_rows(csv.DictReader(file))
    for split in SPLITS:
        rows = [row for row in judged if row.row["split"] == split]
        if rows and options.split in (None, split):
            _print_split(split, rows)
            for row in rows if options.misses else ():
                if not row.is_right:
                    print(f"    {row.row['kind']} {row.row['platform']} {row.row['parent']!r} {row.row['string']!r}: ", end="")
                    print(f"{'|'.join(sorted(row.expected)) or '-'}, answered {'|'.join(sorted(row.answered)) or '-'}")


def _print_split(split: str, rows: list[Judged]) -> None:
    genres = [row for row in rows if row.expected]
    others = [row for row in rows if not row.expected]
    strict, of_genres = (measure_share(some, lambda row: row.is_right) for some in (rows, genres))
    classified = measure_share(others, lambda row: bool(row.answered))
    print(f"{split}: {len(rows)} strings, {len(genres)} genres")
    print(f"  strict                {strict:.3f}, goal >= {STRICT_GOAL} {_judge_figure(strict >= STRICT_GOAL)}")
    print(f"  genres strict         {of_genres:.3f}, goal >= {GENRE_GOAL} {_judge_figure(of_genres >= GENRE_GOAL)}")
    print(f"  no genre, classified  {classified:.4f}, goal <= {NONE_GOAL} {_judge_figure(classified <= NONE_GOAL)}")
    print(f"  genres on the tree of the day of writing {measure_share(genres, lambda r: r.answered == r.on_todays_tree):.3f}, ", end="")
    print(f"mains {measure_share(genres, lambda r: r.mains == r.expected_mains):.3f}")
    unlisted = [row for row in rows if not row.is_listed]
    print(f"  {len(unlisted)} strings that stand nowhere in the rules: strict {measure_share(unlisted, lambda r: r.is_right):.3f}")
    kinds = Counter(row.row["kind"] for row in rows)
    print("  " + ", ".join(f"{kind} {_measure_kind(rows, kind):.2f} of {count}" for kind, count in sorted(kinds.items())))


def _measure_kind(rows: list[Judged], kind: str) -> float:
    return measure_share((row for row in rows if row.row["kind"] == kind), lambda row: row.is_right)


def _judge_figure(holds: bool) -> str:  # noqa: FBT001
    return "holds" if holds else "MISSED"


if __name__ == "__main__":
    main()
