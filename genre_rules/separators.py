"""Separators of strings with several names: lists (`Rock; Pop`, `rock_pop`, `#punk #ska`) and paths (`Pop/Rock→Rock`, `Dance > House`).

`/` or `&` inside a name, and a comma without a space after it, do not separate. The rules know the names that contain a separator
themselves (`Folk, World, & Country`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

ARROW = "\u2192"
MACHINE_MARK = "_"
"""A separator that machines write; no name contains it."""
_ARROWS = re.compile(r"\s*(?:\u2192|\u00bb|\u203a|->|=>)\s*|\s+>\s+")
"""The signs between the steps of a path, which goes from the broadest step to the narrowest."""
_ALWAYS = re.compile(r"\s*(?:[;|\n\r\\\u2022\u2027\u3001\uff0c\uff1b]|::|//|\"\s+\"|(?<![lL])\u00b7)+\s*|(?<=[a-zA-Z])\u30fb(?=[a-zA-Z])")
"""Separators that never occur inside a name: semicolons, bars, bullets, commas of other scripts, quotes around each name. A
list of this kind may hold paths. Catalan writes a raised dot between two l, Japanese one between the words of a name."""
_BRACKETED = re.compile(r"(?:[\[({][^\[\](){}]+[\])}]\s*){2,}")
_INSIDE_BRACKETS = re.compile(r"[\[({]\s*([^\[\](){}]+?)\s*[\])}]")
"""Names that stand in brackets each, and nothing outside: `[Country] [Rock]`."""
_QUOTED = re.compile(r"""\s*[\[{(]\s*(["'])[^"']+\1(?:\s*,\s*(["'])[^"']+\2)*\s*[\]})]\s*""")
_INSIDE_QUOTES = re.compile(r"""["']([^"']+)["']""")
"""Lists as programs write them: `["k-pop", "dance-pop"]`."""
_ROW = re.compile(r"\s*,\s+|(?<=[^\W\d]),(?=[^\W\d])|(?:^|\s+)#\s*|\s+[-~\u2013\u2014\u00d7]\s+|(?<=\w)\*(?=\w)")
_MOSTLY = re.compile(rf"\s*_\s*|\s+/\s+|{_ROW.pattern}")
_SIGN = re.compile('[;|\n\r_,/>\\\\"#~*:)}\\[\u00b7\u00bb\u00d7\u2013\u2014\u2022\u2027\u203a\u2192\u3001\u30fb\uff0c\uff1b]| - ')
"""A string without one of these is not cut. Most strings end the search here."""


class Cut(NamedTuple):
    """A string cut into a list: its parts (one if it is not a list), and whether such separators never occur inside a name.

    `is_row`: they are rare inside a name (`Jazz, Funk`, `Pop - Rock`).
    """

    parts: list[str]
    is_certain: bool
    is_row: bool = False


def cut_list(string: str) -> Cut:
    """Cut at `;`, `|` and their like; without these, and unless it is a path, at `_`, `, `, ` / `, ` - ` and `#`."""
    if not _SIGN.search(string):
        return Cut([string], is_certain=False)
    if _BRACKETED.fullmatch(string):
        return Cut(_INSIDE_BRACKETS.findall(string), is_certain=True)
    if _QUOTED.fullmatch(string):
        return Cut(_INSIDE_QUOTES.findall(string), is_certain=True)
    string = string.strip(' "')
    parts = _ALWAYS.split(string)
    if len(parts) > 1:
        parts = [part for part in parts if part.strip()]
        return Cut(parts or [string], is_certain=len(parts) > 1)
    if not _ARROWS.search(string):
        parts = [part for part in _MOSTLY.split(string) if part.strip()]
    return Cut(parts or [string], is_certain=False, is_row=len(parts) > 1 and bool(_ROW.search(string)))


def split_names(string: str) -> list[str]:
    """Return the pieces between separators of either kind, which are the same for two spellings of a compound name."""
    return [part for whole in _ALWAYS.split(string) for part in _MOSTLY.split(whole) if part.strip()]


def split_path(string: str) -> list[str]:
    """Return the steps of a path, broadest first; one step when the string is not a path."""
    if not _SIGN.search(string):
        return [string.strip()] if string.strip() else []
    return [step.strip() for step in _ARROWS.split(string) if step.strip()]
