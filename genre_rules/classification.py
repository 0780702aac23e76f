"""The answer of the classifier for one string: its nodes, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from genre_rules.tags import Tag


@dataclass(frozen=True)
class Classification:
    """The meaning of a string.

    `is_known`: a rule knows it, if only as no genre; `path`: each step to the answer; `fired`: ids of all rules that fired.
    """

    tags: tuple[Tag, ...]
    is_known: bool
    path: tuple[str, ...] = field(default=(), compare=False)
    fired: tuple[str, ...] = field(default=(), compare=False)

    @property
    def mains(self) -> tuple[str, ...]:
        """The names of the mains, in order, each once."""
        return tuple(dict.fromkeys(tag.node.main_name for tag in self.tags))


def collect_steps(answers: Iterable[Classification]) -> tuple[str, ...]:
    """Return the steps of all answers, in order."""
    return tuple(step for answer in answers for step in answer.path)


def collect_fired(answers: Iterable[Classification]) -> tuple[str, ...]:
    """Return the ids of the rules that fired for any of the answers, in order."""
    return tuple(rule_id for answer in answers for rule_id in answer.fired)
