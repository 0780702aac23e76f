"""The checks of rules against each other and against their examples, which a single rule cannot do.

- failing: an example that does not hold: a `yes` without the rule's meaning, a `no` on which the rule fires
- contradiction: two rules of one scope give one string different meanings
- dead: a string of a rule that never matches: it normalises to nothing, is dropped before, or its rule vetoes itself
- shadowed: a string of a rule that other rules always answer first
- redundant: a rule with the same meaning as the tree
- orphan: a node whose own name does not lead to it on any platform; a rule file named after no main
- unproven: a regular expression without a `yes` example: nothing shows that it can fire
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from genre_rules.classify import NOTHING_ABOVE, Classifier
from genre_rules.compile import Above, compile_book
from genre_rules.load import PLATFORMS, WHOLE_STRING
from genre_rules.normal_form import simplify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from genre_rules.compile import CompiledBook, CompiledRule
    from genre_rules.load import Rule, RuleBook
    from genre_rules.taxonomy import Taxonomy

FREE_PLATFORM = "catalog_b"
"""The platform for the examples of rules that apply everywhere: its strings are free text."""


@dataclass(frozen=True)
class Finding:
    """One problem; `place` is file:line or a node's name."""

    kind: str
    place: str
    message: str

    def __str__(self) -> str:
        """Return one line for a reader."""
        return f"{self.place}: {self.kind}: {self.message}"


def lint(book: RuleBook) -> list[Finding]:
    """Return all findings, in the order of the files."""
    compiled = compile_book(book)
    classifier = Classifier(compiled)
    return [
        *(finding for rule in book.rules for finding in _check_examples(rule, classifier)),
        *_find_contradictions(compiled),
        *(finding for rule in book.rules for finding in _find_unreachable(rule, compiled, classifier)),
        *(finding for rule in book.rules for finding in _find_redundant(rule, compiled)),
        *_find_orphans(book, compiled, classifier),
    ]


def _build_finding(kind: str, rule: Rule, message: str) -> Finding:
    return Finding(kind, f"{rule.file}:{rule.line}", f"rule {rule.id}: {message}")


def _check_examples(rule: Rule, classifier: Classifier) -> Iterator[Finding]:
    # `_find_unreachable` cannot try a pattern, so only an example shows that it can fire.
    if (rule.kind == "regex" or rule.is_general) and not rule.yes:
        yield _build_finding("unproven", rule, "a regular expression or a group of peoples needs a `yes` example that shows it fire")
    for platform in rule.sources or (FREE_PLATFORM,):
        for text in rule.yes:
            answer = classifier.classify(platform, text, next(iter(rule.parent), ""))
            means = {tag.node.name for tag in answer.tags}
            if rule.id not in answer.fired and not (rule.emit and means.issuperset(rule.emit)):
                yield _build_finding("failing", rule, f"does not fire on {text!r} of {platform}: {'; '.join(answer.path)}")
        for text in rule.no:
            answer = classifier.classify(platform, text, next(iter(rule.parent), ""))
            if rule.id in answer.fired:
                yield _build_finding("failing", rule, f"fires on {text!r} of {platform}: {'; '.join(answer.path)}")


def _find_contradictions(book: CompiledBook) -> Iterator[Finding]:
    for forms, is_apart in ((book.exact, _is_other_node), (book.phrases, _is_other_main)):
        for form, rules in sorted(forms.items()):
            for index, first in enumerate(rules):
                for second in rules[index + 1 :]:
                    if _is_overlapping(first, second) and is_apart(first, second, book.taxonomy):
                        yield Finding(
                            "contradiction",
                            repr(form),
                            f"rules {first.id} and {second.id} of one scope have different meanings; narrow the scope of one, or join them",
                        )


def _is_other_node(first: CompiledRule, second: CompiledRule, _tree: Taxonomy) -> bool:
    return set(first.emit) != set(second.emit)


def _is_other_main(first: CompiledRule, second: CompiledRule, tree: Taxonomy) -> bool:
    """Return whether phrases differ in their main. Inside one main they may refine each other (`deathcore` is Metal, and Deathcore)."""
    mains = [{tree.by_id[node_id].main_id for node_id in rule.emit} for rule in (first, second)]
    return mains[0] != mains[1]


def _is_overlapping(first: CompiledRule, second: CompiledRule) -> bool:
    """Return whether one string of one platform and parent can fire both: only rules of equal scope answer together."""
    shared_platform = not first.sources or not second.sources or bool(first.sources & second.sources)
    shared_parent = not first.parent or not second.parent or bool(first.parent & second.parent)
    equal = (bool(first.sources), bool(first.parent)) == (bool(second.sources), bool(second.parent))
    return equal and shared_platform and shared_parent


def _find_unreachable(rule: Rule, book: CompiledBook, classifier: Classifier) -> Iterator[Finding]:
    """Yield strings of the rule on which it never fires in any scope."""
    for text in () if rule.kind == "regex" or rule.is_general else rule.match:
        form = book.spellings.normalise(text)
        if not form:
            yield _build_finding("dead", rule, f"{text!r} has no letters or digits; write the words")
        elif any(f" {phrase} " in f" {form} " for phrase in map(book.spellings.normalise, rule.unless)):
            yield _build_finding("dead", rule, f"{text!r} holds one of its own `unless`; take one of them out")
        # Every scope of the rule is tried: a string may be shadowed on one platform and fire on another.
        elif not any(
            _is_firing(rule, text, platform, parent, classifier)
            for platform in rule.sources or PLATFORMS
            for parent in rule.parent or ("",)
        ):
            answer = classifier.classify(next(iter(rule.sources), FREE_PLATFORM), text, next(iter(rule.parent), ""))
            others = ", ".join(dict.fromkeys(answer.fired))
            if others:
                yield _build_finding("shadowed", rule, f"{text!r} is always answered by {others} first; take it out there or here")
            else:
                yield _build_finding(
                    "dead", rule, f"{text!r} is never reached: {'; '.join(answer.path)}; scope the rule, or take the string out"
                )


def _is_firing(rule: Rule, text: str, platform: str, parent: str, classifier: Classifier) -> bool:
    """Return whether the rule fires on the string alone or, if it is a phrase, beside a word that only describes."""
    if rule.kind == "split_guard":
        above = Above(simplify(parent)) if parent else NOTHING_ABOVE
        return any(r.id == rule.id and r.find_scope(platform, above) >= 0 for r in classifier.find_named(text))
    probes = [text] if rule.kind in WHOLE_STRING or rule.residual == "none" else [text, *(probe.format(text) for probe in _PROBES)]
    return any(rule.id in classifier.classify(platform, string, parent).fired for string in probes)


_PROBES = ("modern {}", "new vintage {}", "swedish new {}", "{} revival", "{} sound")
"""Phrases in words that other rules seldom know together."""


def _find_redundant(rule: Rule, book: CompiledBook) -> Iterator[Finding]:
    if rule.kind != "exact" or rule.sources or rule.parent:
        return
    for text in rule.match:
        rules = book.exact[book.spellings.normalise(text)]
        own = {node_id for other in rules if other.id.startswith("node-") for node_id in other.emit}
        if own and own == {node_id for other in rules if other.id == rule.id for node_id in other.emit}:
            yield _build_finding("redundant", rule, f"{text!r} has that meaning by taxonomy.yaml already; take it out")


def _find_orphans(book: RuleBook, compiled: CompiledBook, classifier: Classifier) -> Iterator[Finding]:
    for node in compiled.taxonomy.nodes:
        reached = any(node.id in {tag.node.id for tag in classifier.classify(platform, node.name).tags} for platform in PLATFORMS)
        if not reached:
            yield Finding("orphan", f"taxonomy.yaml:{node.line}", f"{node.name!r} is not the meaning of its own name on any platform")
    mains = {simplify(node.name).replace(" ", "_") for node in compiled.taxonomy.nodes if node.level == 0}
    for file in sorted({rule.file for rule in book.rules if rule.file}):
        if file.removesuffix(".yaml") not in mains:
            yield Finding(
                "orphan",
                f"{file}:1",
                f"no main has the name of this file; the files are {', '.join(f'{main}.yaml' for main in sorted(mains))}",
            )
