"""Queries drawn from real names by rules, in the manner of people: the training data of the scores of `possible` answers.

Typed queries are few, and tuning has seen those of the development part. These are drawn from the names of real_names.py, without the
recordings that a held-out query asks for: misspelt in several words, half remembered, in the wrong field, with words too many. An absent
query has an artist of the catalog and a title of another one.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.name_keys import build_title_keys, fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.real_names import RealRecording

_SOUND_PAIRS = (
    "ph>f ck>k ie>ei ei>ie ght>te c>k k>c y>i i>y s>z z>s qu>kw ea>ee ee>ea ou>u oo>u th>t a>e e>a o>u u>o v>w w>v tz>z er>a le>el x>ks"
)
_SOUNDS = [(pair.partition(">")[0], pair.partition(">")[2]) for pair in _SOUND_PAIRS.split()]
"""Letters that people write for others with the same sound."""
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SMALL = ("the", "a", "my", "your", "of", "in", "on", "to", "is", "me", "you", "and", "la", "el", "die", "der")
_NOISE_WORDS = (
    "lyrics,official video,hd,live,remix,remastered,songtext,letra,karaoke,full song,radio edit,album version,2011 remaster,cover,"
    "official audio,tekst,slowed,extended mix,4k,original,soundtrack,version,feat"
)
_NOISE = _NOISE_WORDS.split(",")
_LINES = ("{a} - {t}", "{a} - {t} (Official Video)", "{t} by {a}", "{a} {t}", "{a}: {t} lyrics", "{t} - {a}", '{a} "{t}" M/V')
_SHORTEST_MISSPELT, _SHORTEST_JOINED = 4, 2
_ABSENT_SHARE = 0.25
_BRACKETS = re.compile(r" ?[(\[][^)\]]*[)\]]| - .*$")


class DrawnQuery(NamedTuple):
    """A query as rows of typed_queries have it; `artists` and `title` are empty for an absent one."""

    kind: str
    artist: str
    title: str
    artists: str
    answer: str


def draw_queries(real: list[RealRecording], held_out: set[tuple[str, str]], count: int, seed: int) -> pl.DataFrame:
    """Return `count` queries with the columns of typed_queries; `held_out` are (artists, title) that none may ask for."""
    chance = random.Random(seed)  # noqa: S311 - a benchmark
    asked = [one for one in real if ("; ".join(one.artists), one.title) not in held_out]
    songs = {(fold(name), build_title_keys(one.title).core) for one in real for name in one.artists}
    rows: list[DrawnQuery] = []
    while len(rows) < count:
        one = chance.choice(asked)
        kind = chance.choice(list(_MANNERS))
        artist, title = one.artists[0].lower(), _BRACKETS.sub("", one.title).lower() or one.title.lower()
        if chance.random() < _ABSENT_SHARE:
            other = chance.choice(asked)
            title = _BRACKETS.sub("", other.title).lower() or other.title.lower()
            if any((fold(name), build_title_keys(other.title).core) in songs for name in one.artists):
                continue
            rows.append(DrawnQuery("absent", *_MANNERS[kind](artist, title, chance), "", ""))
        # A query without the note of a version asks for the plain recording.
        elif not build_title_keys(one.title).variant:
            rows.append(DrawnQuery(kind, *_MANNERS[kind](artist, title, chance), "; ".join(one.artists), one.title))
    columns = ["class", "artist", "title", "answer_artists", "answer_title"]
    return pl.DataFrame([row for row in rows if row.artist.strip() and row.title.strip()], schema=columns, orient="row")


def misspell(word: str, chance: random.Random) -> str:
    """Return a word with one error of hearing or typing."""
    if len(word) < _SHORTEST_MISSPELT or not word.isalpha():
        return word
    heard = [(old, new) for old, new in _SOUNDS if old in word]
    if heard and chance.random() < 0.5:
        return word.replace(*chance.choice(heard), 1)
    doubled = [place for place, (one, other) in enumerate(pairwise(word)) if one == other]
    place = chance.choice(doubled) if doubled and chance.random() < 0.5 else chance.randrange(len(word) - 1)
    near = next((row for row in _ROWS if word[place] in row), word[place])
    at = near.index(word[place])
    key = near[at - 1] if at else near[-1]
    left, letter, right = word[:place], word[place], word[place + 1 :]
    return chance.choice([left + right, left + letter * 2 + right, left + key + right, left + right[:1] + letter + right[1:]])


def _misspell_some(text: str, chance: random.Random, share: float) -> str:
    words = text.split(" ")
    sure = chance.randrange(len(words))
    return " ".join(misspell(word, chance) if place == sure or chance.random() < share else word for place, word in enumerate(words))


def _shorten(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    first = chance.randrange(len(words))
    last = chance.randrange(first, len(words)) + 1
    part = " ".join(words[first:last])
    return part if len(part) >= _SHORTEST_MISSPELT else text


def _misremember(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    place = chance.randrange(len(words))
    if words[place] in _SMALL:
        words[place : place + 1] = [] if chance.random() < 0.5 else [chance.choice(_SMALL)]
    else:
        words.insert(place, chance.choice(_SMALL))
    return " ".join(words)


def _respace(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    if len(words) >= _SHORTEST_JOINED:
        place = chance.randrange(len(words) - 1)
        words[place : place + 2] = ["".join(words[place : place + 2])]
    elif len(text) > _SHORTEST_MISSPELT:
        place = chance.randrange(2, len(text) - 1)
        words = [text[:place], text[place:]]
    return " ".join(words)


def _write_line(artist: str, title: str, chance: random.Random) -> tuple[str, str]:
    return chance.choice((artist, "-", title, artist)), chance.choice(_LINES).format(a=artist, t=title)


_MANNERS: dict[str, Callable[[str, str, random.Random], tuple[str, str]]] = {
    "plain": lambda artist, title, _: (artist, title),
    "misspelt": lambda artist, title, chance: (_misspell_some(artist, chance, 0.4), _misspell_some(title, chance, 0.4)),
    "misspelt title": lambda artist, title, chance: (artist, _misspell_some(_misspell_some(title, chance, 0.6), chance, 0.2)),
    "misspelt artist": lambda artist, title, chance: (_misspell_some(_misspell_some(artist, chance, 0.6), chance, 0.2), title),
    "part of title": lambda artist, title, chance: (artist, _shorten(title, chance)),
    "part of artist": lambda artist, title, chance: (_shorten(artist, chance), title),
    "parts": lambda artist, title, chance: (_shorten(artist, chance), _shorten(title, chance)),
    "part misspelt": lambda artist, title, chance: (
        _misspell_some(artist, chance, 0.2),
        _misspell_some(_shorten(title, chance), chance, 0.0),
    ),
    "misremembered": lambda artist, title, chance: (artist, _misremember(title, chance)),
    "more words": lambda artist, title, chance: (artist, f"{title} {chance.choice(_NOISE)}"),
    "spaces": lambda artist, title, chance: (_respace(artist, chance), _respace(title, chance)),
    "swapped": lambda artist, title, _: (title, artist),
    "swapped misspelt": lambda artist, title, chance: (_misspell_some(title, chance, 0.2), artist),
    "line": _write_line,
    "line misspelt": lambda artist, title, chance: _write_line(artist, _misspell_some(title, chance, 0.2), chance),
}
