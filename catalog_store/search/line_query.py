"""The wide reading of a query: both fields as lists of plain words, whatever stands in which, and the words to look up.

People type the title into the artist field, a whole video title into both, or half of a name. Here nothing is taken to be in its place.
Which document fits is decided in line_comparison.py.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.name_keys import build_title_keys
from catalog_store.name_keys.folding import extract_words, fold
from catalog_store.name_keys.romanisation import romanise
from catalog_store.search.extra_words import COMPOSERS, build_sound, list_initials
from catalog_store.search.index_words import split_words
from catalog_store.search.plain_words import LEFT_OUT, list_other_spellings, read_plain_words
from catalog_store.search.typo_lookup import find_neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.search.query_names import QueryNames
    from catalog_store.search.vocabulary import Vocabulary

_FREE = (
    "official music video videoclip audio lyric lyrics lyrical hd hq uhd 4k mv m v visualizer visualiser mp3 full clip officiel"
    " oficial ufficiale offizielles offizielle officiele musikvideo upgrade remaster remastered explicit topic vevo channel youtube"
    " by von di par feat ft featuring with x vs song letra testo paroles songtext karaoke tv anime клип официальныи видео 1080p"
    " 720p soundtrack ost tekst letras legendado subtitulado track"
)
FREE_WORDS = frozenset(_FREE.split())
"""Words of video titles and between names, which neither a title nor an artist must explain."""
_CUE_WORDS = (
    "live vivo remix rmx mix version ver edit instrumental acoustic unplugged demo remaster remastered dub session sessions vocal"
    " piano orchestral karaoke slowed sped cover inch acapella remake rework akustik akustyczna wersja версия ремикс versione"
    " versao ao take extended original radio club bootleg"
)
_CUES = frozenset(_CUE_WORDS.split())
"""Words of version notes. A title with one of them may end in a note without brackets."""
_LONGEST_NOTE = 6
_QUOTES = str.maketrans(dict.fromkeys('「」『』“”„"〈〉《》', " "))
_FILE_ENDING = re.compile(r"\.(?:mp3|flac|wav|m4a|ogg|aiff?)$", re.IGNORECASE)
_VIDEO_MARK = re.compile(r"\bm/v\b", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[][^)\]]*[)\]]?")
_HALVES = _PAIR = 2
_LINE_SEPARATORS = re.compile(r" [-\u2013\u2014|] | by |: |\"")
_PLACE = re.compile("(?:(?:track|disc|cd|side) )?[a-d]?[0-9]{1,2} (?=.)")
"""The place of a track on a record or in a folder: `A1. Artist - Title`, `Track 04`."""
_TIMES = re.compile(r"(?:^|(?<=\s))[(\[]?[0-9]{1,3}(?::[0-9]{2}){1,2}(?:\.[0-9]+)?[)\]]?(?=\s|$)")
"""When a track begins, and how long it is: `[1:02:33] Artist - Title`, `Title 3:41`. A title may have it too: `John 3:16`."""
_BESIDE_TIMES = " .-\u2013\u2014|"
_CHANNEL = re.compile(r"(?: ?vevo| ?official| - topic)$")
_CATALOGUES = frozenset({"op", "bwv", "hwv", "k", "rv", "d", "hob", "woo"})
_LONGEST_RUN = 4
MOST_WORDS = 12
"""Words of one field that are looked up."""
_LONGEST_INITIALS = 5
_SHORTEST_SPLIT = 4
_LATIN_READINGS = 4
"""Words of the vocabulary that an unknown or romanised word may be."""
_YEAR = 4
_SILENT_R = re.compile("(?<=[aeiou])r(?![aeiou])")


class Field:
    """One field or name: its key, its plain words, all of it without spaces, and the letters that may be initials.

    The rest is built when it is asked for.
    """

    # Attributes and not `cached_property`, which takes a lock: a query asks for twenty of them.
    __slots__ = ("_catalogue", "_halves", "_initials", "_line", "_runs", "compact", "key", "letters", "words")

    def __init__(self, key: str) -> None:
        """Read the words of a key."""
        self.key = key
        self.words = read_plain_words(key)
        self.compact = "".join(self.words)
        self.letters = _join_letters(key) or (self.compact if len(self.words) == 1 else "")
        self._line: str | None = None
        self._runs: frozenset[str] | None = None
        self._initials: frozenset[str] | None = None
        self._catalogue: frozenset[tuple[str, str]] | None = None
        self._halves: tuple[str, ...] | None = None

    @property
    def line(self) -> str:
        """All words between spaces."""
        if self._line is None:
            self._line = f" {' '.join(self.words)} "
        return self._line

    @property
    def runs(self) -> frozenset[str]:
        """All runs of up to four words, and all words, without spaces."""
        if self._runs is None:
            words = self.words
            ends = ((first, last) for first in range(len(words)) for last in range(first + 1, min(len(words), first + _LONGEST_RUN) + 1))
            self._runs = frozenset({self.compact, *("".join(words[first:last]) for first, last in ends)})
        return self._runs

    @property
    def initials(self) -> frozenset[str]:
        """The initials of the words, also of two."""
        if self._initials is None:
            found = list_initials(tuple(self.key.split(" ")))
            self._initials = frozenset(found | {"".join(word[0] for word in self.words)} if len(self.words) == _PAIR else found)
        return self._initials

    @property
    def catalogue(self) -> frozenset[tuple[str, str]]:
        """The (catalogue, number) of works."""
        if self._catalogue is None:
            self._catalogue = frozenset(pair for pair in pairwise(self.words) if pair[0] in _CATALOGUES and pair[1].isdigit())
        return self._catalogue

    @property
    def halves(self) -> tuple[str, ...]:
        """The parts around `and`, without spaces."""
        if self._halves is None:
            halves = self.key.split(" and ") if " and " in self.key else ()
            self._halves = tuple("".join(read_plain_words(half)) for half in halves if half) or (self.compact,)
        return self._halves


def _join_letters(key: str) -> str:
    """Return the letters of a key that has no longer words (`r h c p`), otherwise an empty text."""
    letters = key.replace(" ", "")
    return letters if 2 * len(letters) == len(key) + 1 else ""


class Reading(NamedTuple):
    """A way to read the title field: the field without a version note, and the variant that the note means."""

    field: Field
    variant: str


class LineQuery(NamedTuple):
    """Both fields. `titles` are the readings of the title field, as typed first, and `keys` both fields as keys.

    `more_words` are those of other readings of the title, `composers` those that the artist field names. `artist_names` and `title_names`
    are keys that may be the whole name of an artist, and a whole title; `parts` those of parts of the title field. `halves` are the two
    parts of a title field around a dash or `by`.
    """

    artist: Field
    titles: tuple[Reading, ...]
    artist_as_title: Reading
    keys: tuple[str, str]
    more_words: tuple[str, ...]
    composers: frozenset[str]
    artist_names: tuple[str, ...]
    title_names: tuple[str, ...]
    parts: tuple[str, ...]
    halves: tuple[Field, ...]


def read_line_query(artist: str, title: str, names: QueryNames) -> LineQuery:
    """Read both fields as typed; `names` is their reading as artist and title."""
    # `nirvana smells like teen spirit` | `official music video` or `-`: the title field says nothing.
    says_nothing = FREE_WORDS.issuperset(names.title.split(" ")) or not any(map(str.isalnum, title))
    if says_nothing and len(names.whole.split(" ")) > 1:
        title = artist
    artist_key = extract_words(_CHANNEL.sub("", fold(artist))) or names.whole
    # `PSY - X(강남) M/V`: a quote or bracket that joins words would hide them.
    shown = _VIDEO_MARK.sub(" ", _FILE_ENDING.sub("", title)).translate(_QUOTES)
    keys = build_title_keys(shown) if shown.strip() else build_title_keys(title)
    variant = keys.variant or names.variant
    readings = [Reading(Field(keys.core), variant), *_read_notes(keys.core, variant)]
    # `Chappell Roan - Pink Pony Club`: what looks like a note behind the dash may be the title.
    if keys.variant and " - " in shown:
        readings.append(Reading(Field(extract_words(_BRACKETS.sub(" ", fold(shown)))), ""))
    cores = [keys.core]
    if _TIMES.search(shown) and (timeless := _TIMES.sub(" ", shown).strip(_BESIDE_TIMES)):
        shown = timeless
        cores.append(build_title_keys(timeless).core)
        readings.append(Reading(Field(cores[-1]), variant))
    readings += [Reading(Field(core[place.end() :]), variant) for core in cores if (place := _PLACE.match(core))]
    # `『空に歌えば』【僕のヒーローアカデミア】`: a bracket may name the film.
    if keys.stem != keys.core:
        readings.append(Reading(Field(keys.stem), variant))
    swapped = build_title_keys(artist)
    more = tuple(word for reading in readings[1:] for word in reading.field.words)
    artist_field = Field(artist_key)
    as_title = Reading(Field(swapped.core), swapped.variant)
    parts = [key for part in _LINE_SEPARATORS.split(fold(shown)) if (key := extract_words(_BRACKETS.sub(" ", part)))]
    words = keys.core.split(" ")
    halves = tuple(Field(part) for part in parts) if len(parts) == _HALVES else ()
    rest = " ".join(word for word in words if word not in artist_field.words)
    ends = [" ".join(end) for size in range(1, min(len(words), _LONGEST_RUN + 1)) for end in (words[:size], words[-size:])]
    return LineQuery(
        artist=artist_field,
        titles=tuple(readings),
        artist_as_title=as_title,
        keys=(artist_key, keys.core),
        more_words=more,
        composers=COMPOSERS.intersection(artist_field.words),
        artist_names=_add_latin((artist_key, names.whole, *names.artists, keys.core)),
        title_names=_add_latin((keys.core, names.stem, swapped.core, *parts, *filter(None, [rest]))),
        halves=halves,
        parts=tuple(dict.fromkeys((*parts, *ends))),
    )


def _add_latin(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, those of other scripts also in Latin letters: `битлз` is like `beatles`."""
    return tuple(dict.fromkeys(form for name in names for form in ([name] if name.isascii() else [name, romanise(name)]) if form))


def _read_notes(core: str, variant: str) -> list[Reading]:
    """Return readings of a title whose last words are a version note without brackets: the longest note and the shortest."""
    words = core.split(" ")
    if _CUES.isdisjoint(words[1:]):
        return []
    found: list[Reading] = []
    for first in range(max(1, len(words) - _LONGEST_NOTE), len(words)):
        base = " ".join(words[:first])
        keys = build_title_keys(f"{base} ({' '.join(words[first:])})")
        if keys.core == base:
            # `loving (the alien extended)` is a note as well as `loving the alien (extended)`.
            found[1:] = [Reading(Field(base), keys.variant or variant)]
    return found


@lru_cache(maxsize=256)
def list_sound_spellings(text: str) -> tuple[str, ...]:
    """Return spellings of a text for another script's sound."""
    # Japanese writes an r before a consonant as a long vowel: `カーテンコール` is `Curtain Call`. Germans write a v as w: `Jakowlew`.
    return tuple(dict.fromkeys((text, _SILENT_R.sub("", text), text.replace("w", "v"))))


def select_lookup_words(vocabulary: Vocabulary, query: LineQuery, names: QueryNames) -> tuple[list[str], list[str]]:
    """Return the words of the artist field and of the title field to look up: those that the vocabulary has, in all their spellings."""
    found = [
        _select_words(vocabulary, key, more)
        for key, more in zip(query.keys, (names.artist_words, (*names.title_words, *query.more_words)), strict=True)
    ]
    # Sounds stand for whole names, so they join the words of their field.
    for words, key in zip(found, (names.whole, query.keys[1]), strict=True):
        words.extend(filter(vocabulary.has, dict.fromkeys(map(build_sound, list_sound_spellings(key)))))
    return found[0], found[1]


def _select_words(vocabulary: Vocabulary, key: str, names: Sequence[str]) -> list[str]:
    written = [word for word in dict.fromkeys((*split_words(key), *names)) if word not in LEFT_OUT]
    known = [word for word in written if word not in FREE_WORDS and vocabulary.has(word)]
    found = vocabulary.select_rarest(known, MOST_WORDS) if len(known) > MOST_WORDS else known
    plain = read_plain_words(key)
    others = [*plain, *(other for word in plain for other in list_other_spellings(word))]
    others += [one + other for one, other in pairwise(plain)]
    # Two numbers that were joined like a year may be two: `54-40`.
    others += [half for word in plain if word.isdigit() and len(word) == _YEAR for half in (word[:2], word[2:])]
    if len(plain) <= _LONGEST_INITIALS:
        others.append("".join(plain))
    others.append(_join_letters(key))
    for word in written:
        if not word.isascii():
            latin = romanise(word)
            others += (latin, *find_neighbours(vocabulary, latin)[:_LATIN_READINGS])
        elif len(word) <= MOST_WORDS:
            others += _take_apart(vocabulary, word)
            # A word that is none has a typing error more often than not.
            if len(word) >= _SHORTEST_SPLIT and not vocabulary.has(word):
                others += find_neighbours(vocabulary, word)[:_LATIN_READINGS]
    return list(dict.fromkeys((*found, *filter(vocabulary.has, dict.fromkeys(others)))))


def _take_apart(vocabulary: Vocabulary, word: str) -> Iterable[str]:
    """Yield the two words that a word may join (`jungkook`), the letters of short initials, and German and Danish vowels as one letter."""
    is_known = vocabulary.has(word)
    if word.isalpha() and len(word) <= _LONGEST_INITIALS - is_known:
        yield from word
    if len(word) >= _SHORTEST_SPLIT and not is_known:
        for place in range(1, len(word)):
            if vocabulary.has(word[:place]) and vocabulary.has(word[place:]):
                yield word[:place]
                yield word[place:]
    for double, single in (("ae", "a"), ("oe", "o"), ("ue", "u"), ("aa", "a"), ("ss", "s")):
        if double in word:
            yield word.replace(double, single)
