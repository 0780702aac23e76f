"""Notes at the end of a key without bracket or dash: `loca remix` is the remix of `loca`; `remix`, `the remix` are songs.

Only unmistakable phrases count (version_words.BARE_TAILS), and only after a word that can end a title. `segments` reads notes that are set
off.
"""

from __future__ import annotations

import re

from catalog_store.name_keys import version_words
from catalog_store.name_keys.segments import BRACKET, Segment, read_segment

# The longest first: a pattern takes the first alternative that matches, and `extended remix` ends in `remix`.
_TAILS = "|".join(sorted((tail.strip() for tail in version_words.BARE_TAILS.split("|")), key=len, reverse=True))
LAST_NOTE_WORDS = frozenset(tail.split()[-1] for tail in version_words.BARE_TAILS.split("|"))
MAY_HAVE_BARE_NOTE = f"[^ ] (?:{_TAILS})$"
"""Matches every key that `strip_bare_notes` shortens; Rust and Python read it alike."""
_TAIL_RE = re.compile(f"^(.*[^ ]) ({_TAILS})$")


def strip_bare_notes(key: str) -> tuple[str, list[Segment]]:
    """Remove bare notes from the end of a key; return the rest and the meaning of each note."""
    notes: list[Segment] = []
    while (match := _TAIL_RE.match(key)) and match[1].rpartition(" ")[2] not in version_words.NOT_A_NAME:
        key = match[1]
        notes.append(read_segment(f"{BRACKET}{match[2]}"))
    return key, notes
