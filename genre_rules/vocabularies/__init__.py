"""Genre lists that others publish, and their mapping onto our tree. The lists are CSV files beside this module; SOURCES.txt names them.

The rules read the names, so the mapping changes with them and needs no review of its own. The classification of recordings does not use it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

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


class Name(NamedTuple):
    """A name of a list, and the platform whose rules read it; `parent` is empty where the list has none."""

    vocabulary: str
    platform: str
    parent: str
    name: str


def list_names() -> list[Name]:
    """Return every name, in the order of lists, parents and names."""
    names = []
    for vocabulary, platform in sorted(VOCABULARIES.items()):
        with (FOLDER / f"{vocabulary}.csv").open(encoding="utf-8", newline="") as file:
            found = sorted((row["parent"], row["name"]) for row in csv.DictReader(file))
        names += [Name(vocabulary, platform, parent, name) for parent, name in found]
    return names
