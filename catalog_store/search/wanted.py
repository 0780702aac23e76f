"""The names asked for, read once per query: keys to compare, words to look up.

Titles and single names are read by catalog_store/name_keys, as at build time. What only a query has is the artist field: several names
and guests in one string, which a build gets apart. Splitting may go wrong (`Earth, Wind & Fire` is one name), so the whole is kept too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from catalog_store.name_keys import fold, name_key, title_keys
from catalog_store.name_keys.joints import taken_apart
from catalog_store.name_keys.names import folded_name_key
from catalog_store.search.words import words

_NOISE = frozenset(
    {"official", "music", "video", "videoclip", "audio", "lyric", "lyrics", "hd", "hq", "4k", "mv", "visualizer", "mp3", "full"}
    | {"explicit", "clean", "dirty", "remaster", "remastered", "radio", "edit"}
)
"""What people type behind a title, most of it copied from videos and files; a song may end in one, so the title as typed counts, too."""
_AFTER_TEMPO = frozenset("mM)] ")
_TEMPO = re.compile(r" [(\[]?[0-9]{2,3} ?bpm[)\]]?$", re.IGNORECASE)
CONNECTIVES = frozenset({"and", "x", "vs", "with", "feat", "ft", "featuring", "the"})
"""Words that join names or lead them: they never tell two artists apart, unless a name has no others."""


class Wanted(NamedTuple):
    """What is asked for.

    `artists` one by one, `whole` as one name, `guests` of the artist field; as one comparable text `alone`, and `everyone` with all guests.
    `stem`: the title without what may not belong to it.
    """

    artists: tuple[str, ...]
    whole: str
    alone: str
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
    # Most fields name one artist, and its key is the whole's.
    whole = artists[0] if joined.names == (joined.primary,) else folded_name_key(joined.primary) or name_key(artist)
    keys = title_keys(_title_alone(title, artist, (whole, *artists)))
    guests = _keys(joined.guests)
    return Wanted(
        artists=artists,
        whole=whole,
        alone=comparable(whole),
        everyone=comparable(" ".join((whole, *guests, keys.credits)).rstrip(" ")),
        guests=guests,
        title=keys.core,
        compact_title=keys.core.replace(" ", ""),
        stem=keys.stem if keys.stem != keys.core else _without_noise(keys.core),
        variant=keys.variant,
        artist_words=tuple(words(" ".join((whole, *artists, *guests, keys.credits)))),
        title_words=tuple(words(keys.core)),
    )


def _title_alone(title: str, artist: str, artists: tuple[str, ...]) -> str:
    """Without the artist before a dash, as videos are named, and the tempo behind, as pools do; never without all."""
    before, dash, behind = title.partition(" - ")
    if dash and behind.strip() and (name_key(before) in artists or fold(before) == fold(artist)):
        title = behind
    return (_TEMPO.sub("", title.rstrip()) or title) if title[-1:] in _AFTER_TEMPO else title


def _without_noise(title: str) -> str:
    """The key of a title without the words of videos and files at its end; never without all."""
    kept = title.split(" ")
    while len(kept) > 1 and kept[-1] in _NOISE:
        kept.pop()
    return " ".join(kept)


@lru_cache(maxsize=16_384)
def comparable(names: str) -> str:
    """Keys of one or several names, joined by spaces, without connectives; never empty for a non-empty text."""
    return " ".join(word for word in names.split(" ") if word not in CONNECTIVES) or names


def _keys(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(folded_name_key, names)))
