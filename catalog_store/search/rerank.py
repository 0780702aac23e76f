"""How well a document's names fit the names asked for: a score 0..1, a class and the reasons.

Artists and title are compared apart and the worse of the two weighs more: a right artist never makes up for a wrong title. The variant
(remix, live ...) is no part of the similarity: it lowers the score when it differs, so that asked for by name it ranks first and
otherwise below the plain recording.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from catalog_store.search.calibration import calibrated
from catalog_store.search.variants import SAME_PERFORMANCE, note_fit, variant_fit, wordings
from catalog_store.search.wanted import comparable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from catalog_store.search.credits import Artists
    from catalog_store.search.index import SearchIndex
    from catalog_store.search.titles import Title
    from catalog_store.search.wanted import Wanted

    _Likeness = tuple[float, str]

FLOOR = 0.79
"""Likeness below which nothing is returned: answers there are wrong more often than right."""

_WEAKER_SHARE = 0.65
"""Weight of the worse of the two similarities."""
_REORDERED, _SUBSET, _HALF, _ONE_OF_SEVERAL, _STEM = 0.985, 0.90, 0.80, 0.97, 0.97
"""What words in another order, words left out, the longer of two words left out, one of several artists and a title without its subtitle
are worth of a full match."""
_GUEST_UNKNOWN, _GUEST_ALONE = 0.985, 0.85
"""What the right artist beside a guest that the document lacks is worth, and the right guest beside another artist."""
_LONGEST_SUBSET_RATIO = 2.0
"""A text more than so many times longer than the other is not the other with words left out, unless just one is."""
_FULL = 100.0
_BEGINNING, _SHORTEST_BEGINNING = 0.7, 5
"""What a name is worth that the other begins with, and letters that it must have: `Sonic Vision orignal mx` asked, `Sonic Vision` found."""
_SURE_TITLE, _LOOSELY_ALIKE = 0.9, 0.75
"""Beside such a title an artist with words left out may be misspelt, too; how much alike its words must be."""
_BOTH_PARTIAL = 0.95
"""Words left out of artist and title, both."""
_READ_NOTE, _LEAST_WITH_NOTE = 0.98, 0.85
"""A note that is nothing but the variant found: what it is worth at least. Likeness that title and note together must have."""
_STRONG = 0.90
_LEAST = (FLOOR - (1 - _WEAKER_SHARE)) / _WEAKER_SHARE
"""A worse title cannot reach the floor whoever the artist, nor a worse artist: most candidates are done with here."""


class Match(NamedTuple):
    """Score 0..1; class exact, strong or fuzzy; reasons as stable codes: one each on artist, title, variant."""

    score: float
    match_class: str
    reasons: tuple[str, str, str]


class TitleFit(msgspec.Struct, frozen=True, gc=False):
    """How well a title fits, and its variant."""

    likeness: float
    reason: str
    variant: float
    variant_reason: str


class ArtistsFit(msgspec.Struct, frozen=True, gc=False):
    """How well a list of artists fits; `loosely`: how well when words of it may be both left out and misspelt."""

    likeness: float
    reason: str
    loosely: float


class Comparison:
    """One query held against documents. Candidates share artists, and in crowds titles: each is compared once."""

    def __init__(self, index: SearchIndex, asked: Wanted) -> None:
        """`asked` in `index`."""
        self._index = index
        self._asked = asked
        self._titles: dict[Title, TitleFit | None] = {}
        self._artists: dict[int, ArtistsFit] = {}

    def matches(self, documents: Sequence[int]) -> dict[int, Match]:
        """How well documents fit; those below the floor are left out."""
        index, titles, artists = self._index, self._titles, self._artists
        found: dict[int, Match] = {}
        for document, title in zip(documents, index.titles.of(documents), strict=True):
            if title not in titles:
                titles[title] = fit_of_title(self._asked, title)
            fit = titles[title]
            if fit is None:
                continue
            credit = index.credit_of[document]
            of_artists = artists.get(credit)
            if of_artists is None:
                of_artists = artists[credit] = fit_of_artists(self._asked, index.credits[credit])
            fits = match(fit, of_artists)
            if fits is not None:
                found[document] = fits
        return found


@lru_cache(maxsize=4_096)
def match(title: TitleFit, artists: ArtistsFit) -> Match | None:
    """How well a document with such names fits; None when below the floor."""
    artist, artist_reason = artists.likeness, artists.reason
    if artist < _LEAST and title.likeness >= _SURE_TITLE:
        artist, artist_reason = max((artist, artist_reason), (artists.loosely, "artist_partial"))
    variant = title.variant
    if artist_reason == "artist_partial" and title.reason == "title_partial":
        variant *= _BOTH_PARTIAL
    likeness = (_WEAKER_SHARE * min(artist, title.likeness) + (1 - _WEAKER_SHARE) * max(artist, title.likeness)) * variant
    if likeness < FLOOR:
        return None
    kind = "exact" if likeness >= SAME_PERFORMANCE else "strong" if likeness >= _STRONG else "fuzzy"
    return Match(calibrated(likeness), kind, (artist_reason, title.reason, title.variant_reason))


def fit_of_title(asked: Wanted, found: Title) -> TitleFit | None:
    """How well a title fits; None when that is too little whoever the artist, as for most candidates."""
    likeness, reason = _title(asked, found.core)
    fit = None
    if found.variant and likeness < 1.0:
        likeness, fit = _with_note(asked, found, likeness)
    if likeness < _LEAST:
        return None
    return TitleFit(likeness, reason, *(fit or variant_fit(asked.variant, found.variant)))


def _title(asked: Wanted, found: str) -> _Likeness:
    if asked.title == found or asked.compact_title == found.replace(" ", ""):
        return 1.0, "title_equal"
    likeness, is_whole = _likeness(asked.title, found)
    if asked.stem != asked.title:
        of_stem, is_whole_stem = _likeness(asked.stem, found)
        likeness, is_whole = max((likeness, is_whole), (_STEM * of_stem, is_whole_stem))
    return likeness, "title_similar" if is_whole else "title_partial"


def _with_note(asked: Wanted, names: Title, title: float) -> tuple[float, tuple[float, str] | None]:
    """(likeness, fit of the variant) if the title asked for ends in what may be a note on this very variant: `Song live`."""
    found = names.core.replace(" ", "")
    if len(asked.compact_title) <= len(found):
        return title, None
    if asked.compact_title.startswith(found):
        noted = note_fit(asked.compact_title[len(found) :], names.variant)
        return (1.0, (_READ_NOTE + (1 - _READ_NOTE) * noted, "variant_similar")) if noted else (title, None)
    whole = max(fuzz.ratio(asked.compact_title, found + wording) for wording in wordings(names.variant)) / 100
    return (whole, (SAME_PERFORMANCE, "variant_similar")) if whole > max(title, _LEAST_WITH_NOTE) else (title, None)


def _likeness(asked: str, found: str) -> tuple[float, bool]:
    """(likeness, whether the whole of both was compared, no words left out); below _LEAST any value is as good as another."""
    shorter, longer = (asked, found) if len(asked) <= len(found) else (found, asked)
    edits = 0.0
    if len(shorter) >= _LEAST * len(longer):
        edits = OSA.normalized_similarity(asked, found)
        if edits < _REORDERED and " " in asked and " " in found:
            edits = max(edits, _REORDERED * OSA.normalized_similarity(_sorted(asked), _sorted(found)))
        if edits >= _SUBSET:
            return edits, True
    partial = _partial(shorter, longer, asked)
    return (edits, True) if edits >= partial else (partial, False)


def _partial(shorter: str, longer: str, asked: str) -> float:
    """Likeness of the words that both have, at most _SUBSET."""
    if len(longer) <= _LONGEST_SUBSET_RATIO * len(shorter):
        return _SUBSET * fuzz.token_set_ratio(shorter, longer) / _FULL
    if abs(shorter.count(" ") - longer.count(" ")) == 1 and fuzz.token_set_ratio(shorter, longer) == _FULL:
        return _HALF
    is_telling = len(shorter) >= _SHORTEST_BEGINNING and (longer is asked or " " in shorter)
    return _BEGINNING if is_telling and longer.startswith(shorter + " ") else 0.0


def _loosely(asked: str, found: str) -> float:
    """Likeness of a name with words left out and others misspelt; 0 when its words are not among the found ones, or none was left out."""
    some, all_ = sorted((asked.split(" "), found.split(" ")), key=len)
    if len(some) == len(all_):
        return 0.0
    alike = sum(len(word) * max(OSA.normalized_similarity(word, other) for other in all_) for word in some) / sum(map(len, some))
    return _HALF * alike if alike >= _LOOSELY_ALIKE else 0.0


@lru_cache(maxsize=256)
def _sorted(words: str) -> str:
    return " ".join(sorted(words.split(" ")))


def fit_of_artists(asked: Wanted, names: Artists) -> ArtistsFit:
    """How well a list of artists fits."""
    primary = comparable(" ".join(names.primary))
    likeness, reason = _artists(asked, names, primary)
    return ArtistsFit(likeness, reason, _loosely(asked.alone, primary) if likeness < _LEAST else 0.0)


def _artists(asked: Wanted, names: Artists, primary: str) -> _Likeness:
    everyone = comparable(" ".join((*names.primary, *names.featured))) if names.featured else primary
    if asked.everyone in {primary, everyone} or set(asked.artists) == set(names.primary):
        return 1.0, "artist_equal"
    found = [_named(asked.everyone, primary)]
    if asked.alone != asked.everyone:
        found.append(_named(asked.alone, primary, _GUEST_UNKNOWN))
    each = (asked.whole, *asked.artists)
    if names.featured:
        found.append(_named(asked.everyone, everyone))
        found.append((_ONE_OF_SEVERAL * _closest(each, names.featured), "featured_artist"))
    if len(names.primary) > 1 or len(asked.artists) > 1:
        found.append((_ONE_OF_SEVERAL * _closest(each, names.primary), "one_of_artists"))
    if asked.guests:
        found.append((_GUEST_ALONE * _closest(asked.guests, (*names.primary, *names.featured)), "featured_artist"))
    return max(found)


def _named(asked: str, found: str, worth: float = 1.0) -> _Likeness:
    likeness, is_whole = _likeness(asked, found)
    return worth * likeness, "artist_similar" if is_whole else "artist_partial"


def _closest(asked: Iterable[str], found: Sequence[str]) -> float:
    return max(OSA.normalized_similarity(one, other) for one in asked for other in found)
