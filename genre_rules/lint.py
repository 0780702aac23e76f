"""Whether the rules agree with each other and with their examples: what a single rule cannot know about itself.

failing       an example that does not hold
contradiction two exact rules of one scope give one string different meanings
dead          a rule that no string can reach: the string is dropped before, or normalises to nothing
redundant     a rule that says what the tree says already
orphan        a node whose own name does not lead to it on any platform
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from genre_rules.classify import Classifier
from genre_rules.compile import compile_book
from genre_rules.load import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from genre_rules.compile import CompiledBook, CompiledRule
    from genre_rules.load import Rule, RuleBook


@dataclass(frozen=True)
class Finding:
    """One thing to mend: `place` is file:line or a node's name."""

    kind: str
    place: str
    message: str

    def __str__(self) -> str:
        """One line for a reader."""
        return f"{self.place}: {self.kind}: {self.message}"


def lint(book: RuleBook) -> list[Finding]:
    """All findings, in the order of the files."""
    compiled = compile_book(book)
    classifier = Classifier(compiled)
    return [
        *(finding for rule in book.rules for finding in _examples(rule, classifier)),
        *_contradictions(compiled),
        *(finding for rule in book.rules for finding in _dead(rule, compiled)),
        *_orphans(compiled, classifier),
    ]


def _examples(rule: Rule, classifier: Classifier) -> Iterator[Finding]:
    platform = rule.sources[0] if rule.sources else "catalog_b"
    parent = rule.parent[0] if rule.parent else ""
    for text, expected in (*((text, True) for text in rule.yes), *((text, False) for text in rule.no)):
        answer = classifier.classify(platform, text, parent)
        fires = rule.id in {tag.rule_id for tag in answer.tags}
        if fires != expected:
            how = "does not fire" if expected else "fires"
            yield Finding("failing", f"{rule.file}:{rule.line}", f"rule {rule.id} {how} on {text!r}: {'; '.join(answer.path)}")


def _contradictions(book: CompiledBook) -> Iterator[Finding]:
    for form, rules in sorted(book.exact.items()):
        for index, first in enumerate(rules):
            for second in rules[index + 1 :]:
                if _overlap(first, second) and set(first.emit) != set(second.emit):
                    yield Finding("contradiction", repr(form), f"rules {first.id} and {second.id} of one scope differ; narrow or join them")


def _overlap(first: CompiledRule, second: CompiledRule) -> bool:
    """Whether one string of one platform and parent can fire both: only rules of equal scope answer together."""
    shared_platform = not first.sources or not second.sources or bool(first.sources & second.sources)
    shared_parent = not first.parent or not second.parent or bool(first.parent & second.parent)
    return first.scope == second.scope and shared_platform and shared_parent


def _dead(rule: Rule, book: CompiledBook) -> Iterator[Finding]:
    place = f"{rule.file}:{rule.line}"
    for text in () if rule.kind == "regex" else rule.match:
        form = book.spellings.normalise(text)
        if not form:
            yield Finding("dead", place, f"rule {rule.id}: {text!r} has no letters or digits; write the words")
        elif rule.kind == "exact" and not (rule.sources or rule.parent) and form in book.drops:
            yield Finding("dead", place, f"rule {rule.id}: {text!r} is dropped before; take it out of drop.yaml or scope the rule")
        elif rule.kind == "exact" and not (rule.sources or rule.parent):
            own = {node_id for other in book.exact[form] if other.id.startswith("node-") for node_id in other.emit}
            emitted = {node_id for other in book.exact[form] if other.id == rule.id for node_id in other.emit}
            if own and own == emitted:
                yield Finding("redundant", place, f"rule {rule.id}: {text!r} means that by taxonomy.yaml already; take it out")


def _orphans(book: CompiledBook, classifier: Classifier) -> Iterator[Finding]:
    for node in book.taxonomy.nodes:
        reached = any(node.id in {tag.node.id for tag in classifier.classify(platform, node.name).tags} for platform in PLATFORMS)
        if not reached:
            yield Finding("orphan", f"taxonomy.yaml:{node.line}", f"{node.name!r} is not what its own name means on any platform")
