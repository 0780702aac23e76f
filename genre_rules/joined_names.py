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
FEWEST_BARE_NAMES = 3
"""The least names of a list without any separator. Two are a fusion (`jazz house`)."""


def share_head(left: Sequence[str], right: Sequence[str], is_name: Callable[[str], bool]) -> list[str]:
    """Return two names of which one lacks the word that both share: `black/death metal`, `indie rock/pop`; none if there are no such."""
    if len(right) > 1:
        names = [" ".join((*left, right[-1])), " ".join(right)]
        # A side that is a genre by itself lacks nothing: `rock/indie pop`.
        if not is_name(" ".join(left)) and all(map(is_name, names)):
            return names
    if len(left) > 1 and len(right) == 1:
        names = [" ".join(left), " ".join((*left[:-1], right[0]))]
        if all(map(is_name, names)):
            return names
    return []


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
