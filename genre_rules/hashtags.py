"""Hashtags: words without spaces (`#deephousevibes`), spelled out by the words of the rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

HASHTAG = re.compile(r"#([^\W_]{6,40})(?=\s|$|#)")
SHORTEST_WORD = 3
SHORT_WORDS = frozenset(("uk", "us", "dj", "nu", "lo", "fi", "g", "j", "k"))
"""The shorter words that hashtags hold."""


def spell_out(tag: str, words: Collection[str]) -> str:
    """Return the hashtag's words with spaces, as few as possible; an empty text if other letters are left."""
    best: list[list[str] | None] = [[], *([None] * len(tag))]
    for end in range(1, len(tag) + 1):
        for start in range(end):
            before, piece = best[start], tag[start:end]
            is_word = piece in words if len(piece) >= SHORTEST_WORD else piece in SHORT_WORDS
            if before is not None and is_word and (best[end] is None or len(before) + 1 < len(best[end] or ())):
                best[end] = [*before, piece]
    return " ".join(best[-1] or ())
