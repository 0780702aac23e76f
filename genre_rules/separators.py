"""Where one string is several: lists (`Rock; Pop`, `rock_pop`) and paths (`Pop/Rock→Rock`, `Dance > House`).

Not `/` or `&` inside a name, and not a comma without a space behind it. What must not live here: which names hold a separator themselves
(`Folk, World, & Country`): the rules know that.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ARROW = "\u2192"
MACHINE_MARK = "_"
"""Nobody writes a name with it."""
_ARROWS = re.compile(r"\s*(?:\u2192|\u00bb|\u203a|->|=>)\s*|\s+>\s+")
"""Between the steps of a path, broadest first."""
_ALWAYS = re.compile(r"\s*[;|\n\r]+\s*")
"""Never inside a name; paths may stand in a list of this kind."""
_MOSTLY = re.compile(r"\s*_\s*|\s*,\s+|\s+/\s+")
_SIGN = re.compile("[;|\n\r_,/>\u2192\u00bb\u203a]")
"""Without one of these there is nothing to cut: most strings are asked no more."""


class Cut(NamedTuple):
    """A string cut into a list: its parts (one when it is none) and whether the separators never stand inside a name."""

    parts: list[str]
    is_certain: bool


def cut_list(string: str) -> Cut:
    """Cut at `;` and `|`; without these, and unless it is a path, at `_`, `, ` and ` / `."""
    if not _SIGN.search(string):
        return Cut([string], is_certain=False)
    parts = _ALWAYS.split(string)
    if len(parts) > 1:
        parts = [part for part in parts if part.strip()]
        return Cut(parts or [string], is_certain=len(parts) > 1)
    if not _ARROWS.search(string):
        parts = [part for part in _MOSTLY.split(string) if part.strip()]
    return Cut(parts or [string], is_certain=False)


def listed_names(string: str) -> list[str]:
    """The pieces between separators of either kind: in which two ways to write a compound name agree."""
    return [part for whole in _ALWAYS.split(string) for part in _MOSTLY.split(whole) if part.strip()]


def path_steps(string: str) -> list[str]:
    """The steps of a path, broadest first; one step when the string is none."""
    if not _SIGN.search(string):
        return [string.strip()] if string.strip() else []
    return [step.strip() for step in _ARROWS.split(string) if step.strip()]
