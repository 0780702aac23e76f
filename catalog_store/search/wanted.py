"""The names asked for, read once per query: keys to compare, words to look up.

Titles and single names are read by catalog_store/name_keys, as at build time. What only a query has is the artist field: several names
and guests in one string, which a build gets apart. Splitting may go wrong (`Earth, Wind & Fire` is one name), so the whole is kept too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from catalog_store.name_keys import fold, name_key, title_keys
from catalog_store.search.words import words

CONNECTIVES = frozenset({"and", "x", "vs", "with", "feat", "ft", "featuring", "the"})
"""Words that join names or lead them: they never tell two artists apart, unless a name has no others."""
WORDS_PER_SIDE = 10
"""Words of one field that are looked up; longer names are recognised by fewer."""

_GUESTS = re.compile(r"[ (\[]+(?:feat|ft|featuring|with)\.? ")
_BETWEEN = re.compile(r" ?[,;/&+] ?| (?:and|x|vs\.?|with|feat\.?|ft\.?|featuring) |[\u3001\uff0c]")


class Wanted(NamedTuple):
    """What is asked for: the artists one by one, as one name, and with the guests as one comparable text; the title and its variant."""

    artists: tuple[str, ...]
    whole: str
    everyone: str
    guests: tuple[str, ...]
    title: str
    stem: str
    variant: str
    artist_words: tuple[str, ...]
    title_words: tuple[str, ...]


def wanted(artist: str, title: str) -> Wanted:
    """Read both fields as typed; neither may be blank."""
    keys = title_keys(title)
    before, *after = _GUESTS.split(fold(artist))
    if not before.strip():
        before, after = fold(artist), []
    artists = _names(before) or (name_key(artist),)
    guests = tuple(name for part in after for name in _names(part.rstrip(")]"))) + ((keys.credits,) if keys.credits else ())
    whole = name_key(before) or name_key(artist)
    artist_words = dict.fromkeys(word for name in (whole, *artists, *guests) for word in words(name))
    return Wanted(
        artists=artists,
        whole=whole,
        everyone=comparable(" ".join((whole, *guests))),
        guests=guests,
        title=keys.core,
        stem=keys.stem,
        variant=keys.variant,
        artist_words=tuple(artist_words)[:WORDS_PER_SIDE],
        title_words=tuple(words(keys.core))[:WORDS_PER_SIDE],
    )


def comparable(names: str) -> str:
    """Keys of one or several names, joined by spaces, without connectives; never empty for a non-empty text."""
    return " ".join(word for word in names.split(" ") if word not in CONNECTIVES) or names


def _names(folded: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name_key(name) for name in _BETWEEN.split(folded) if name.strip()))
