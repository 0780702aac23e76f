"""The names asked for, read once per query: keys to compare, words to look up.

Titles and single names are read by catalog_store/name_keys, as at build time. What only a query has is the artist field: several names
and guests in one string, which a build gets apart. Splitting may go wrong (`Earth, Wind & Fire` is one name), so the whole is kept too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from catalog_store.name_keys import fold, name_key, title_keys
from catalog_store.name_keys.joints import taken_apart
from catalog_store.search.words import words

_TEMPO = re.compile(r" [(\[]?[0-9]{2,3} ?bpm[)\]]?$", re.IGNORECASE)
CONNECTIVES = frozenset({"and", "x", "vs", "with", "feat", "ft", "featuring", "the"})
"""Words that join names or lead them: they never tell two artists apart, unless a name has no others."""


class Wanted(NamedTuple):
    """What is asked for: the artists one by one, as one name, and with the guests as one comparable text; the title and its variant."""

    artists: tuple[str, ...]
    whole: str
    everyone: str
    guests: tuple[str, ...]
    title: str
    compact_title: str
    stem: str
    variant: str
    artist_words: tuple[str, ...]
    title_words: tuple[str, ...]


def wanted(artist: str, title: str) -> Wanted:
    """Read both fields as typed; neither may be blank."""
    joined = taken_apart(fold(artist))
    artists = _keys(joined.names) or (name_key(artist),)
    keys = title_keys(_title_alone(title, {name_key(artist), *artists}))
    guests = _keys(joined.guests) + ((keys.credits,) if keys.credits else ())
    whole = name_key(joined.primary) or name_key(artist)
    artist_words = dict.fromkeys(word for name in (whole, *artists, *guests) for word in words(name))
    return Wanted(
        artists=artists,
        whole=whole,
        everyone=comparable(" ".join((whole, *guests))),
        guests=guests,
        title=keys.core,
        compact_title=keys.core.replace(" ", ""),
        stem=keys.stem,
        variant=keys.variant,
        artist_words=tuple(artist_words),
        title_words=tuple(words(keys.core)),
    )


def _title_alone(title: str, artists: set[str]) -> str:
    """Without the artist before a dash, as videos are named, and the tempo behind, as pools do; never without all."""
    before, dash, behind = title.partition(" - ")
    if dash and behind.strip() and name_key(before) in artists:
        title = behind
    return _TEMPO.sub("", title.rstrip()) or title


def comparable(names: str) -> str:
    """Keys of one or several names, joined by spaces, without connectives; never empty for a non-empty text."""
    return " ".join(word for word in names.split(" ") if word not in CONNECTIVES) or names


def _keys(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(name_key, names)))
