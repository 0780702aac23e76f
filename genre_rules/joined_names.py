"""Names that share words in one string: `black/death metal` is two names with one head, `house techno trance` three names without a joint.

The cutting at separators belongs in separators.py, the meaning of names in classify.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

SLASH = re.compile(r"\s*[/\uff0f]\s*|(?<=\w)[\u2013\u2014](?=\w)")
"""A slash or a dash between two names; either may also stand inside one name (`Pop/Rock`, `post-punk` with a long dash)."""
_BRACKET = re.compile(r"\s*([^()\[\]]+?)\s*[(\[]([^()\[\]]+)[)\]]\s*")
JOINTS = frozenset(("and", "y", "e", "et", "und", "og", "och", "en"))
MOST_JOINTS = 6
"""The most joints examined in a string. Each may double the work, and nobody names seven genres with `and`."""
HEADS_LEFT_OUT = ("metal", "house", "techno", "trance")
"""Words that people leave out of a pair when they are clear."""
FEWEST_BARE_NAMES = 3
"""The least names of a list without any separator. Two are a fusion (`jazz house`)."""


def share_head(left: Sequence[str], right: Sequence[str], is_name: Callable[[str], bool], is_own_name: Callable[[str], bool]) -> list[str]:
    """Return two names of which one lacks the word that both share: `black/death metal`, `indie rock/pop`; none if there are no such.

    `is_own_name`: whether it is a node's own name and no alias.
    """
    if len(right) > 1:
        names = [" ".join((*left, right[-1])), " ".join(right)]
        # A side that is a genre by itself lacks nothing: `rock/indie pop`. A mere alias does: `stoner/doom metal`.
        lacks_head = not is_own_name(" ".join(left)) and is_own_name(names[0]) if is_name(" ".join(left)) else True
        if lacks_head and all(map(is_name, names)):
            return names
    for head in HEADS_LEFT_OUT:
        names = [" ".join((*side, head)) for side in (left, right)]
        # `thrash/death` leaves the head out on both sides.
        if not (is_name(" ".join(left)) and is_name(" ".join(right))) and all(map(is_own_name, names)):
            return names
    if len(right) == 1 and not is_name(" ".join(left)) and is_own_name(" ".join((*left, *right))) and is_name(right[0]):
        return [" ".join((*left, *right)), right[0]]
    if len(left) > 1 and len(right) == 1:
        names = [" ".join(left), " ".join((*left[:-1], right[0]))]
        if all(map(is_name, names)):
            return names
    return []


def share_last_head(parts: Sequence[str], is_name: Callable[[str], bool]) -> list[str]:
    """Return the parts of a list with the last word of the last part added where only that makes a name: `heavy, power & speed metal`."""
    head = parts[-1].split()[-1:]
    joined = [" ".join((part, *head)) for part in parts[:-1]]
    return [*(whole if is_name(whole) and not is_name(part) else part for part, whole in zip(parts, joined, strict=False)), parts[-1]]


def split_at_joints(words: Sequence[str], is_name: Callable[[str], bool]) -> list[str]:
    """Return the names between the joints when each of them is a name: `cumbia y vallenato`; none when one is not."""
    for index in range(1, len(words) - 1):
        if words[index] in JOINTS and is_name(" ".join(words[:index])):
            rest = " ".join(words[index + 1 :])
            others = split_at_joints(words[index + 1 :], is_name) or ([rest] if is_name(rest) else [])
            if others:
                return [" ".join(words[:index]), *others]
    return []


def turn_bracket(string: str) -> str:
    """Return `Deep House` for `House [Deep]` and `House (Deep)`; nothing for any other form."""
    match = _BRACKET.fullmatch(string)
    return f"{match[2]} {match[1]}" if match else ""


def split_bare_list(words: Sequence[str], names: Collection[str], longest: int) -> list[str]:
    """Return the names of which the words are nothing but a list, at least FEWEST_BARE_NAMES and no name twice; else none."""
    found: list[str] = []
    start = 0
    while start < len(words):
        ends = range(min(len(words), start + longest), start, -1)
        end = next((end for end in ends if " ".join(words[start:end]) in names), 0)
        if not end:
            return []
        found.append(" ".join(words[start:end]))
        start = end
    return found if FEWEST_BARE_NAMES <= len(found) == len(set(found)) else []
