"""Queries as people type them without care: fifteen classes beside the nine of queries.py, drawn from the true names.

    initials         the artist's initials: `rhcp`
    joined           the artist without spaces
    one_name         one word of the artist's name
    partial_title    the beginning, the end or the middle of a title
    fields_swapped   artist and title in each other's fields
    line             `Artist - Title (Official Video)` in the title field, a channel in the artist field
    stranger_line    the same beside a channel that has nothing to do with the artist
    both_fields      the whole line in both fields
    title_by_artist  `Title by Artist`
    track_line       `A1. Artist - Title`, `03 - Artist - Title.mp3`
    quoted           `Artist「Title」MV`
    bare_version     a version without brackets: `title live`
    unknown_version  a version that nobody released: the plain recording is meant
    number_words     numbers as words, in six languages
    romanised        names of other scripts in Latin letters

Each maker takes a song and returns the two fields, or None when the class cannot be made of it. Out of scope: drawing and
judging (queries.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anyascii import anyascii

from catalog_store.name_keys import build_title_keys
from simulator.number_names import LANGUAGES, spell_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Protocol

    class _Song(Protocol):
        @property
        def title(self) -> str: ...
        @property
        def artists(self) -> tuple[str, ...]: ...

    _Names = tuple[str, str]

_VIDEO = (" (Official Video)", " (Official Music Video) [HD]", " [Official Video]", " (Lyrics)", " (Official Audio)", "", " [4K]")
_CHANNELS = ("Trap Nation", "Lyrics Hub", "7clouds", "Music Uploads", "Best Of Radio", "NCS")
_JOINTS = (" - ", " \N{EN DASH} ", ": ")
_TRACKS = ("A1. {}", "B2 {}", "03. {}", "07 - {}", "01 - {}.mp3", "12. {}.flac")
_QUOTES = ("{}「{}」MV", '{} "{}" M/V', "{}『{}』Music Video", "{} “{}” official video")
_UNKNOWN = ("Movie Version", "Stadium Version", "Netflix Version", "Wedding Version", "2031 Version")
_BY = ("{} by {}", "{} - {}", "{} von {}", "{} par {}")
_FEWEST_FOR_INITIALS, _MOST_FOR_INITIALS = 3, 6
_SHORTEST_WORD = 4
_FEWEST_FOR_PART = 3
NUMBER = r"(?:^| )(?:[2-9]|[1-9][0-9]{1,3})(?: |$)"
"""A number that a query of `number_words` spells. A one is a pronoun in most languages."""
_NUMBER_RE = re.compile(r"(?<![^ ])(?:[2-9]|[1-9][0-9]{1,3})(?![^ ])")
_NEVER_ALONE = frozenset({"dix", "onze", "cent", "mil", "sei"})
"""Numbers that are other words in another language, where they stand alone."""


def _make_initials(_rng: Random, song: _Song) -> _Names | None:
    words = song.artists[0].split()
    if not (_FEWEST_FOR_INITIALS <= len(words) <= _MOST_FOR_INITIALS and all(word[0].isalpha() and word.isascii() for word in words)):
        return None
    words = words[1:] if words[0] == "The" else words
    return ("".join(word[0] for word in words).lower(), song.title) if len(words) >= _FEWEST_FOR_INITIALS else None


def _make_joined(_rng: Random, song: _Song) -> _Names | None:
    joined = "".join(song.artists[0].split())
    return (joined.lower(), song.title) if joined != song.artists[0] else None


def _make_one_name(rng: Random, song: _Song) -> _Names | None:
    words = [word for word in song.artists[0].split() if len(word) >= _SHORTEST_WORD]
    return (rng.choice(words), song.title) if len(words) > 1 else None


def _make_partial_title(rng: Random, song: _Song) -> _Names | None:
    if build_title_keys(song.title).variant:
        return None
    words = song.title.split()
    if len(words) < _FEWEST_FOR_PART:
        return None
    kept = rng.randint(1, len(words) - 1)
    first = rng.choice((0, 0, len(words) - kept, rng.randint(0, len(words) - kept)))
    part = words[first : first + kept]
    return (song.artists[0], " ".join(part)) if any(len(word) >= _SHORTEST_WORD for word in part) else None


def _make_swapped_fields(_rng: Random, song: _Song) -> _Names | None:
    return song.title, song.artists[0]


def _write_line(rng: Random, song: _Song) -> str:
    return f"{' & '.join(song.artists)}{rng.choice(_JOINTS)}{song.title}{rng.choice(_VIDEO)}"


def _make_line(rng: Random, song: _Song) -> _Names | None:
    artist = song.artists[0]
    channel = rng.choice(("".join(artist.split()) + "VEVO", f"{artist} - Topic", artist, f"{artist} Official"))
    return channel, _write_line(rng, song)


def _make_stranger_line(rng: Random, song: _Song) -> _Names | None:
    return rng.choice(_CHANNELS), _write_line(rng, song)


def _make_both_fields(rng: Random, song: _Song) -> _Names | None:
    line = rng.choice((_write_line(rng, song), f"{song.artists[0]} {song.title}".lower()))
    return line, line


def _make_title_by_artist(rng: Random, song: _Song) -> _Names | None:
    return song.artists[0], rng.choice(_BY).format(song.title, song.artists[0])


def _make_track_line(rng: Random, song: _Song) -> _Names | None:
    return song.artists[0], rng.choice(_TRACKS).format(f"{song.artists[0]} - {song.title}")


def _make_quoted(rng: Random, song: _Song) -> _Names | None:
    return song.artists[0], rng.choice(_QUOTES).format(song.artists[0], song.title)


def _make_bare_version(_rng: Random, song: _Song) -> _Names | None:
    base, bracket, note = song.title.partition(" (")
    is_version = bracket and note.endswith(")") and build_title_keys(song.title).variant
    return (song.artists[0], f"{base} {note[:-1]}".lower()) if is_version else None


def _make_unknown_version(rng: Random, song: _Song) -> _Names | None:
    return None if build_title_keys(song.title).variant else (song.artists[0], f"{song.title} ({rng.choice(_UNKNOWN)})")


def _make_number_words(rng: Random, song: _Song) -> _Names | None:
    language = rng.choice(LANGUAGES)
    made = [_NUMBER_RE.sub(lambda number: spell_number(int(number[0]), language), name) for name in (song.artists[0], song.title)]
    if made == [song.artists[0], song.title] or not _NEVER_ALONE.isdisjoint(" ".join(made).split()):
        return None
    return made[0], made[1]


def _make_romanised(_rng: Random, song: _Song) -> _Names | None:
    if song.title.isascii() or build_title_keys(song.title).variant:
        return None
    latin = anyascii(song.title)
    return (song.artists[0], latin.lower()) if any(_is_read(one) for one in song.title) and latin.isascii() else None


def _is_read(character: str) -> bool:
    """Return whether a letter belongs to a script that has one usual reading: Cyrillic, Greek, kana, Hangul."""
    return any(low <= character <= high for low, high in (("Ͱ", "ӿ"), ("ぁ", "ヿ"), ("가", "힣")))


LOOSE_MAKERS: dict[str, Callable[[Random, _Song], _Names | None]] = {
    "initials": _make_initials,
    "joined": _make_joined,
    "one_name": _make_one_name,
    "partial_title": _make_partial_title,
    "fields_swapped": _make_swapped_fields,
    "line": _make_line,
    "stranger_line": _make_stranger_line,
    "both_fields": _make_both_fields,
    "title_by_artist": _make_title_by_artist,
    "track_line": _make_track_line,
    "quoted": _make_quoted,
    "bare_version": _make_bare_version,
    "unknown_version": _make_unknown_version,
    "number_words": _make_number_words,
    "romanised": _make_romanised,
}
LOOSE_CLASSES: Sequence[str] = tuple(LOOSE_MAKERS)
