"""The compiled rule book: rules normalised once and stored in dictionaries, so a string costs lookups and not 500 patterns.

A node's own name and aliases are rules too (`node-<id>`): exact everywhere, and inside longer strings if the node allows it. The order of
the tests belongs in classify.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genre_rules.normal_form import Spellings, simplify
from genre_rules.separators import split_names
from genre_rules.typo_correction import TypoCorrector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from genre_rules.carriers import Carriers
    from genre_rules.frames import Frame
    from genre_rules.load import Rule, RuleBook
    from genre_rules.taxonomy import Node, Taxonomy


@dataclass(frozen=True)
class Above:
    """The parent of a string in its platform's own list: its normal form, and the normal names of the nodes and mains that it means.

    `kinds`: the sides of a parent such as `Funk / Soul`, then these names, nodes before mains.
    """

    form: str = ""
    means: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class CompiledRule:
    """A rule in normal form. `emit` are node ids, empty for `this is not a genre of the tree`; `is_name`: a node's own name.

    Compared by identity: hashing nine fields for every string took a tenth of the total time.
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

    def find_scope(self, platform: str, above: Above) -> int:
        """Return how narrowly the rule applies to this platform and parent: 0 everywhere, -1 not at all.

        A parent that the rule names weighs 4, a parent with the same meaning 2 (`Dance` is Electronic), the platform 1.
        """
        if self.sources and platform not in self.sources:
            return -1
        if not self.parent:
            return int(bool(self.sources))
        if above.form in self.parent:
            return 4 + bool(self.sources)
        return -1 if above.means.isdisjoint(self.parent) else 2 + bool(self.sources)

    def is_vetoed(self, form: str) -> bool:
        """Return whether one of the rule's `unless` stands in the form."""
        return bool(self.unless) and any(f" {phrase} " in f" {form} " for phrase in self.unless)


def select_narrowest(rules: Sequence[CompiledRule], platform: str, above: Above) -> tuple[Sequence[CompiledRule], int]:
    """Return the rules with the narrowest scope for this platform and parent, and that scope; none and -1 when no rule applies."""
    if not rules:
        return [], -1
    if len(rules) == 1:
        scope = rules[0].find_scope(platform, above)
        return (rules, scope) if scope >= 0 else ([], -1)
    scopes = [rule.find_scope(platform, above) for rule in rules]
    best = max(scopes)
    return ([rule for rule, scope in zip(rules, scopes, strict=True) if scope == best], best) if best >= 0 else ([], -1)


SHORTEST_SQUEEZED = 6
"""The least letters of a form that is also found without its spaces."""


@dataclass(frozen=True)
class CompiledBook:
    """The lookup tables of a classifier.

    `squeezed`: exact names and phrases without their spaces; `spaced`: phrases by their form without spaces. `phrase_lengths`: first word
    of a phrase -> numbers of words of such phrases. `any_pattern`: all patterns in one. `correct`: words that are not typing errors of
    another. `compounds`: the exact and guarded names that contain separators, by `join_normal_forms`. `longest`: words of the longest
    phrase. `bare`: names that stand in lists without separators. `own_names`: names of nodes, without aliases. `peoples`: a people in any
    language -> in English; `nouns`: names of nodes that are never an adjective behind another; `vocabulary`: the words that hashtags are
    made of; `describing`: words that only describe a genre behind them.
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
    everyday_squeezed: frozenset[str]
    correct: frozenset[str]
    path_marks: dict[str, tuple[str, ...]]
    typo_corrector: TypoCorrector
    longest: int
    bare: frozenset[str]
    distinct: frozenset[str]
    own_names: frozenset[str]
    real_words: frozenset[str]
    frames: tuple[Frame, ...]
    peoples: dict[str, str]
    nouns: frozenset[str]
    carriers: Carriers
    vocabulary: frozenset[str]
    describing: frozenset[str]

    def find_patterns(self, form: str) -> list[tuple[re.Pattern[str], CompiledRule]]:
        """Return the patterns that fit the whole form, with their rules."""
        # Most strings fit no pattern: one combined search says so.
        if self.any_pattern is None or not self.any_pattern.fullmatch(form):
            return []
        return [(pattern, rule) for pattern, rule in self.patterns if pattern.fullmatch(form)]


def compile_book(book: RuleBook) -> CompiledBook:
    """Compile the book into lookup tables."""
    spellings = Spellings({**book.words.spellings, **_find_postposed(book)})
    exact: dict[str, list[CompiledRule]] = {}
    phrases: dict[str, list[CompiledRule]] = {}
    drop_rules: dict[str, list[CompiledRule]] = {}
    kinds: dict[str, dict[str, list[CompiledRule]]] = {"exact": exact, "phrase": phrases, "drop": drop_rules, "split_guard": {}}
    compounds: dict[str, list[CompiledRule]] = {}
    patterns: list[tuple[re.Pattern[str], CompiledRule]] = []
    for node in book.taxonomy.nodes:
        for form, rule, is_phrase in _compile_node(node, spellings):
            exact.setdefault(form, []).append(rule)
            if is_phrase:
                phrases.setdefault(form, []).append(rule)
    # Rules of whole groups of peoples come last and leave the strings that another rule names to it.
    for written in sorted(book.rules, key=lambda rule: rule.is_general):
        rule = _compile_rule(written, book, spellings)
        if written.kind == "regex":
            patterns.extend((re.compile(pattern), rule) for pattern in written.match)
            continue
        for form in dict.fromkeys(map(spellings.normalise, written.match)):
            if written.is_general and (form in exact or form in phrases):
                continue
            kinds[written.kind].setdefault(form, []).append(rule)
        # A name that holds separators is cut like any string before it is looked up, so it is also indexed by its parts.
        for text in written.match if written.kind in ("exact", "split_guard") else ():
            names = split_names(text)
            if len(names) > 1:
                compounds.setdefault(join_normal_forms(names, spellings), []).append(rule)
    return CompiledBook(
        taxonomy=book.taxonomy,
        spellings=spellings,
        exact=_freeze(exact),
        squeezed=_index_squeezed(exact, phrases),
        # Sorted, so the same form wins whenever two phrases differ only in their spaces.
        spaced={
            **{form: kept for form, kept in sorted(spellings.variants.items()) if " " not in form and kept in phrases},
            **{form.replace(" ", ""): form for form in sorted(phrases)},
        },
        compounds=_freeze(compounds),
        phrases=_freeze(phrases),
        phrase_lengths=_index_lengths(phrases),
        patterns=tuple(patterns),
        any_pattern=_combine_patterns(pattern.pattern for pattern, _ in patterns),
        drop_rules=_freeze(drop_rules),
        drops=_normalise_forms(book.drops, spellings),
        drop_pattern=_combine_patterns(book.drop_patterns),
        modifiers=_collect_words(book.words.modifiers, spellings)
        | (_collect_words((n.name for n in book.taxonomy.nodes if n.is_phrase), spellings) - _normalise_forms(book.words.bound, spellings)),
        negations=_normalise_forms(book.words.negations, spellings),
        function_words=_normalise_forms(book.words.function_words, spellings),
        tails=_normalise_forms(book.words.tails, spellings),
        behind=_collect_words((*book.words.behind, *book.words.tails), spellings),
        curated=frozenset(book.words.curated),
        geography=_collect_words(book.words.geography, spellings),
        openers=_normalise_forms(book.words.openers, spellings),
        bearers=_normalise_forms(book.words.bearers, spellings),
        homely_heads=_normalise_forms(book.words.homely_heads, spellings),
        homely_beside=_normalise_forms(book.words.homely_beside, spellings),
        alone=_normalise_forms(book.words.alone, spellings),
        everyday_squeezed=frozenset(form.replace(" ", "") for form in _normalise_forms(book.words.everyday, spellings)),
        everyday=_normalise_forms(book.words.everyday, spellings),
        correct=_collect_words(
            (*book.words.modifiers, *book.words.tails, *book.words.bearers, *book.words.behind, *book.words.everyday, *book.words.bound),
            spellings,
        )
        | frozenset(form for form in phrases if " " not in form),
        path_marks=book.words.path_marks,
        typo_corrector=TypoCorrector(
            _collect_words((*(form for form in phrases if " " not in form), *(node.name for node in book.taxonomy.nodes)), spellings)
            | {form for form, kept in spellings.variants.items() if " " not in form and kept in phrases},
            names=_normalise_forms((node.name for node in book.taxonomy.nodes), spellings),
            places=_collect_words(book.words.geography, spellings),
            real_words=book.words.real_words,
            wholes=_index_wholes(book.taxonomy, spellings, exact),
            mains=_normalise_forms((node.name for node in book.taxonomy.nodes if not node.level), spellings),
        ),
        longest=max((form.count(" ") + 1 for form in phrases), default=0),
        bare=_normalise_forms((*(node.name for node in book.taxonomy.nodes if not node.level), *book.words.bare), spellings),
        distinct=_normalise_forms(book.words.distinct, spellings),
        own_names=_normalise_forms((node.name for node in book.taxonomy.nodes), spellings),
        real_words=frozenset(book.words.real_words),
        frames=book.words.frames,
        peoples=_index_peoples(book, spellings),
        carriers=book.words.carriers.normalise(spellings.normalise),
        vocabulary=_collect_words((*phrases, *spellings.variants, *book.words.carriers.behind, *book.words.tails), spellings)
        | frozenset(word for form in (*spellings.variants, *book.words.modifiers) for word in form.split()),
        describing=_collect_words(book.words.modifiers, spellings) | _normalise_forms(book.words.everyday, spellings),
        nouns=_normalise_forms((node.name for node in book.taxonomy.nodes), spellings) - _normalise_forms(book.words.postposed, spellings),
    )


def _index_peoples(book: RuleBook, spellings: Spellings) -> dict[str, str]:
    """Map each people in any language to its English name, and each English name of one word to itself."""
    found = {
        word: spellings.normalise(people) for people, forms in book.words.demonyms.items() for word in (people, *forms) if " " not in word
    }
    groups = (people for peoples in book.words.peoples.values() for people in peoples)
    return {**{people: people for people in groups if " " not in people}, **{simplify(word): people for word, people in found.items()}}


def _find_postposed(book: RuleBook) -> dict[str, tuple[str, ...]]:
    """Return the names of nodes with the adjective behind the noun, as Romance languages write them: `rock psicodelico`."""
    found: dict[str, tuple[str, ...]] = {}
    for node in book.taxonomy.nodes:
        adjective, _, noun = simplify(node.name).partition(" ")
        forms = tuple(f"{noun} {form}" for form in book.words.postposed.get(adjective, ()) if noun)
        if forms:
            found[node.name] = (*book.words.spellings.get(node.name.lower(), ()), *forms)
    return found


def join_normal_forms(names: Iterable[str], spellings: Spellings) -> str:
    """Return the normal form of a name with its separators: `folk|world|and country`."""
    return "|".join(map(spellings.normalise, names))


def _index_squeezed(*tiers: dict[str, list[CompiledRule]]) -> dict[str, tuple[CompiledRule, ...]]:
    """Index rules by their form without spaces; the first tier wins. Short forms are left out, because they are ambiguous."""
    found: dict[str, tuple[CompiledRule, ...]] = {}
    for forms in tiers:
        for form, rules in forms.items():
            if len(form.replace(" ", "")) >= SHORTEST_SQUEEZED:
                found.setdefault(form.replace(" ", ""), tuple(rules))
    return found


def _index_wholes(taxonomy: Taxonomy, spellings: Spellings, exact: Mapping[str, Sequence[CompiledRule]]) -> dict[str, str]:
    """Map names of nodes, and other spellings of such names, without their spaces, to the name's normal form."""
    names = {spellings.normalise(node.name): node for node in taxonomy.nodes}
    found = {name.replace(" ", ""): name for name in names}
    # `hous music`: the word that follows a short name says that it is one.
    found.update({f"{name}music": f"{name} music" for name in names if f"{name} music" in exact})
    # `punkrok`: an alias of several words that ends in a main's name says it as well.
    mains = {name for name, node in names.items() if not node.level}
    found.update(
        {form.replace(" ", ""): form for form in exact if " " in form and form.split()[-1] in mains and not exact[form][0].sources}
    )
    found.update({form.replace(" ", ""): kept for form, kept in spellings.variants.items() if kept in names})
    return found


def _index_lengths(phrases: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Map the first word of each phrase to the lengths of such phrases; most words begin none."""
    found: dict[str, set[int]] = {}
    for form in phrases:
        words = form.split()
        if words:
            found.setdefault(words[0], set()).add(len(words))
    return {word: tuple(sorted(lengths)) for word, lengths in found.items()}


def _combine_patterns(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """Combine many patterns into one expression. Mostly none fits, which then costs one search."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined) if joined else None


def _freeze(rules: dict[str, list[CompiledRule]]) -> dict[str, tuple[CompiledRule, ...]]:
    return {form: tuple(found) for form, found in rules.items()}


def _normalise_forms(texts: Iterable[str], spellings: Spellings) -> frozenset[str]:
    return frozenset(map(spellings.normalise, texts))


def _collect_words(forms: Iterable[str], spellings: Spellings) -> frozenset[str]:
    """Return the single words of all forms.

    Words of the tree's own names are modifiers: beside a head word they only describe (`jazz rap`).
    """
    return frozenset(word for form in forms for word in spellings.normalise(form).split())


def _compile_node(node: Node, spellings: Spellings) -> Iterator[tuple[str, CompiledRule, bool]]:
    name = spellings.normalise(node.name)
    for form in dict.fromkeys((name, *map(spellings.normalise, node.aliases))):
        is_head = node.level == 0 or " " not in form
        rule = CompiledRule(node.rule_id, (node.id,), place="head" if is_head else "anywhere", is_name=form == name)
        yield form, rule, node.is_phrase


def _compile_rule(rule: Rule, book: RuleBook, spellings: Spellings) -> CompiledRule:
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
