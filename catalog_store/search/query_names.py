"""The names of a query, read once: keys to compare and words to look up.

catalog_store/name_keys reads titles and single names, as at build time. Only a query has an artist field with several names and guests in
one string. Splitting it may go wrong (`Earth, Wind & Fire` is one name), so the whole string is kept too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from catalog_store.name_keys import build_name_key, build_title_keys, fold
from catalog_store.name_keys.artist_names import build_folded_name_key
from catalog_store.name_keys.artist_separators import split_artist_field
from catalog_store.search.index_words import split_words
from catalog_store.search.number_words import is_number
from catalog_store.search.plain_words import read_plain_words

_NOISE = frozenset(
    {"official", "music", "video", "videoclip", "audio", "lyric", "lyrics", "hd", "hq", "4k", "mv", "visualizer", "mp3", "full"}
    | {"explicit", "clean", "dirty", "remaster", "remastered", "radio", "edit"}
)
"""Words that people type after a title, mostly copied from videos and files. A song may end in one, so the title as typed is compared as
well."""
# A title that cannot end in a tempo skips the regular expression.
_AFTER_TEMPO = frozenset("mM)] ")
_SEPARATOR = re.compile(" [-\u2013\u2014|] |: ")
_TEMPO = re.compile(r" [(\[]?[0-9]{2,3} ?bpm[)\]]?$", re.IGNORECASE)
CONNECTIVES = frozenset({"and", "x", "vs", "with", "feat", "ft", "featuring", "the"})
"""Words that join names or lead them. They never distinguish two artists, unless a name has no other words."""


class QueryNames(NamedTuple):
    """The names that a query asks for, as keys.

    `artists` are single names, `whole` is the field as one name, `guests` are those of the artist field. `alone` is `whole` without
    connectives, and `everyone` adds all guests. `stem` is the title without parts that may not belong to it. `plain_title` are the words of
    a title with a number, in one spelling.
    """

    artists: tuple[str, ...]
    whole: str
    alone: str
    everyone: str
    guests: tuple[str, ...]
    title: str
    compact_title: str
    stem: str
    plain_title: tuple[str, ...]
    variant: str
    artist_words: tuple[str, ...]
    title_words: tuple[str, ...]


def read_query(artist: str, title: str) -> QueryNames:
    """Read both fields as typed; neither may be blank."""
    # Both the parts and the whole field are kept, because a separator may belong to the name.
    joined = split_artist_field(fold(artist))
    artists = _key_names(joined.names) or (build_name_key(artist),)
    # Most fields name one artist, whose key is also the key of the whole field.
    whole = artists[0] if joined.names == (joined.primary,) else build_folded_name_key(joined.primary) or build_name_key(artist)
    keys = build_title_keys(_strip_title(title, artist, (whole, *artists)))
    guests = _key_names(joined.guests)
    return QueryNames(
        artists=artists,
        whole=whole,
        alone=remove_connectives(whole),
        # Without credits in the title, the join leaves a space at the end.
        everyone=remove_connectives(" ".join((whole, *guests, keys.credits)).rstrip(" ")),
        guests=guests,
        title=keys.core,
        compact_title=keys.core.replace(" ", ""),
        # A title without a subtitle may still end in words of videos and files; those count as left out.
        stem=keys.stem if keys.stem != keys.core else _strip_noise(keys.core),
        plain_title=read_plain_words(keys.core) if any(map(is_number, keys.core.split(" "))) else (),
        variant=keys.variant,
        artist_words=tuple(split_words(" ".join((whole, *artists, *guests, keys.credits)))),
        title_words=tuple(split_words(keys.core)),
    )


def _strip_title(title: str, artist: str, artists: tuple[str, ...]) -> str:
    """Remove the artist before a dash (as in video titles) and the tempo at the end (as in record pools), but never the whole title."""
    before, behind = title, ""
    if separator := _SEPARATOR.search(title):
        before, behind = title[: separator.start()], title[separator.end() :]
    # Before a dash may stand the artist or the first half of a title. Only the artist that the query names is removed.
    if behind.strip() and (build_name_key(before) in artists or fold(before) == fold(artist)):
        title = behind
    return (_TEMPO.sub("", title.rstrip()) or title) if title[-1:] in _AFTER_TEMPO else title


def _strip_noise(title: str) -> str:
    """Remove words of videos and files from the end of a title's key, but never all of it."""
    kept = title.split(" ")
    # One word always stays: a song may be titled `Audio`.
    while len(kept) > 1 and kept[-1] in _NOISE:
        kept.pop()
    return " ".join(kept)


@lru_cache(maxsize=16_384)
def remove_connectives(names: str) -> str:
    """Remove connectives from the keys of one or several names, joined by spaces; never empty for a non-empty text."""
    # An artist named `The The` has no other words and keeps its name.
    return " ".join(word for word in names.split(" ") if word not in CONNECTIVES) or names


def _key_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(build_folded_name_key, names)))
