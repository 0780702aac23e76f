"""What an operator can set for a build, each with its default: read from the environment once, at the edge.

`docs/operations.md` lists them; a test keeps that list and this file equal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


_READERS: dict[str, Callable[[str], object]] = {"int": int, "float": float, "str": str}


@dataclass(frozen=True)
class Settings:
    """Settings of a build; the environment variable of a field is `CATALOG_` + its name in capitals."""

    root: Path = Path("catalog")
    """Folder of the catalog: landing zone, work files, snapshots."""
    sources: Path = Path("sources.yaml")
    """Which dump of which platform lies where."""
    dumps: Path | None = None
    """A folder with one sub-folder per platform; replaces `sources` when set."""
    overrides: Path | None = None
    """The reviewed overrides of linkage (docs/linkage.md); `overrides.yaml` in the catalog's folder when not set, and none is fine."""
    keep_snapshots: int = 3
    """Published snapshots that stay on disk, the live one included."""
    keep_dumps: int = 2
    """Landed dumps that stay on disk, per platform."""
    largest_shrink: float = 0.2
    """Share of the live catalog's recordings that a new build may lack before its publication is refused; 1 switches the check off."""
    lowest_precision: float = 0.98
    """Of the golden pairs, and of a simulated world: a build below is not published."""
    lowest_recall: float = 0.93
    """The same for recall."""
    largest_fall: float = 0.002
    """How far precision or recall may fall below the live snapshot's; 1 switches the comparison off."""
    largest_jump: float = 1.5
    """Factor by which signs of mixed recordings and contested codes may grow against the live snapshot, its size taken into account."""
    largest_move: float = 0.02
    """Share of the records of the live snapshot that may stand under another recording id; 1 switches the check off."""
    fingerprint_days: int = 400
    """Days of the fingerprint dump that one build fetches and reads at most: the first ones of many years take several nights."""
    rules: Path | None = None
    """A folder of genre rules that replaces the shipped ones."""
    schedule: str = "0 3 * * *"
    """Cron expression (UTC) of the nightly build."""

    @classmethod
    def from_environment(cls) -> Self:
        """Defaults, overridden by `CATALOG_*`; ValueError names the variable that cannot be read."""
        values: dict[str, object] = {}
        for field in fields(cls):
            name = f"CATALOG_{field.name.upper()}"
            text = os.environ.get(name)
            if not text:
                continue
            try:
                values[field.name] = _READERS.get(str(field.type), Path)(text)
            except ValueError:
                raise ValueError(f"{name}={text!r}: expected {field.type}") from None
        return cls(**values)  # type: ignore[arg-type]
