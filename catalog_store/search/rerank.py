"""How well a document's names fit the names asked for: a score 0..1, a class and the reasons.

Artists and title are compared apart and the worse of the two weighs more: a right artist never makes up for a wrong title. The variant
(remix, live ...) is no part of the similarity: it lowers the score when it differs, so that asked for by name it ranks first and
otherwise below the plain recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rapidfuzz import fuzz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_store.search.index import DocumentNames

FLOOR = 0.70
"""Below it nothing is returned."""
DECIMALS = 4
"""Scores are rounded so that a cursor finds its place on every machine."""

_WEAKER_SHARE = 0.65
"""Weight of the worse of the two similarities."""
_REORDERED, _SUBSET, _ONE_OF_SEVERAL, _FEATURED = 0.985, 0.90, 0.97, 0.96
"""What words in another order, words left out, one of several artists and a guest alone are worth of a full match."""
_UNASKED_VARIANT, _MISSING_VARIANT, _OTHER_VARIANT = 0.94, 0.90, 0.86
_EXACT, _STRONG = 0.9995, 0.90
_LONGEST_SUBSET_RATIO = 2.0


class Wanted(NamedTuple):
    """The names asked for, as keys."""

    artists: tuple[str, ...]
    featured: tuple[str, ...]
    title: str
    variant: str


class Match(NamedTuple):
    """Score 0..1; class exact, strong or fuzzy; reasons as stable codes."""

    score: float
    match_class: str
    reasons: tuple[str, ...]


def match(wanted: Wanted, names: DocumentNames) -> Match:
    """How well one document fits."""
    artist, artist_reason = _artists(wanted, names)
    title, title_reason = _title(wanted.title, names.title)
    variant, variant_reason = _variant(wanted.variant, names.variant)
    score = (_WEAKER_SHARE * min(artist, title) + (1 - _WEAKER_SHARE) * max(artist, title)) * variant
    score = round(score, DECIMALS)
    kind = "exact" if score >= _EXACT else "strong" if score >= _STRONG else "fuzzy"
    return Match(score, kind, (artist_reason, title_reason, variant_reason))


def _title(asked: str, found: str) -> tuple[float, str]:
    if asked == found or asked.replace(" ", "") == found.replace(" ", ""):
        return 1.0, "title_equal"
    return max(_likeness(asked, found)), "title_similar"


def _likeness(asked: str, found: str) -> tuple[float, float, float]:
    plain = fuzz.ratio(asked, found) / 100
    ordered = _REORDERED * fuzz.token_sort_ratio(asked, found) / 100
    shorter, longer = sorted((len(asked), len(found)))
    subset = _SUBSET * fuzz.token_set_ratio(asked, found) / 100 if longer <= _LONGEST_SUBSET_RATIO * shorter else 0.0
    return plain, ordered, subset


def _artists(wanted: Wanted, names: DocumentNames) -> tuple[float, str]:
    if set(wanted.artists) == set(names.artists):
        return 1.0, "artist_equal"
    asked = " ".join(wanted.artists)
    everyone = wanted.artists + wanted.featured
    best, reason = max(_likeness(asked, " ".join(names.artists))), "artist_similar"
    if wanted.featured or names.featured:
        together = max(_likeness(" ".join(sorted(everyone)), " ".join(sorted((*names.artists, *names.featured)))))
        best, reason = max((best, reason), (together, "artist_equal" if together == 1 else "artist_similar"))
    if len(names.artists) > 1 or len(everyone) > 1:
        best, reason = max((best, reason), (_ONE_OF_SEVERAL * _closest(everyone, names.artists), "one_of_artists"))
    if names.featured:
        best, reason = max((best, reason), (_FEATURED * _closest(everyone, names.featured), "featured_artist"))
    return best, reason


def _closest(asked: Sequence[str], found: Sequence[str]) -> float:
    return max(fuzz.ratio(one, other) for one in asked for other in found) / 100


def _variant(asked: str, found: str) -> tuple[float, str]:
    if asked == found:
        return 1.0, "variant_equal"
    if not asked:
        return _UNASKED_VARIANT, "variant_unasked"
    if not found:
        return _MISSING_VARIANT, "variant_missing"
    return _OTHER_VARIANT + (1 - _OTHER_VARIANT) * max(0.0, fuzz.token_sort_ratio(asked, found) / 50 - 1), "variant_differs"
