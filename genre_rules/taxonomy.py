"""The canonical tree: 25 mains and their subgenres, at most three levels, with ids that never change meaning."""

from __future__ import annotations

from dataclasses import dataclass, field

MAIN_COUNT = 25
"""Specification, 2.6."""
DEEPEST_LEVEL = 2
"""Levels 0, 1, 2: maximum depth 3 (specification, 2.6)."""


@dataclass(frozen=True)
class Node:
    """One genre. `is_phrase`: the name means the same inside a longer string; `yields_to`: mains beside which the node adds nothing."""

    id: int
    name: str
    level: int
    parent_id: int | None
    main_id: int
    main_name: str
    aliases: tuple[str, ...] = ()
    is_phrase: bool = True
    yields_to: tuple[str, ...] = ()
    line: int = 0
    description: str = ""

    @property
    def rule_id(self) -> str:
        """The id of the rule for the node's own name and aliases."""
        return f"node-{self.id}"


@dataclass(frozen=True)
class Taxonomy:
    """All nodes in the order of the file: a main, then its subgenres."""

    nodes: tuple[Node, ...]
    by_name: dict[str, Node] = field(init=False, repr=False)
    by_id: dict[int, Node] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Index by name and id; the loader checks uniqueness."""
        object.__setattr__(self, "by_name", {node.name: node for node in self.nodes})
        object.__setattr__(self, "by_id", {node.id: node for node in self.nodes})
