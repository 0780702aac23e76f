"""Genre lists that others publish, and their mapping onto our tree. The lists are CSV files beside this module; SOURCES.txt names them.

The mapping asks the rules, so it changes with them and needs no review of its own. The classification of recordings does not use it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from genre_rules.classify import Classifier

FOLDER = Path(__file__).parent
VOCABULARIES = {
    "catalog_a": "catalog_a",
    "catalog_b": "catalog_b",
    "scenes": "streamsvc_a",
    "store_a": "store_a",
    "streamsvc_b": "streamsvc_b",
    "tagger": "catalog_b",
}
"""The published lists, and the platform whose rules read each: names of scenes are written as streamsvc_a writes them."""


class Mapping(NamedTuple):
    """One name of a list and one of its nodes. A name that is no genre of the tree has one mapping without a node and a rule."""

    vocabulary: str
    parent: str
    name: str
    position: int
    genre_id: int | None
    rule_id: str | None


def map_vocabularies(classifier: Classifier) -> Iterator[Mapping]:
    """Yield the nodes of every name, in the order of lists, parents and names; `parent` is empty where the list has none."""
    for vocabulary, platform in sorted(VOCABULARIES.items()):
        with (FOLDER / f"{vocabulary}.csv").open(encoding="utf-8", newline="") as file:
            for parent, name in sorted((row["parent"], row["name"]) for row in csv.DictReader(file)):
                tags = classifier.classify(platform, name, parent).tags
                for position, tag in enumerate(tags):
                    yield Mapping(vocabulary, parent, name, position, tag.node.id, tag.rule_id)
                if not tags:
                    yield Mapping(vocabulary, parent, name, 0, None, None)
