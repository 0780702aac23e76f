"""Tags: the nodes that a string means, with the rules that decided them, and which of several tags stand together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from genre_rules.taxonomy import Node


@dataclass(frozen=True)
class Tag:
    """One node that a string means, and the rule that decided it."""

    node: Node
    rule_id: str


def keep_finest(tags: Sequence[Tag]) -> list[Tag]:
    """Leave out a node when another rule says one below it: `merengue` is Merengue, not Merengue and Latin."""
    above = {(tag.rule_id, node_id) for tag in tags if tag.node.level for node_id in (tag.node.parent_id, tag.node.main_id)}
    return [tag for tag in tags if not any(node_id == tag.node.id and rule_id != tag.rule_id for rule_id, node_id in above)]


def suppress_umbrellas(tags: Iterable[Tag]) -> tuple[Tag, ...]:
    """Keep each node once, in order, without nodes that yield to a main above another tag (`Electronic` beside `Deep House`)."""
    unique: dict[int, Tag] = {}
    for tag in tags:
        unique.setdefault(tag.node.id, tag)
    present = {tag.node.main_name for tag in unique.values()}
    return tuple(tag for tag in unique.values() if present.isdisjoint(tag.node.yields_to))
