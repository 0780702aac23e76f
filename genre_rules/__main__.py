"""`python -m genre_rules lint | explain STRING [--platform P --parent X] | classify IN.csv OUT.csv`."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from genre_rules.classify import Classifier
from genre_rules.compile import compile_book
from genre_rules.lint import lint
from genre_rules.load import PLATFORMS, RuleError, load_book


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 1 when something is to be mended."""
    parser = argparse.ArgumentParser(prog="python -m genre_rules", description="The genre rules: check them, ask them.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lint", help="check the rules against each other and run every example")
    explain = commands.add_parser("explain", help="what a string means, and why")
    explain.add_argument("string")
    explain.add_argument("--platform", choices=PLATFORMS, default="catalog_b")
    explain.add_argument("--parent", default="", help="the genre above it in the platform's own list")
    classify = commands.add_parser("classify", help="read platform,parent,string; write them with mains,subgenres,rule_ids")
    classify.add_argument("source", type=Path)
    classify.add_argument("target", type=Path)
    asked = parser.parse_args(arguments)
    try:
        book = load_book()
    except RuleError as error:
        print(error, file=sys.stderr)
        return 1
    if asked.command == "lint":
        findings = lint(book)
        for finding in findings:
            print(finding)
        print(f"{len(book.rules)} rules, {len(book.taxonomy.nodes)} nodes, {len(findings)} findings")
        return int(bool(findings))
    classifier = Classifier(compile_book(book))
    if asked.command == "explain":
        return _explain(classifier, asked.platform, asked.string, asked.parent)
    return _classify(classifier, asked.source, asked.target)


def _explain(classifier: Classifier, platform: str, string: str, parent: str) -> int:
    answer = classifier.classify(platform, string, parent)
    for step in answer.path:
        print(step)
    for tag in answer.tags:
        print(f"-> {tag.node.main_name}" + (f" > {tag.node.name}" if tag.node.level else "") + f"  (rule {tag.rule_id})")
    if not answer.tags:
        print("-> nothing: " + ("known to be no genre" if answer.is_known else "no rule knows it"))
    return 0


def _classify(classifier: Classifier, source: Path, target: Path) -> int:
    with source.open(encoding="utf-8", newline="") as read, target.open("w", encoding="utf-8", newline="") as written:
        rows = csv.DictReader(read)
        missing = {"platform", "string"} - set(rows.fieldnames or ())
        if missing:
            print(f"{source}: no column {', '.join(sorted(missing))}; the first line names platform,parent,string", file=sys.stderr)
            return 1
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(("platform", "parent", "string", "mains", "subgenres", "rule_ids"))
        for row in rows:
            tags = classifier.classify(row["platform"], row["string"], row.get("parent") or "").tags
            mains = dict.fromkeys(tag.node.main_name for tag in tags)
            subgenres = dict.fromkeys(tag.node.name for tag in tags if tag.node.level)
            rules = dict.fromkeys(tag.rule_id for tag in tags)
            writer.writerow(
                (row["platform"], row.get("parent") or "", row["string"], *("|".join(values) for values in (mains, subgenres, rules)))
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
