"""A source string -> nodes of the tree.

The order in which a string is asked about itself; the first answer wins:

1. dropped: the whole string is known to be no genre (years, places, moods, roles), unless a rule speaks of it on this platform or parent
2. exact: the whole string is a rule's, the narrowest scope first (platform and parent, parent, platform, everywhere)
3. parts: split at strong separators, each part asked from 1; a path (`A→B`) is its last part that says something, under the part before
4. phrases: longest match takes its words; then place, `unless` and what may be left over
5. patterns: regular expressions, the few that need one

An exact rule that emits nothing says that the string is no genre of the tree. Distinct strings only: callers join back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from genre_rules.normal_form import STRONG_SEPARATORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from genre_rules.compile import CompiledBook, CompiledRule
    from genre_rules.taxonomy import Node

ARROW = "\u2192"
CONNECTORS = frozenset(("and", "n", "y", "e", "et", "und", "the", "music"))
"""Words that may always be left over."""


@dataclass(frozen=True)
class Tag:
    """One node that a string means, and the rule that says so."""

    node: Node
    rule_id: str


@dataclass(frozen=True)
class Classification:
    """What a string means. `is_known`: some rule knows it, if only as no genre; `path`: what was asked, for a reader."""

    tags: tuple[Tag, ...]
    is_known: bool
    path: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class _Match:
    start: int
    end: int
    rule: CompiledRule


class Classifier:
    """Answers strings out of a compiled book."""

    def __init__(self, book: CompiledBook) -> None:
        """`book` as `compile_book` makes it."""
        self.book = book

    def classify(self, platform: str, string: str, parent: str = "") -> Classification:
        """What `string` of `platform` means, below `parent` in that platform's own list (empty: none)."""
        return self._ask(platform, string, self.book.spellings.normalise(parent))

    def _ask(self, platform: str, string: str, parent: str) -> Classification:
        form = self.book.spellings.normalise(string)
        exact = [rule for rule in self.book.exact.get(form, ()) if rule.fits(platform, parent)]
        narrowest = max((rule.scope for rule in exact), default=0)
        if not narrowest and self._is_dropped(form):
            return Classification((), is_known=True, path=(f"{form!r} is dropped",))
        if exact:
            return self._answer([rule for rule in exact if rule.scope == narrowest], f"{form!r} exactly")
        parts = [part for part in STRONG_SEPARATORS.split(string) if part.strip()]
        if len(parts) > 1:
            return self._path(platform, string) if ARROW in string else self._parts(platform, parts, parent)
        return self._inside(platform, form, parent)

    def _is_dropped(self, form: str) -> bool:
        pattern = self.book.drop_pattern
        return not form or form in self.book.drops or bool(pattern and pattern.fullmatch(form))

    def _path(self, platform: str, string: str) -> Classification:
        steps = [step.strip() for step in string.split(ARROW) if step.strip()]
        known = False
        for index in range(len(steps) - 1, -1, -1):
            above = self.book.spellings.normalise(steps[index - 1]) if index else ""
            answer = self._ask(platform, steps[index], above)
            known = known or answer.is_known
            if answer.tags:
                return Classification(answer.tags, is_known=True, path=(f"path step {steps[index]!r}", *answer.path))
        return Classification((), is_known=known, path=("no step of the path says anything",))

    def _parts(self, platform: str, parts: list[str], parent: str) -> Classification:
        answers = [self._ask(platform, part, parent) for part in parts]
        tags = suppress_umbrellas(tag for answer in answers for tag in answer.tags)
        path = tuple(f"part {part!r}: {step}" for part, answer in zip(parts, answers, strict=True) for step in answer.path)
        return Classification(tags, is_known=all(answer.is_known for answer in answers) or bool(tags), path=path)

    def _inside(self, platform: str, form: str, parent: str) -> Classification:
        words = form.split()
        if not self.book.negations.isdisjoint(words):
            return Classification((), is_known=False, path=(f"{form!r} negates",))
        matches = self._phrases(platform, words, parent)
        if matches:
            return self._answer([match.rule for match in matches], f"{form!r} by phrase")
        fired = [rule for pattern, rule in self.book.patterns if rule.fits(platform, parent) and pattern.fullmatch(form)]
        if fired:
            return self._answer(fired, f"{form!r} by pattern")
        return Classification((), is_known=False, path=(f"no rule for {form!r}",))

    def _phrases(self, platform: str, words: list[str], parent: str) -> list[_Match]:
        """Matches that survive: not inside a longer one, in their place, not vetoed, nothing strange left over."""
        found = [match for match in self._candidates(platform, words, parent) if not _is_vetoed(match.rule, words)]
        found = [m for m in found if not any(_contains(other, m) for other in found)]
        last = [m for m in found if m.end == len(words)]
        fitting = [m for m in found if m.rule.place == "anywhere" or m in last or (m.rule.place == "head" and m.start == 0 and not last)]
        covered = {index for match in fitting for index in range(match.start, match.end)}
        left = [word for index, word in enumerate(words) if index not in covered and word not in CONNECTORS]
        strange = [word for word in left if word not in self.book.modifiers]
        return [m for m in fitting if self._may_leave(m.rule, platform, left, strange)]

    def _may_leave(self, rule: CompiledRule, platform: str, left: list[str], strange: list[str]) -> bool:
        if rule.residual == "none":
            return not left
        return rule.residual == "any" or platform in self.book.curated or not strange

    def _candidates(self, platform: str, words: list[str], parent: str) -> list[_Match]:
        found: list[_Match] = []
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + self.book.longest) + 1):
                rules = [rule for rule in self.book.phrases.get(" ".join(words[start:end]), ()) if rule.fits(platform, parent)]
                if rules:
                    narrowest = max(rule.scope for rule in rules)
                    found.extend(_Match(start, end, rule) for rule in rules if rule.scope == narrowest)
        return found

    def _answer(self, rules: Iterable[CompiledRule], how: str) -> Classification:
        rules = list(rules)
        tags = [Tag(self.book.taxonomy.by_id[node_id], rule.id) for rule in rules for node_id in rule.emit]
        path = tuple(f"{how}: rule {rule.id}" for rule in rules)
        return Classification(suppress_umbrellas(tags), is_known=True, path=path)


def _is_vetoed(rule: CompiledRule, words: list[str]) -> bool:
    text = f" {' '.join(words)} "
    return any(f" {phrase} " in text for phrase in rule.unless)


def _contains(longer: _Match, match: _Match) -> bool:
    return longer.start <= match.start and match.end <= longer.end and (longer.end - longer.start) > (match.end - match.start)


def suppress_umbrellas(tags: Iterable[Tag]) -> tuple[Tag, ...]:
    """Each node once, in order; nodes that yield to a main that another tag is below are left out (`Electronic` beside `Deep House`)."""
    unique: dict[int, Tag] = {}
    for tag in tags:
        unique.setdefault(tag.node.id, tag)
    present = {tag.node.main_name for tag in unique.values()}
    return tuple(tag for tag in unique.values() if present.isdisjoint(tag.node.yields_to))
