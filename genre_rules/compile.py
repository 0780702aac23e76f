"""Rule book -> classifier: everything normalised once and laid into dictionaries, so that a string costs look-ups, not 500 patterns.

A node's own name and aliases are rules too (`node-<id>`): exact everywhere, and inside longer strings as far as the node allows it. What
must not live here: the order in which the tiers are asked (classify.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genre_rules.normal_form import Spellings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from genre_rules.load import Rule, RuleBook
    from genre_rules.taxonomy import Node, Taxonomy


@dataclass(frozen=True)
class CompiledRule:
    """A rule in normal form; `emit` are node ids, empty when the rule says `this is no genre of the tree`."""

    id: str
    emit: tuple[int, ...]
    sources: frozenset[str] = frozenset()
    parent: frozenset[str] = frozenset()
    unless: tuple[str, ...] = ()
    residual: str = "modifiers"
    place: str = "anywhere"

    def fits(self, platform: str, parent: str) -> bool:
        """Whether the rule speaks about this platform and parent at all."""
        return (not self.sources or platform in self.sources) and (not self.parent or parent in self.parent)

    @property
    def scope(self) -> int:
        """How narrow the rule is: platform and parent 3, parent 2, platform 1, everywhere 0."""
        return 2 * bool(self.parent) + bool(self.sources)


@dataclass(frozen=True)
class CompiledBook:
    """What a classifier looks things up in. `longest`: words of the longest phrase."""

    taxonomy: Taxonomy
    spellings: Spellings
    exact: dict[str, tuple[CompiledRule, ...]]
    phrases: dict[str, tuple[CompiledRule, ...]]
    patterns: tuple[tuple[re.Pattern[str], CompiledRule], ...]
    drops: frozenset[str]
    drop_pattern: re.Pattern[str] | None
    modifiers: frozenset[str]
    negations: frozenset[str]
    curated: frozenset[str]
    longest: int


def compile_book(book: RuleBook) -> CompiledBook:
    """The book in the form in which strings are asked of it."""
    spellings = Spellings(book.words.spellings)
    exact: dict[str, list[CompiledRule]] = {}
    phrases: dict[str, list[CompiledRule]] = {}
    patterns: list[tuple[re.Pattern[str], CompiledRule]] = []
    for node in book.taxonomy.nodes:
        for form, rule, is_phrase in _node_rules(node, spellings):
            exact.setdefault(form, []).append(rule)
            if is_phrase:
                phrases.setdefault(form, []).append(rule)
    for written in book.rules:
        rule = _compiled(written, book, spellings)
        if written.kind == "regex":
            patterns.extend((re.compile(pattern), rule) for pattern in written.match)
        for form in () if written.kind == "regex" else dict.fromkeys(map(spellings.normalise, written.match)):
            (phrases if written.kind == "phrase" else exact).setdefault(form, []).append(rule)
    return CompiledBook(
        taxonomy=book.taxonomy,
        spellings=spellings,
        exact={form: tuple(rules) for form, rules in exact.items()},
        phrases={form: tuple(rules) for form, rules in phrases.items()},
        patterns=tuple(patterns),
        drops=frozenset(map(spellings.normalise, book.drops)),
        drop_pattern=re.compile("|".join(f"(?:{pattern})" for pattern in book.drop_patterns)) if book.drop_patterns else None,
        modifiers=_words(book.words.modifiers, spellings) | _words((n.name for n in book.taxonomy.nodes if n.is_phrase), spellings),
        negations=frozenset(map(spellings.normalise, book.words.negations)),
        curated=frozenset(book.words.curated),
        longest=max((form.count(" ") + 1 for form in phrases), default=0),
    )


def _words(forms: Iterable[str], spellings: Spellings) -> frozenset[str]:
    """The single words of all forms. Words of the tree's own names are modifiers: beside a head word they only describe (`jazz rap`)."""
    return frozenset(word for form in forms for word in spellings.normalise(form).split())


def _node_rules(node: Node, spellings: Spellings) -> Iterator[tuple[str, CompiledRule, bool]]:
    for form in dict.fromkeys(map(spellings.normalise, (node.name, *node.aliases))):
        is_head = node.level == 0 or " " not in form
        yield form, CompiledRule(node.rule_id, (node.id,), place="head" if is_head else "anywhere"), node.is_phrase


def _compiled(rule: Rule, book: RuleBook, spellings: Spellings) -> CompiledRule:
    return CompiledRule(
        id=rule.id,
        emit=tuple(book.taxonomy.by_name[name].id for name in rule.emit),
        sources=frozenset(rule.sources),
        parent=frozenset(map(spellings.normalise, rule.parent)),
        unless=tuple(map(spellings.normalise, rule.unless)),
        residual=rule.residual,
        place=rule.place,
    )
