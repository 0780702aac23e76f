"""The wide comparison: whether a document's artist and title are in a query, in whatever field, or hold what was asked.

It runs when the comparison by fields (reranker.py) found nothing good. An answer needs an artist that fits, and a title that is part of
what was asked or holds it. Its class is always `possible`. Values order kinds of fit, so that popularity orders answers of one kind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz.distance import OSA

from catalog_store.name_keys.romanisation import build_sound_key, compare_sounds, romanise
from catalog_store.search.extra_words import has_digit_in_word, list_composers
from catalog_store.search.line_query import FREE_WORDS, SILENT_R, build_field
from catalog_store.search.variant_comparison import compare_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.search.credits import Artists
    from catalog_store.search.line_query import Field, LineQuery, Reading
    from catalog_store.search.search_index import SearchIndex
    from catalog_store.search.titles import Title

_NAMED, _PART_OF_NAME, _INITIALS, _SOUND, _WORDS_OF_ALL = 0.98, 0.95, 0.94, 0.94, 0.95
"""Values of an artist: named among other words, half a name, initials, the same sound, words of several artists."""
_MISSPELT_ARTIST, _COMPOSER = 0.93, 0.93
_FROM_TITLE, _STRANGER_BESIDE = 0.97, 0.9
"""Factors of an artist named in the title field alone: beside a related artist field, and beside an unrelated one."""
_SWAPPED = 0.97
_BEGINNING, _PART, _SCATTERED, _HELD, _SHARED = 0.93, 0.92, 0.88, 0.82, 0.55
"""Values of a title: the query begins it, is part of it, has words of it, holds it; both share words (up to _SHARED_MOST more)."""
_HELD_MORE, _SHARED_MORE, _SHARED_CORE = 0.1, 0.3, 0.05
_LEAST_HELD, _LEAST_HELD_STRICT, _LEAST_SHARED, _LEAST_SHARED_WORDS = 0.5, 0.8, 0.6, 2
_LEAST_ALIKE_WORD, _CORRECTED = 0.75, 0.96
"""The least likeness of a word with a typing error, and the factor of a title with such words."""
_LEAST_ALIKE_ARTIST, _LEAST_ALIKE_SOUND, _LEAST_ALIKE_CONSONANTS = 0.79, 0.8, 0.6
_SHORTEST_PART, _SHORTEST_TYPO, _SHORTEST_SOUND = 3, 4, 2
_SAME_SOUND, _TELLING_SOUND, _LEAST_ALIKE_VOWELS = 0.92, 4, 0.3
_HAN_RE = re.compile("[\u3005\u3400-\u9fff]")
"""Chinese characters; the pattern of japanese_readings.py, which opens a dictionary's module."""
_CATALOGUED = 0.64
"""Value of a title with the catalogue number that was asked for, whatever words are around it."""
_LEFT_OVER_VARIANT = 0.995
LEAST = 0.6
"""Least likeness of an answer."""


class LineFit(NamedTuple):
    """Likeness, and the reasons for artist, title and variant."""

    likeness: float
    reasons: tuple[str, str, str]


class _ArtistFit(NamedTuple):
    """The value of an artist in the artist field and in the title field, 0 for none, and the words of all artists."""

    in_artist: float
    in_title: float
    is_title_field: bool
    is_related: bool
    words: frozenset[str]


class _TitleFit(NamedTuple):
    """The value of a title, 0 for none, the reason, and words behind a title that the field holds."""

    value: float
    reason: str
    left_over: tuple[str, ...] = ()


class LineComparison:
    """One query in its wide reading, and the documents compared with it."""

    def __init__(self, index: SearchIndex, query: LineQuery, by_sound: frozenset[int] = frozenset()) -> None:
        """Compare `query` with documents of `index`; titles of `by_sound` are known to sound like it."""
        self._index, self._query, self._by_sound = index, query, by_sound
        self._artists: dict[int, _ArtistFit] = {}

    def find_fits(self, documents: Sequence[int]) -> dict[int, LineFit]:
        """Return the fit of each document that fits at all."""
        index, found = self._index, {}
        for document, title in zip(documents, index.titles.of(documents), strict=True):
            credit = index.credit_of[document]
            if credit not in self._artists:
                self._artists[credit] = _fit_artists(self._query, index.credits[credit])
            fit = _fit_document(self._query, self._artists[credit], title)
            # A reading of Chinese characters is in the index alone.
            if document in self._by_sound and _HAN_RE.search(title.core) and self._artists[credit].in_artist:
                variant, reason = compare_variants(self._query.titles[0].variant, title.variant)
                read = LineFit(_SAME_SOUND * self._artists[credit].in_artist * variant, ("artist_equal", "title_similar", reason))
                fit = max(fit or read, read)
            if fit is not None and fit.likeness >= LEAST:
                found[document] = fit
        return found


def _fit_document(query: LineQuery, artists: _ArtistFit, title: Title) -> LineFit | None:
    return max(_fit_arrangements(query, artists, title), key=lambda fit: fit.likeness, default=None)


def _fit_arrangements(query: LineQuery, artists: _ArtistFit, title: Title) -> Iterable[LineFit]:
    if not (artists.in_artist or artists.in_title or query.composers):
        return
    core = _build_document_field(title.core)
    if not artists.in_artist and query.composers and (composers := list_composers(title.core)) & query.composers:
        artists = artists._replace(in_artist=_COMPOSER, words=artists.words | composers)
    for reading in query.titles:
        if artists.in_artist:
            yield from _fit_title(reading, core, title, artists, artists.in_artist)
        if artists.in_title and not artists.is_title_field:
            factor = _FROM_TITLE if artists.is_related else _STRANGER_BESIDE
            yield from _fit_title(reading, core, title, artists, factor * artists.in_title, is_strict=True)
    if artists.in_title and artists.is_title_field:
        yield from _fit_title(query.artist_as_title, core, title, artists, _SWAPPED * artists.in_title, is_strict=True)


def _fit_title(
    reading: Reading, core: Field, title: Title, artists: _ArtistFit, artist_value: float, *, is_strict: bool = False
) -> Iterable[LineFit]:
    value, reason, left_over = _compare_titles(reading.field, core, artists.words, is_strict=is_strict)
    variant, variant_reason = compare_variants(reading.variant, title.variant)
    # `mr brightside thin white duke`: the words that are no title may name the version.
    if left_over and title.variant and "".join(left_over) in title.variant.replace(" ", ""):
        value, variant, variant_reason = max(value, _PART), _LEFT_OVER_VARIANT, "variant_similar"
    if value:
        artist_reason = "artist_equal" if artist_value == 1.0 else "artist_partial"
        yield LineFit(artist_value * value * variant, (artist_reason, reason, variant_reason))


def _compare_titles(asked: Field, core: Field, artist_words: frozenset[str], *, is_strict: bool) -> _TitleFit:
    """Compare a title with a field, without the words of the field that name the artist or mean nothing."""
    known = frozenset(core.words)
    named = artist_words - known
    telling = [word for word in asked.words if word not in named and word not in FREE_WORDS] or list(asked.words)
    telling, worth = _correct_words(telling, known)
    compact = "".join(telling)
    if core.compact in {asked.compact, compact}:
        return _TitleFit(worth, "title_equal" if worth == 1.0 else "title_similar")
    if compact in core.runs or f" {' '.join(telling)} " in f" {' '.join(core.words)} ":
        return _TitleFit(worth * (_BEGINNING if core.compact.startswith(compact) else _PART), "title_partial")
    if known.issuperset(telling):
        return _TitleFit(0.0 if is_strict else worth * _SCATTERED, "title_partial")
    sound = _compare_by_sound(asked, core)
    return _TitleFit(sound, "title_similar") if sound else _compare_words(asked, core, telling, is_strict=is_strict)


def _correct_words(words: list[str], known: frozenset[str]) -> tuple[list[str], float]:
    """Return the words with typing errors corrected towards the `known` ones, and the worth of it."""
    corrected: list[str] = []
    for word in words:
        close = word
        if word not in known and len(word) >= _SHORTEST_TYPO and not word.isdigit():
            likeness, other = max(
                ((OSA.normalized_similarity(word, one), one) for one in known if len(one) >= _SHORTEST_TYPO), default=(0.0, "")
            )
            close = other if likeness >= _LEAST_ALIKE_WORD else word
        corrected.append(close)
    return corrected, 1.0 if corrected == words else _CORRECTED


def _compare_words(asked: Field, core: Field, telling: list[str], *, is_strict: bool) -> _TitleFit:
    """Compare a title with the `telling` words of a field, some of which it lacks."""
    known = set(core.words)
    # `BTS (방탄소년단) - Dynamite`: the same name again in another script.
    if core.compact.isascii():
        telling = [word for word in telling if word.isascii()] or telling
    shared = {word for word in telling if word in known}
    left_over = [word for word in telling if word not in known]
    covered = sum(_count_letters(word) for word in telling if word in known) / max(1, sum(map(_count_letters, telling)))
    is_held = core.compact in asked.runs or shared == known
    value = 0.0
    if is_held and covered >= (_LEAST_HELD_STRICT if is_strict else _LEAST_HELD):
        value = _HELD + _HELD_MORE * covered
    elif asked.catalogue & core.catalogue:
        value = _CATALOGUED + _SHARED_MORE * covered
    elif not is_strict and len(shared) >= _LEAST_SHARED_WORDS and covered >= _LEAST_SHARED:
        of_core = sum(map(_count_letters, shared)) / max(1, sum(map(_count_letters, known)))
        value = _SHARED + _SHARED_MORE * covered + _SHARED_CORE * of_core
    return _TitleFit(value, "title_partial", tuple(left_over) if is_held else ())


def _compare_by_sound(asked: Field, core: Field) -> float:
    if asked.compact.isascii() == core.compact.isascii():
        return 0.0
    return _SAME_SOUND * max(_measure_sound(text, core.compact) for text in {asked.compact, SILENT_R.sub("", asked.compact)})


def _measure_sound(asked: str, name: str) -> float:
    """Return how alike two texts of different scripts sound; 0 for no evidence."""
    one, other = build_sound_key(asked), build_sound_key(name)
    if one == other and len(one) >= _SHORTEST_SOUND:
        # Few consonants are shared by many names: some of the vowels must agree, too.
        alike = OSA.normalized_similarity(romanise(asked), romanise(name))
        return float(len(one) >= _TELLING_SOUND or alike >= _LEAST_ALIKE_VOWELS)
    # The consonants are known. Most names differ there, and the costly comparison of all letters is skipped.
    if OSA.normalized_similarity(one, other) < _LEAST_ALIKE_CONSONANTS:
        return 0.0
    alike = compare_sounds(asked, name)
    return alike if alike >= _LEAST_ALIKE_SOUND else 0.0


def _count_letters(word: str) -> int:
    # A number says as much as a word.
    return max(_SHORTEST_PART, len(word)) if word.isdigit() else len(word)


def _fit_artists(query: LineQuery, names: Artists) -> _ArtistFit:
    fields = [_build_document_field(name) for name in (*names.primary, *names.featured)]
    if len(names.primary) > 1:
        fields.append(_build_document_field(" ".join(names.primary)))
    words = frozenset(word for field in fields for word in field.words)
    title = query.titles[0].field
    in_artist = max((_fit_name(query.artist, field) for field in fields), default=0.0)
    if not in_artist and words.issuperset(query.artist.words):
        in_artist = _WORDS_OF_ALL
    is_title_field = any(field.compact == title.compact for field in fields)
    named = [field for field in fields if field.compact in title.runs]
    in_title = 1.0 if is_title_field else _NAMED if named else 0.0
    is_related = any(field.compact in query.artist.compact for field in named)
    return _ArtistFit(in_artist, in_title, is_title_field, is_related, words)


def _fit_name(asked: Field, name: Field) -> float:
    """Return the value of one name of a document for the artist field."""
    if asked.compact == name.compact:
        return 1.0
    if name.compact in asked.runs and len(name.compact) > 1:
        return _NAMED
    if len(asked.compact) >= _SHORTEST_PART and asked.compact in name.runs:
        return _PART_OF_NAME
    if len(asked.words) == 1 and asked.compact in name.initials:
        return _INITIALS
    return _compare_spellings(asked.compact, name.compact)


def _compare_spellings(asked: str, name: str) -> float:
    # `tupac` and `2pac`: digits sound like their names.
    if has_digit_in_word(name) and build_sound_key(asked) == build_sound_key(name):
        return _SOUND
    if asked.isascii() != name.isascii():
        return _SOUND if _measure_sound(asked, name) else 0.0
    alike = OSA.normalized_similarity(asked, name) if min(len(asked), len(name)) >= _SHORTEST_TYPO else 0.0
    return _MISSPELT_ARTIST * alike if alike >= _LEAST_ALIKE_ARTIST else 0.0


@lru_cache(maxsize=16_384)
def _build_document_field(key: str) -> Field:
    return build_field(key)
