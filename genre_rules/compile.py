"""Rule book -> classifier: everything normalised once and laid into dictionaries, so that a string costs look-ups, not 500 patterns.

A node's own name and aliases are rules too (`node-<id>`): exact everywhere, and inside longer strings as far as the node allows it. What
must not live here: the order in which the tiers are asked (classify.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genre_rules.normal_form import Spellings
from genre_rules.separators import listed_names
from genre_rules.slips import Slips

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from genre_rules.load import Rule, RuleBook
    from genre_rules.taxonomy import Node, Taxonomy


@dataclass(frozen=True)
class Above:
    """The parent of a string in its platform's own list: its normal form, and the normal names of the nodes and mains that it means."""

    form: str = ""
    means: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class CompiledRule:
    """A rule in normal form; `emit` are node ids, empty when the rule says `this is no genre of the tree`; `is_name`: a node's own name.

    Compared as the one object that it is: hashing nine fields for every string was a tenth of all time.
    """

    id: str
    emit: tuple[int, ...]
    sources: frozenset[str] = frozenset()
    parent: frozenset[str] = frozenset()
    unless: tuple[str, ...] = ()
    residual: str = "modifiers"
    place: str = "anywhere"
    is_guard: bool = False
    is_name: bool = False

    def scope(self, platform: str, above: Above) -> int:
        """How narrowly the rule speaks about this platform and parent: 0 everywhere, -1 not at all.

        A parent that the rule names weighs 4, one that means what it names 2 (`Dance` is Electronic), the platform 1.
        """
        if self.sources and platform not in self.sources:
            return -1
        if not self.parent:
            return int(bool(self.sources))
        if above.form in self.parent:
            return 4 + bool(self.sources)
        return -1 if above.means.isdisjoint(self.parent) else 2 + bool(self.sources)


SHORTEST_SQUEEZED = 6
"""Letters."""


@dataclass(frozen=True)
class CompiledBook:
    """What a classifier looks things up in.

    `squeezed`: exact names and phrases without their spaces; `spaced`: phrases by their form without.
    `phrase_lengths`: first word of a phrase -> numbers of words of such phrases; `any_pattern`: all patterns in one; `correct`: words that
    are no slip of another; `compounds`: the exact and guarded names that hold separators, by `compound_form`; `longest`: words of the
    longest phrase.
    """

    taxonomy: Taxonomy
    spellings: Spellings
    exact: dict[str, tuple[CompiledRule, ...]]
    squeezed: dict[str, tuple[CompiledRule, ...]]
    spaced: dict[str, str]
    compounds: dict[str, tuple[CompiledRule, ...]]
    phrases: dict[str, tuple[CompiledRule, ...]]
    phrase_lengths: dict[str, tuple[int, ...]]
    patterns: tuple[tuple[re.Pattern[str], CompiledRule], ...]
    any_pattern: re.Pattern[str] | None
    drop_rules: dict[str, tuple[CompiledRule, ...]]
    drops: frozenset[str]
    drop_pattern: re.Pattern[str] | None
    modifiers: frozenset[str]
    negations: frozenset[str]
    function_words: frozenset[str]
    tails: frozenset[str]
    behind: frozenset[str]
    curated: frozenset[str]
    geography: frozenset[str]
    openers: frozenset[str]
    bearers: frozenset[str]
    homely_heads: frozenset[str]
    homely_beside: frozenset[str]
    alone: frozenset[str]
    everyday: frozenset[str]
    correct: frozenset[str]
    path_marks: dict[str, tuple[str, ...]]
    slips: Slips
    longest: int

    def fitting_patterns(self, form: str) -> list[tuple[re.Pattern[str], CompiledRule]]:
        """The patterns, with their rules, that fit the whole form."""
        if self.any_pattern is None or not self.any_pattern.fullmatch(form):
            return []
        return [(pattern, rule) for pattern, rule in self.patterns if pattern.fullmatch(form)]


def compile_book(book: RuleBook) -> CompiledBook:
    """The book in the form in which strings are asked of it."""
    spellings = Spellings(book.words.spellings)
    exact: dict[str, list[CompiledRule]] = {}
    phrases: dict[str, list[CompiledRule]] = {}
    drop_rules: dict[str, list[CompiledRule]] = {}
    kinds: dict[str, dict[str, list[CompiledRule]]] = {"exact": exact, "phrase": phrases, "drop": drop_rules, "split_guard": {}}
    compounds: dict[str, list[CompiledRule]] = {}
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
            continue
        for form in dict.fromkeys(map(spellings.normalise, written.match)):
            kinds[written.kind].setdefault(form, []).append(rule)
        for text in written.match if written.kind in ("exact", "split_guard") else ():
            names = listed_names(text)
            if len(names) > 1:
                compounds.setdefault(compound_form(names, spellings), []).append(rule)
    return CompiledBook(
        taxonomy=book.taxonomy,
        spellings=spellings,
        exact=_frozen(exact),
        squeezed=_squeezed(exact, phrases),
        spaced={form.replace(" ", ""): form for form in sorted(phrases)},
        compounds=_frozen(compounds),
        phrases=_frozen(phrases),
        phrase_lengths=_lengths(phrases),
        patterns=tuple(patterns),
        any_pattern=_any_of(pattern.pattern for pattern, _ in patterns),
        drop_rules=_frozen(drop_rules),
        drops=_forms(book.drops, spellings),
        drop_pattern=_any_of(book.drop_patterns),
        modifiers=_words(book.words.modifiers, spellings) | _words((n.name for n in book.taxonomy.nodes if n.is_phrase), spellings),
        negations=_forms(book.words.negations, spellings),
        function_words=_forms(book.words.function_words, spellings),
        tails=_forms(book.words.tails, spellings),
        behind=_words((*book.words.behind, *book.words.tails), spellings),
        curated=frozenset(book.words.curated),
        geography=_words(book.words.geography, spellings),
        openers=_forms(book.words.openers, spellings),
        bearers=_forms(book.words.bearers, spellings),
        homely_heads=_forms(book.words.homely_heads, spellings),
        homely_beside=_forms(book.words.homely_beside, spellings),
        alone=_forms(book.words.alone, spellings),
        everyday=_forms(book.words.everyday, spellings),
        correct=_words(
            (*book.words.modifiers, *book.words.tails, *book.words.bearers, *book.words.behind, *book.words.everyday), spellings
        ),
        path_marks=book.words.path_marks,
        slips=Slips(
            _words((*(form for form in phrases if " " not in form), *(node.name for node in book.taxonomy.nodes)), spellings),
            names=_forms((node.name for node in book.taxonomy.nodes), spellings),
            places=_words(book.words.geography, spellings),
        ),
        longest=max((form.count(" ") + 1 for form in phrases), default=0),
    )


def compound_form(names: Iterable[str], spellings: Spellings) -> str:
    """The normal form of a name that holds separators, with them: `folk|world|and country`."""
    return "|".join(map(spellings.normalise, names))


def _squeezed(*tiers: dict[str, list[CompiledRule]]) -> dict[str, tuple[CompiledRule, ...]]:
    """Rules by their form without spaces, the first tier's where both have one; short forms are left out: they could be anything."""
    found: dict[str, tuple[CompiledRule, ...]] = {}
    for forms in tiers:
        for form, rules in forms.items():
            if len(form.replace(" ", "")) >= SHORTEST_SQUEEZED:
                found.setdefault(form.replace(" ", ""), tuple(rules))
    return found


def _lengths(phrases: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """First word of a phrase -> how many words such phrases have: most words begin none."""
    found: dict[str, set[int]] = {}
    for form in phrases:
        words = form.split()
        if words:
            found.setdefault(words[0], set()).add(len(words))
    return {word: tuple(sorted(lengths)) for word, lengths in found.items()}


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for many: mostly none fits, and that costs one look."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined) if joined else None


def _frozen(rules: dict[str, list[CompiledRule]]) -> dict[str, tuple[CompiledRule, ...]]:
    return {form: tuple(found) for form, found in rules.items()}


def _forms(texts: Iterable[str], spellings: Spellings) -> frozenset[str]:
    return frozenset(map(spellings.normalise, texts))


def _words(forms: Iterable[str], spellings: Spellings) -> frozenset[str]:
    """The single words of all forms. Words of the tree's own names are modifiers: beside a head word they only describe (`jazz rap`)."""
    return frozenset(word for form in forms for word in spellings.normalise(form).split())


def _node_rules(node: Node, spellings: Spellings) -> Iterator[tuple[str, CompiledRule, bool]]:
    name = spellings.normalise(node.name)
    for form in dict.fromkeys((name, *map(spellings.normalise, node.aliases))):
        is_head = node.level == 0 or " " not in form
        rule = CompiledRule(node.rule_id, (node.id,), place="head" if is_head else "anywhere", is_name=form == name)
        yield form, rule, node.is_phrase


def _compiled(rule: Rule, book: RuleBook, spellings: Spellings) -> CompiledRule:
    return CompiledRule(
        id=rule.id,
        emit=tuple(book.taxonomy.by_name[name].id for name in rule.emit),
        sources=frozenset(rule.sources),
        parent=frozenset(map(spellings.normalise, rule.parent)),
        unless=tuple(map(spellings.normalise, rule.unless)),
        residual=rule.residual,
        place=rule.place,
        is_guard=rule.kind == "split_guard",
    )
