"""The reranker: how well a document's names fit the query, as a score 0..1, a class and reasons.

Artists and title are compared separately and the worse of the two weighs more: a right artist never makes up for a wrong title. The variant
(remix, live ...) is not part of the similarity. A different variant lowers the score, so a remix asked for by name ranks first and
otherwise ranks below the plain recording.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from catalog_store.search.calibration import calibrate
from catalog_store.search.plain_words import read_plain_words
from catalog_store.search.query_names import remove_connectives
from catalog_store.search.variant_comparison import SAME_PERFORMANCE, compare_note, compare_variants, read_note, spell_variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.search.credits import Artists
    from catalog_store.search.query_names import QueryNames
    from catalog_store.search.search_index import SearchIndex
    from catalog_store.search.titles import Title

    _Likeness = tuple[float, str]

POSSIBLE = "possible"
"""The class below the floor (line_comparison.py)."""
MATCH_CLASSES = ("exact", "strong", "fuzzy", POSSIBLE)
"""All classes, best first."""
FLOOR = 0.79
"""The likeness below which nothing is returned: answers there are wrong more often than right."""

_WEAKER_SHARE = 0.65
"""Weight of the worse of the two similarities."""
_REORDERED, _SUBSET, _HALF, _ONE_OF_SEVERAL, _STEM = 0.985, 0.90, 0.80, 0.97, 0.97
"""Share of a full match for: words in another order, words left out, the longer of two words left out, one of several artists, and a title
without its subtitle."""
OTHER_NAME, OTHER_NAME_OF_ONE, GUEST = 0.98, 0.965, 0.96
"""Share of a full match for: another name of an artist and another title, another name of one of several artists, and a guest. A name that
is shown stands before another name, and that before a guest."""
_SPELT = 0.99
"""Share of a full match for a title with a number that is spelt in another way."""
_LACKING = 0.74
"""Factor of a name that lacks words of the query. `Love` for `Fly Love` stays below the floor, and is `possible` at most."""
_ONE_WORD = "title_word"
"""The reason of a title of several words of which one was asked for: `Time Light` is possible for `Light`."""
_OTHER_REASONS = {"title_equal": "title_alias", "title_similar": "title_alias"}
_GUEST_UNKNOWN, _GUEST_ALONE = 0.985, 0.85
"""Share of a full match for: the right artist without a guest that the query names, and the right guest with another artist."""
_LONGEST_SUBSET_RATIO = 2.0
"""A text more than this many times longer is no longer the other one with words left out, unless exactly one word is missing."""
_FULL = 100.0
_BEGINNING, _SHORTEST_BEGINNING = 0.7, 5
"""Share of a full match when one name begins with the other, and the least letters of that beginning. Example: the query is `Sonic Vision
orignal mx`, the document `Sonic Vision`."""
_SURE_TITLE, _LEAST_LOOSE_LIKENESS = 0.9, 0.75
"""With a title this sure, an artist with words left out may also be misspelled. The second value is the least likeness of those words."""
_BOTH_PARTIAL = 0.95
"""Factor when both artist and title lack words."""
_READ_NOTE, _LEAST_WITH_NOTE = 0.98, 0.85
"""The least value of a note that says only the variant of the document, and the least likeness of title and note together."""
_STRONG = 0.90
_LEAST = (FLOOR - (1 - _WEAKER_SHARE)) / _WEAKER_SHARE
"""A title below this value cannot reach the floor with any artist, and the reverse. Most candidates are rejected here."""


class Match(NamedTuple):
    """Score 0..1; class, one of MATCH_CLASSES; reasons as stable codes, one each for artist, title and variant."""

    score: float
    match_class: str
    reasons: tuple[str, str, str]


class TitleFit(msgspec.Struct, frozen=True, gc=False):
    """The fit of a title and its variant."""

    likeness: float
    reason: str
    variant: float
    variant_reason: str


class ArtistFit(msgspec.Struct, frozen=True, gc=False):
    """The fit of a list of artists. `loosely` is the likeness when words may be both left out and misspelled."""

    likeness: float
    reason: str
    loosely: float


_UNKNOWN = TitleFit(0.0, "", 0.0, "")


class Comparison:
    """One query and the documents compared with it. Candidates often share artists and titles, so each of those is compared once."""

    def __init__(self, index: SearchIndex, query: QueryNames) -> None:
        """Compare `query` with documents of `index`."""
        self._index = index
        self._query = query
        self._titles: dict[Title, TitleFit | None] = {}
        self._artists: dict[int, ArtistFit] = {}

    def find_matches(self, documents: Sequence[int]) -> dict[int, Match]:
        """Return the match of each document that reaches the floor."""
        index, titles, artists = self._index, self._titles, self._artists
        found: dict[int, Match] = {}
        # Titles first: most candidates fail there, and their artists are never read.
        for document, title in zip(documents, index.titles.of(documents), strict=True):
            # Each look hashes all texts of a title, so a title that was not compared yet is looked up once.
            fit = titles.get(title, _UNKNOWN)
            if fit is _UNKNOWN:
                fit = titles[title] = compare_title(self._query, title)
            if fit is None:
                continue
            credit = index.credit_of[document]
            artist_fit = artists.get(credit)
            if artist_fit is None:
                artist_fit = artists[credit] = compare_artists(self._query, index.credits[credit])
            match = score_names(fit, artist_fit)
            if match is not None:
                found[document] = match
        return found


@lru_cache(maxsize=4_096)
def score_names(title: TitleFit, artists: ArtistFit) -> Match | None:
    """Combine title and artists into a match; None when it is below the floor."""
    artist, artist_reason = artists.likeness, artists.reason
    # A sure title is evidence for the recording, so the artist's words may be both missing and misspelled.
    if artist < _LEAST and title.likeness >= _SURE_TITLE:
        artist, artist_reason = max((artist, artist_reason), (artists.loosely, "artist_partial"))
    variant = title.variant
    title_reason = "title_partial" if title.reason == _ONE_WORD else title.reason
    if artist_reason == "artist_partial" and title_reason == "title_partial":
        variant *= _BOTH_PARTIAL
    likeness = (_WEAKER_SHARE * min(artist, title.likeness) + (1 - _WEAKER_SHARE) * max(artist, title.likeness)) * variant
    if likeness < FLOOR:
        return None
    # From SAME_PERFORMANCE on: an edit of the same performance still counts as exact.
    kind = "exact" if likeness >= SAME_PERFORMANCE else "strong" if likeness >= _STRONG else "fuzzy"
    kind = POSSIBLE if title.reason == _ONE_WORD else kind
    return Match(calibrate(likeness), kind, (artist_reason, title_reason, title.variant_reason))


def compare_title(query: QueryNames, candidate: Title) -> TitleFit | None:
    """Compare the titles; None when no artist could lift the document to the floor, as for most candidates."""
    likeness, reason = _compare_core(query, candidate.core)
    for other in candidate.others:
        other_likeness, other_reason = _compare_core(query, other)
        if OTHER_NAME * other_likeness > likeness:
            likeness, reason = OTHER_NAME * other_likeness, _OTHER_REASONS.get(other_reason, other_reason)
    fit = None
    if candidate.variant and likeness < 1.0:
        likeness, fit = _compare_with_note(query, candidate, likeness)
    if likeness < _LEAST:
        return None
    return TitleFit(likeness, reason, *(fit or compare_variants(query.variant, candidate.variant)))


def _compare_core(query: QueryNames, candidate: str) -> _Likeness:
    if query.title == candidate or query.compact_title == candidate.replace(" ", ""):
        return 1.0, "title_equal"
    # `No. vier` and `No. 4` differ in few letters less than `No. 3` does.
    if query.plain_title and read_plain_words(candidate) == query.plain_title:
        return _SPELT, "title_similar"
    likeness, is_whole = _measure_likeness(query.title, candidate)
    if query.stem != query.title:
        stem_likeness, is_stem_whole = _measure_likeness(query.stem, candidate)
        likeness, is_whole = max((likeness, is_whole), (_STEM * stem_likeness, is_stem_whole))
    if not is_whole and len(query.title) < len(candidate) and " " not in query.title:
        return likeness, _ONE_WORD
    return likeness, "title_similar" if is_whole else "title_partial"


def _compare_with_note(query: QueryNames, candidate: Title, likeness: float) -> tuple[float, tuple[float, str] | None]:
    """Return (likeness, fit of the variant) when the end of the asked title may be a note on this very variant: `Song live`."""
    core = candidate.core.replace(" ", "")
    if len(query.compact_title) <= len(core):
        return likeness, None
    if query.compact_title.startswith(core):
        noted = max(
            compare_note(query.compact_title[len(core) :], candidate.variant), read_note(query.title, candidate.core, candidate.variant)
        )
        return (1.0, (_READ_NOTE + (1 - _READ_NOTE) * noted, "variant_similar")) if noted else (likeness, None)
    whole = max(fuzz.ratio(query.compact_title, core + wording) for wording in spell_variant(candidate.variant)) / 100
    return (whole, (SAME_PERFORMANCE, "variant_similar")) if whole > max(likeness, _LEAST_WITH_NOTE) else (likeness, None)


def _measure_likeness(query: str, candidate: str) -> tuple[float, bool]:
    """Return (likeness, whether both were compared whole, with no words left out). Below _LEAST the value is not exact."""
    shorter, longer = (query, candidate) if len(query) <= len(candidate) else (candidate, query)
    edits = 0.0
    # Edits alone make up the difference in length, so a shorter text cannot reach _LEAST: skip the costly comparison.
    if len(shorter) >= _LEAST * len(longer):
        # Edits, not common letters: a measure of common letters rates `All Of Me` and `Sea Of Time` at 70 %, but they are six edits apart.
        edits = OSA.normalized_similarity(query, candidate)
        if edits < _REORDERED and " " in query and " " in candidate:
            edits = max(edits, _REORDERED * OSA.normalized_similarity(_sort_words(query), _sort_words(candidate)))
        if edits >= _SUBSET:
            return edits, True
    partial = _measure_partial_likeness(shorter, longer, query)
    return (edits, True) if edits >= partial else (partial, False)


def _measure_partial_likeness(shorter: str, longer: str, query: str) -> float:
    """Return the likeness of the words that both have, at most _SUBSET."""
    if len(longer) <= _LONGEST_SUBSET_RATIO * len(shorter):
        # A name that lacks words of the query stands behind one that has them all.
        worth = _SUBSET if longer is not query else _LACKING * _SUBSET
        return worth * fuzz.token_set_ratio(shorter, longer) / _FULL
    if abs(shorter.count(" ") - longer.count(" ")) == 1 and fuzz.token_set_ratio(shorter, longer) == _FULL:
        return _HALF if longer is not query else _LACKING * _HALF
    # A single short word begins many names, so it counts only when the query is the longer text.
    is_telling = len(shorter) >= _SHORTEST_BEGINNING and (longer is query or " " in shorter)
    return _BEGINNING if is_telling and longer.startswith(shorter + " ") else 0.0


def _measure_loose_likeness(query: str, candidate: str) -> float:
    """Return the likeness of a name with some words left out and others misspelled.

    0 when a word has no similar word in the other name, or when none was left out.
    """
    some, all_ = sorted((query.split(" "), candidate.split(" ")), key=len)
    if len(some) == len(all_):
        return 0.0
    alike = sum(len(word) * max(OSA.normalized_similarity(word, other) for other in all_) for word in some) / sum(map(len, some))
    return _HALF * alike if alike >= _LEAST_LOOSE_LIKENESS else 0.0


# One query is compared with many candidates, so its words are sorted once.
@lru_cache(maxsize=256)
def _sort_words(words: str) -> str:
    return " ".join(sorted(words.split(" ")))


def compare_artists(query: QueryNames, names: Artists) -> ArtistFit:
    """Compare the artists of the query with a list of artists."""
    primary = remove_connectives(" ".join(names.primary))
    likeness, reason = _compare_lists(query, names, primary)
    return ArtistFit(likeness, reason, _measure_loose_likeness(query.alone, primary) if likeness < _LEAST else 0.0)


def _compare_lists(query: QueryNames, names: Artists, primary: str) -> _Likeness:
    everyone = remove_connectives(" ".join((*names.primary, *names.featured))) if names.featured else primary
    if query.everyone in {primary, everyone} or set(query.artists) == set(names.primary):
        return 1.0, "artist_equal"
    found = [_compare_names(query.everyone, primary)]
    if query.alone != query.everyone:
        found.append(_compare_names(query.alone, primary, _GUEST_UNKNOWN))
    each = (query.whole, *query.artists)
    if names.featured:
        found.append(_compare_names(query.everyone, everyone))
        found.append((GUEST * _find_closest(each, names.featured), "featured_artist"))
    if names.aliases:
        worth = OTHER_NAME if len(names.primary) == 1 else OTHER_NAME_OF_ONE
        found.append((worth * _find_closest(each, names.aliases), "artist_alias"))
    if len(names.primary) > 1 or len(query.artists) > 1:
        found.append((_ONE_OF_SEVERAL * _find_closest(each, names.primary), "one_of_artists"))
    if query.guests:
        found.append((_GUEST_ALONE * _find_closest(query.guests, (*names.primary, *names.featured)), "featured_artist"))
    # The last reason of the alphabet wins among equal values, so the answer does not depend on the order above.
    return max(found)


def _compare_names(query: str, candidate: str, worth: float = 1.0) -> _Likeness:
    likeness, is_whole = _measure_likeness(query, candidate)
    return worth * likeness, "artist_similar" if is_whole else "artist_partial"


def _find_closest(queries: Iterable[str], candidates: Sequence[str]) -> float:
    return max(OSA.normalized_similarity(one, other) for one in queries for other in candidates)
