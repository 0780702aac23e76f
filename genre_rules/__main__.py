"""`python -m genre_rules [--rules DIR] lint | lock | explain STRING [--platform P --parent X] | classify IN.csv OUT.csv`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from genre_rules.classify import Classifier
from genre_rules.compile import compile_book
from genre_rules.csv_answers import CsvError, answer_csv
from genre_rules.documents import RuleError
from genre_rules.ids import append_new, find_changed, find_new, read_lock
from genre_rules.lint import lint
from genre_rules.load import FOLDER, PLATFORMS, RuleBook, load_book


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 1 when a file needs a correction."""
    options = build_parser().parse_args(arguments)
    try:
        book = load_book(options.rules)
        if options.command == "lint":
            return _lint(book, options.rules)
        if options.command == "lock":
            added = append_new(book, options.rules)
            print(f"{len(added)} new ids: {', '.join(added) or 'none'}")
            return 0
        classifier = Classifier(compile_book(book))
        if options.command == "explain":
            return _explain(classifier, options.platform, options.string, options.parent)
        answered = answer_csv(options.source, options.target, classifier)
    except (RuleError, CsvError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{answered.rows} rows, {answered.classified} classified", file=sys.stderr)
    if answered.overlong:
        print(
            f"{answered.overlong} rows have more cells than headings: these cells are left out; quote cells that hold commas",
            file=sys.stderr,
        )
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m genre_rules", description="Check the genre rules, or ask them what a string means.")
    parser.add_argument(
        "--rules", type=Path, default=FOLDER, help="folder of taxonomy.yaml, words.yaml, drop.yaml, rules/ (default: the shipped one)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lint", help="check the rules against each other and run every example")
    commands.add_parser("lock", help="append the ids of new rules and nodes to ids.lock; never changes one")
    explain = commands.add_parser("explain", help="show what a string means, and why")
    explain.add_argument("string")
    explain.add_argument("--platform", choices=PLATFORMS, default="catalog_b")
    explain.add_argument("--parent", default="", help="the genre above it in the platform's own list")
    classify = commands.add_parser("classify", help="read platform,parent,string; write every row with mains,subgenres,rule_ids")
    classify.add_argument("source", type=Path)
    classify.add_argument("target", type=Path)
    return parser


def _lint(book: RuleBook, folder: Path) -> int:
    locked = read_lock(folder)
    findings = [*map(str, lint(book)), *find_changed(book, locked)]
    print(*findings, sep="\n", end="\n" if findings else "")
    unlocked = find_new(book, locked)
    if unlocked:
        print(f"{len(unlocked)} ids are not in ids.lock yet: `python -m genre_rules lock` before you commit")
    print(f"{len(book.rules)} rules, {len(book.taxonomy.nodes)} nodes, {len(findings)} findings")
    return int(bool(findings))


def _explain(classifier: Classifier, platform: str, string: str, parent: str) -> int:
    answer = classifier.classify(platform, string, parent)
    for step in answer.path:
        print(step)
    for tag in answer.tags:
        print(f"-> {tag.node.main_name}" + (f" > {tag.node.name}" if tag.node.level else "") + f"  (rule {tag.rule_id})")
    if not answer.tags:
        print("-> nothing: " + ("known not to be a genre" if answer.is_known else "no rule knows it"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
