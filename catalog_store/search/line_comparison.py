"""The wide comparison: whether a document's artist and title are in a query, in whatever field, or hold what was asked.

It runs when the comparison by fields (reranker.py) found nothing good. An answer needs an artist that fits, and a title that is part of
what was asked or holds it. Its class is always `possible`. Values order kinds of fit, so that popularity orders answers of one kind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz.distance import OSA

from catalog_store.name_keys.romanisation import ABJAD, build_sound_key, compare_sounds, romanise
from catalog_store.search.calibration import Evidence
from catalog_store.search.chance import Chance
from catalog_store.search.extra_words import has_digit_in_word, list_composers
from catalog_store.search.line_query import FREE_WORDS, Field, Reading, list_sound_spellings
from catalog_store.search.reranker import OTHER_NAME
from catalog_store.search.titles import Title
from catalog_store.search.variant_comparison import compare_variants
from catalog_store.search.whole_names import write_as_heard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.search.credits import Artists
    from catalog_store.search.line_query import LineQuery
    from catalog_store.search.search_index import SearchIndex

_NAMED, _PART_OF_NAME, _INITIALS, _SOUND, _WORDS_OF_ALL = 0.98, 0.95, 0.94, 0.94, 0.95
"""Values of an artist: named among other words, half a name, initials, the same sound, words of several artists."""
_MISSPELT_ARTIST, _COMPOSER = 0.93, 0.93
_FROM_TITLE, _STRANGER_BESIDE = 0.97, 0.9
"""Factors of an artist named in the title field alone: beside a related artist field, and beside an unrelated one."""
_OTHER_NAME, _GUEST = 0.995, 0.99
"""Factors of another name of an artist and of a guest: they order answers that fit equally well otherwise."""
_SWAPPED = 0.97
_BEGINNING, _PART, _UNFINISHED, _SCATTERED, _HELD, _SHARED = 0.93, 0.92, 0.91, 0.88, 0.82, 0.55
"""Values of a title: the query begins it, is part of it, begins it without its last word finished, has words of it, holds it; both share
words (up to _SHARED_MOST more)."""
_HELD_MORE, _SHARED_MORE, _SHARED_CORE = 0.1, 0.3, 0.05
_LEAST_HELD, _LEAST_HELD_STRICT, _LEAST_HELD_LONG, _LONG_TITLE = 0.35, 0.8, 0.6, 3
_LEAST_SHARED, _LEAST_SHARED_OF_ONE, _LEAST_SHARED_WORDS = 0.55, 0.7, 2
_LEAST_ALIKE_WORD, _CORRECTED = 0.75, 0.96
"""The least likeness of a word with a typing error, and the factor of a title with such words."""
_LEAST_ALIKE_ARTIST, _LEAST_ALIKE_TITLE, _LEAST_ALIKE_SOUND, _LEAST_ALIKE_CONSONANTS = 0.65, 0.68, 0.8, 0.6
_SAME_SOUND_LATIN, _LEAST_ALIKE_LETTERS = 0.97, 0.4
_SHORTEST_PART, _SHORTEST_TYPO, _SHORTEST_SOUND, _SHORTEST_BEGINNING = 3, 3, 2, 4
_SAME_SOUND, _TELLING_SOUND, _LEAST_ALIKE_VOWELS, _LEAST_ALIKE_VOWELS_OF_SHORT = 0.92, 4, 0.35, 0.5
_MOST_INITIALS = 6
_SURE_SOUND = 6
"""Equal consonants from which vowels do not count: `blood circulator`, `ブラッドサーキュレーター`."""
_OTHER_FIRST_NAME, _SHORTEST_SHARED, _LEAST_SHARED_NAME = 0.75, 4, 0.5
"""The value of an artist with a word of the field, the least letters of the word, and its least share of the field: `joe walker`."""
_HAN_RE = re.compile("[\u3005\u3400-\u9fff]")
"""Chinese characters; the pattern of japanese_readings.py, which opens a dictionary's module."""
_LEAST_VOWELS = 0.7
"""Least vowels of a reading per character: `Emerald no Densetsu` for `エメラルドの伝説`."""
_CATALOGUED = 0.64
"""Value of a title with the catalogue number that was asked for, whatever words are around it."""
_LEFT_OVER_VARIANT = 0.995
LEAST = 0.5
"""Least likeness of an answer."""


class LineFit(NamedTuple):
    """Likeness, the reasons for artist, title and variant, and what the score is computed from (calibration.py)."""

    likeness: float
    reasons: tuple[str, str, str]
    evidence: Evidence


class _ArtistFit(NamedTuple):
    """The value of an artist in the artist field and in the title field, 0 for none, and the words of all artists.

    `swapped` is the value when the title field is the name. `covered` is the share of the artist field that the name explains, `of_name`
    the share of the name that is in it. `in_half` is the value of a misspelt name in one half of a line, and the number of that half.
    """

    in_artist: float
    in_title: float
    swapped: float
    words: frozenset[str]
    covered: float
    of_name: float
    is_related: bool = False
    in_half: tuple[float, int] = (0.0, 0)


class _TitleFit(NamedTuple):
    """The value of a title, 0 for none, the reason, and words behind a title that the field holds.

    `covered` is the share of the letters asked for that the title has, `of_title` the share of the title that was asked for.
    """

    value: float
    reason: str
    left_over: tuple[str, ...] = ()
    covered: float = 1.0
    of_title: float = 1.0


class LineComparison:
    """One query in its wide reading, and the documents compared with it."""

    def __init__(self, index: SearchIndex, query: LineQuery, by_sound: frozenset[int] = frozenset()) -> None:
        """Compare `query` with documents of `index`; titles of `by_sound` are known to sound like it."""
        self._index, self._query, self._by_sound = index, query, by_sound
        self._artists: dict[int, _ArtistFit] = {}
        self._chance = Chance(index, query.keys)

    def find_fits(self, documents: Sequence[int]) -> dict[int, LineFit]:
        """Return the fit of each document that fits at all."""
        index, found = self._index, {}
        for document, title in zip(documents, index.titles.of(documents), strict=True):
            credit = index.credit_of[document]
            artists = self._artists.get(credit)
            if artists is None:
                artists = self._artists[credit] = _fit_artists(self._query, index.credits[credit])
            fit = _fit_document(self._query, artists, title)
            # A reading of Chinese characters is in the index alone.
            if document in self._by_sound and artists.in_artist and _can_be_reading(self._query.titles[0].field, title.core):
                variant, reason = compare_variants(self._query.titles[0].variant, title.variant)
                read = _build_fit(artists, artists.in_artist, _TitleFit(_SAME_SOUND, "title_similar"), variant, reason)
                fit = max(fit or read, read)
            if fit is not None and fit.likeness >= LEAST:
                found[document] = fit._replace(evidence=fit.evidence._replace(chance=self._chance.measure(index.credits[credit], title)))
        return found


def _can_be_reading(asked: Field, core: str) -> bool:
    """Return whether a text may be the reading of a Japanese title: each character of it is a syllable or more."""
    written = sum(not letter.isascii() for letter in core)
    return bool(_HAN_RE.search(core)) and sum(map(asked.compact.count, "aeiouy")) >= _LEAST_VOWELS * written


def _fit_document(query: LineQuery, artists: _ArtistFit, title: Title) -> LineFit | None:
    best = max(_fit_arrangements(query, artists, title), key=lambda fit: fit.likeness, default=None)
    for other in title.others:
        for fit in _fit_arrangements(query, artists, Title(other, title.variant)):
            if best is None or OTHER_NAME * fit.likeness > best.likeness:
                reasons = (fit.reasons[0], "title_alias" if fit.reasons[1] != "title_partial" else fit.reasons[1], fit.reasons[2])
                best = LineFit(OTHER_NAME * fit.likeness, reasons, fit.evidence._replace(title=OTHER_NAME * fit.evidence.title))
    return best


def _fit_arrangements(query: LineQuery, artists: _ArtistFit, title: Title) -> Iterable[LineFit]:
    if not (artists.in_artist or artists.in_title or artists.swapped or artists.in_half[0] or query.composers):
        return
    core = _build_document_field(title.core)
    if not artists.in_artist and query.composers and (composers := list_composers(title.core)) & query.composers:
        artists = artists._replace(in_artist=_COMPOSER, words=artists.words | composers)
    for reading in query.titles:
        if artists.in_artist:
            is_other = artists.in_artist == _OTHER_FIRST_NAME
            yield from _fit_title(reading, core, title, artists, artists.in_artist, is_strict=is_other)
        if artists.in_title:
            factor = _FROM_TITLE if artists.is_related else _STRANGER_BESIDE
            yield from _fit_title(reading, core, title, artists, factor * artists.in_title, is_strict=True)
    value, half = artists.in_half
    if value:
        reading = Reading(query.halves[1 - half], query.titles[0].variant)
        yield from _fit_title(reading, core, title, artists, _STRANGER_BESIDE * value, is_strict=True)
    if artists.swapped:
        yield from _fit_title(query.artist_as_title, core, title, artists, _SWAPPED * artists.swapped, is_strict=True)


def _fit_title(
    reading: Reading, core: Field, title: Title, artists: _ArtistFit, artist_value: float, *, is_strict: bool = False
) -> Iterable[LineFit]:
    fit = _compare_titles(reading.field, core, artists.words, is_strict=is_strict)
    variant, variant_reason = compare_variants(reading.variant, title.variant)
    # `mr brightside thin white duke`: the words that are no title may name the version.
    if fit.left_over and title.variant and "".join(fit.left_over) in title.variant.replace(" ", ""):
        fit, variant, variant_reason = fit._replace(value=max(fit.value, _PART), covered=1.0), _LEFT_OVER_VARIANT, "variant_similar"
    if fit.value:
        yield _build_fit(artists, artist_value, fit, variant, variant_reason)


def _build_fit(artists: _ArtistFit, artist_value: float, title: _TitleFit, variant: float, variant_reason: str) -> LineFit:
    is_typed = artist_value == artists.in_artist
    evidence = Evidence(
        artist=artist_value,
        title=title.value,
        variant=variant,
        covered=title.covered,
        of_title=title.of_title,
        artist_covered=artists.covered if is_typed else 1.0,
        of_artist=artists.of_name if is_typed else 1.0,
    )
    artist_reason = "artist_equal" if artist_value == 1.0 else "artist_alias" if artist_value == _OTHER_NAME else "artist_partial"
    return LineFit(artist_value * title.value * variant, (artist_reason, title.reason, variant_reason), evidence)


def _compare_titles(asked: Field, core: Field, artist_words: frozenset[str], *, is_strict: bool) -> _TitleFit:
    """Compare a title with a field, without the words of the field that name the artist or mean nothing."""
    known = frozenset(core.words)
    # `Debussy violin sonata` by a violinist: a composer may stand nowhere in the document.
    named = artist_words.union(list_composers(" ".join(asked.words))) - known
    telling = [word for word in asked.words if word not in named and word not in FREE_WORDS] or list(asked.words)
    telling, worth = _correct_words(telling, known)
    compact = "".join(telling)
    if core.compact in {asked.compact, compact}:
        return _TitleFit(worth, "title_equal" if worth == 1.0 else "title_similar")
    of_title = min(1.0, len(compact) / len(core.compact))
    if compact in core.runs or f" {' '.join(telling)} " in core.line:
        return _TitleFit(worth * (_BEGINNING if core.compact.startswith(compact) else _PART), "title_partial")
    # `midnight runn`: who types has not finished the last word.
    if _is_beginning(compact, core) and (of_title >= _LEAST_HELD_STRICT or not is_strict):
        return _TitleFit(worth * _UNFINISHED, "title_partial", of_title=of_title)
    if known.issuperset(telling):
        value = 0.0 if is_strict and of_title < _LEAST_HELD_STRICT else worth * _SCATTERED
        return _TitleFit(value, "title_partial", of_title=of_title)
    sound = _compare_by_sound(asked, core)
    if sound:
        return _TitleFit(sound, "title_similar")
    shared = _compare_words(asked, core, telling, is_strict=is_strict)
    alike = _CORRECTED * measure_alike(compact, core.compact)
    return _TitleFit(alike, "title_similar") if alike >= max(_LEAST_ALIKE_TITLE, shared.value) else shared


def _correct_words(words: list[str], known: frozenset[str]) -> tuple[list[str], float]:
    """Return the words with typing errors corrected towards the `known` ones, and the worth of it."""
    corrected: list[str] = []
    for word in words:
        close = word
        if word not in known and len(word) >= _SHORTEST_TYPO and not word.isdigit():
            likeness, other = max(((measure_alike(word, one), one) for one in known), default=(0.0, ""))
            close = other if likeness >= _LEAST_ALIKE_WORD else word
        corrected.append(close)
    return corrected, 1.0 if corrected == words else _CORRECTED


def measure_alike(one: str, other: str) -> float:
    """Return how alike two texts without spaces are, by letters or by sound; 0 for texts of few letters."""
    if min(len(one), len(other)) < _SHORTEST_TYPO:
        return 0.0
    alike = OSA.normalized_similarity(one, other, score_cutoff=_LEAST_ALIKE_LETTERS)
    # Names of one sound share letters. Most names do not, and writing them as heard takes longer than the comparison.
    if alike < _LEAST_ALIKE_LETTERS or not (one.isascii() and other.isascii()):
        return alike
    return max(alike, _SAME_SOUND_LATIN * OSA.normalized_similarity(write_as_heard(one), write_as_heard(other)))


def _compare_words(asked: Field, core: Field, telling: list[str], *, is_strict: bool) -> _TitleFit:
    """Compare a title with the `telling` words of a field, some of which it lacks."""
    known = set(core.words)
    all_letters = sum(map(_count_letters, telling))
    # `BTS (방탄소년단) - Dynamite`: the same name again in another script.
    if core.compact.isascii():
        telling = [word for word in telling if word.isascii()] or telling
    shared = {word for word in telling if word in known}
    left_over = [word for word in telling if word not in known]
    letters = sum(map(_count_letters, telling))
    covered = sum(_count_letters(word) for word in telling if word in known) / letters
    if core.compact in asked.runs:
        covered = max(covered, min(1.0, len(core.compact) / letters))
    is_held = core.compact in asked.runs or shared == known
    of_core = sum(map(_count_letters, shared)) / max(1, sum(map(_count_letters, known)))
    value = 0.0
    least = _LEAST_HELD if not is_strict else _LEAST_HELD_LONG if len(known) >= _LONG_TITLE else _LEAST_HELD_STRICT
    if is_held and covered >= least:
        value = _HELD + _HELD_MORE * covered
    elif asked.catalogue & core.catalogue:
        # The number alone tells the work.
        return _TitleFit(_CATALOGUED + _SHARED_MORE * covered, "title_partial", covered=(1 + covered) / 2)
    elif not is_strict and covered >= (_LEAST_SHARED if len(shared) >= _LEAST_SHARED_WORDS else _LEAST_SHARED_OF_ONE):
        value = _SHARED + _SHARED_MORE * covered + _SHARED_CORE * of_core
    covered *= 2 * letters / (letters + all_letters)
    if is_held:
        return _TitleFit(value, "title_partial", tuple(left_over), covered)
    return _TitleFit(value, "title_partial", covered=covered, of_title=of_core)


def _compare_by_sound(asked: Field, core: Field) -> float:
    if asked.compact.isascii() == core.compact.isascii():
        return 0.0
    return _SAME_SOUND * max(_measure_sound(text, core.compact) for text in list_sound_spellings(asked.compact))


def _measure_sound(asked: str, name: str) -> float:
    """Return how alike two texts of different scripts sound; 0 for no evidence."""
    one, other = build_sound_key(asked), build_sound_key(name)
    if one == other and len(one) >= _SURE_SOUND:
        return 1.0
    if one == other and len(one) >= _SHORTEST_SOUND:
        # Consonants are shared by many names: some of the vowels must agree, too.
        alike = OSA.normalized_similarity(write_as_heard(romanise(asked)), write_as_heard(romanise(name)))
        return float(alike >= (_LEAST_ALIKE_VOWELS if len(one) >= _TELLING_SOUND else _LEAST_ALIKE_VOWELS_OF_SHORT))
    # Scripts without vowels share one consonant or two by chance.
    if len(one) <= _SHORTEST_SOUND and ABJAD.search(asked + name):
        return 0.0
    # The consonants are known. Most names differ there, and the costly comparison of all letters is skipped.
    if OSA.normalized_similarity(one, other) < _LEAST_ALIKE_CONSONANTS:
        return 0.0
    alike = compare_sounds(asked, name)
    return alike if alike >= _LEAST_ALIKE_SOUND else 0.0


def _count_letters(word: str) -> int:
    # A number says as much as a word.
    return max(_SHORTEST_PART, len(word)) if word.isdigit() else len(word)


def _fit_artists(query: LineQuery, names: Artists) -> _ArtistFit:
    fields = [_build_document_field(name) for name in (*names.primary, *names.aliases, *names.featured)]
    artist, title = query.artist, query.titles[0].field
    in_artist, name = max(((_fit_name(artist, field), field.compact) for field in fields[: len(names.primary)]), default=(0.0, ""))
    if len(fields) > len(names.primary):
        worths = [_OTHER_NAME] * len(names.aliases) + [_GUEST] * len(names.featured)
        for field, worth in zip(fields[len(names.primary) :], worths, strict=True):
            in_artist, name = max((in_artist, name), (worth * _fit_name(artist, field), field.compact))
    if len(names.primary) > 1 and in_artist < _GUEST:
        fields.append(_build_document_field(" ".join(names.primary)))
        in_artist, name = max((in_artist, name), (_fit_name(artist, fields[-1]), fields[-1].compact))
    words = frozenset(word for field in fields for word in field.words)
    if not in_artist:
        in_artist = _WORDS_OF_ALL if words.issuperset(artist.words) else _fit_words(artist, words)
    is_title_field = any(field.compact == title.compact for field in fields)
    covered, of_name = min(1.0, len(name) / max(1, len(artist.compact))), min(1.0, len(artist.compact) / max(1, len(name)))
    fit = _ArtistFit(in_artist, 0.0, float(is_title_field), words, covered=covered, of_name=of_name)
    # The field of artists holds the whole name, so the title field needs no search for it.
    if in_artist >= _GUEST and name == artist.compact:
        return fit
    if query.halves:
        in_half = max((_fit_half(half, field), number) for number, half in enumerate(query.halves) for field in fields)
        fit = fit._replace(in_half=in_half)
    named = [field for field in fields if _is_named(field, title)]
    if named and not is_title_field:
        return fit._replace(in_title=_NAMED, is_related=any(field.compact in artist.compact for field in named))
    return fit if in_artist or is_title_field else fit._replace(swapped=max(_fit_name(title, field) for field in fields))


def _is_named(name: Field, title: Field) -> bool:
    """Return whether the title field has the whole name, or both of two artists in any order."""
    if name.compact in title.runs or name.line in title.line:
        return True
    return len(name.halves) > 1 and all(half in title.runs for half in name.halves)


def _fit_words(asked: Field, words: frozenset[str]) -> float:
    """Return the value of artists that share a word with the artist field: people take one first name for another."""
    shared = max((len(word) for word in asked.words if word in words), default=0)
    is_telling = shared >= _SHORTEST_SHARED and shared >= _LEAST_SHARED_NAME * len(asked.compact)
    return _OTHER_FIRST_NAME if is_telling else 0.0


def _fit_half(half: Field, name: Field) -> float:
    return _NAMED if half.compact == name.compact else _compare_spellings(half.compact, name.compact)


def _fit_name(asked: Field, name: Field) -> float:
    """Return the value of one name of a document for the artist field."""
    if asked.compact == name.compact:
        return 1.0
    if name.compact in asked.runs and len(name.compact) > 1:
        return _NAMED
    # The test of the whole text spares most names the building of runs.
    if len(asked.compact) >= _SHORTEST_PART and asked.compact in name.compact and (part := _fit_part(asked.compact, name)):
        return part
    if asked.letters and len(asked.letters) <= _MOST_INITIALS and asked.letters in name.initials:
        return _INITIALS
    alike = _compare_spellings(asked.compact, name.compact)
    if alike or len(name.words) == 1:
        return alike
    # `marvin gay` for `Marvin Gaye & Tammi Terrell`, `pharel` for `Pharrell Williams`.
    parts = name.halves if len(name.halves) > 1 else name.words if len(asked.words) == 1 else ()
    letter = asked.compact[:1]
    return _PART_OF_NAME * max((_compare_spellings(asked.compact, part) for part in parts if part[:1] == letter), default=0.0)


def _fit_part(asked: str, name: Field) -> float:
    """Return the value of a text that is in a name: whole words, or its beginning without the last word finished."""
    if asked in name.runs:
        return _PART_OF_NAME
    return _UNFINISHED if _is_beginning(asked, name) else 0.0


def _is_beginning(asked: str, name: Field) -> bool:
    return len(asked) >= _SHORTEST_BEGINNING and name.compact.startswith(asked)


def _compare_spellings(asked: str, name: str) -> float:
    # `tupac` and `2pac`: digits sound like their names.
    if not name.isalpha() and has_digit_in_word(name) and build_sound_key(asked) == build_sound_key(name):
        return _SOUND
    if asked.isascii() != name.isascii():
        return _SOUND if any(_measure_sound(text, name) for text in list_sound_spellings(asked)) else 0.0
    alike = measure_alike(asked, name)
    return _MISSPELT_ARTIST * alike if alike >= _LEAST_ALIKE_ARTIST else 0.0


@lru_cache(maxsize=16_384)
def _build_document_field(key: str) -> Field:
    return Field(key)
