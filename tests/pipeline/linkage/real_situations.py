"""The situations of `situations/`: hand-made records of real music with the grouping that the page of decisions asks for.

README.md in that folder describes the files. What must not live here: which situations are still wrong (test_real_situations.py).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml_documents import read_document

SITUATIONS = Path(__file__).parent / "situations"
PARTS = ("development", "held-out")


@dataclass(frozen=True)
class Situation:
    """One situation; `row` holds the keys of its entry."""

    theme: str
    row: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def part(self) -> str:
        """Return `held-out` for about half of all names, else `development`."""
        return PARTS[zlib.crc32(self.name.encode()) % 2 == 0]

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """Return the entries under a single letter."""
        return {key: value for key, value in self.row.items() if len(key) == 1}

    @property
    def groups(self) -> set[frozenset[str]]:
        return {frozenset(group) for group in self.row["groups"].split()}


def load_situations(*themes: str) -> list[Situation]:
    """Return the situations of these files, or of all."""
    paths = [SITUATIONS / f"{theme}.yaml" for theme in themes] or sorted(SITUATIONS.glob("*.yaml"))
    return [Situation(path.stem, row) for path in paths for row in read_document(path).read_plain()["situations"]]
