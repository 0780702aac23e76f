"""Search by artist and title: keys, word pairs, candidates, one-edit widening where pairs found nothing good, rerank, page.

The order is total: score descending, popularity descending, id ascending (contract C4); a page goes on behind the place in its cursor.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import DeadlineExceededError, InvalidQueryError
from catalog_store.search.calibration import calibrated
from catalog_store.search.candidates import FEW, by_other_readings, by_words
from catalog_store.search.rerank import Match, match
from catalog_store.search.wanted import wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from catalog_store.search.index import SearchIndex
    from catalog_store.search.wanted import Wanted

MAX_NAME_CHARACTERS = 500
"""Contract C1."""
MAX_LIMIT = 100
DEFAULT_LIMIT = 20
GOOD_SCORE = calibrated(0.88)
"""A best score below it has words read in other ways, too."""


class Hit(NamedTuple):
    """A recording found: score 0..1, class (exact, strong, fuzzy) and reasons (stable codes)."""

    id: int
    score: float
    match_class: str
    reasons: tuple[str, ...]


class SearchPage(NamedTuple):
    """One page; `next_cursor` is None exactly at the end."""

    hits: list[Hit]
    next_cursor: str | None


class Request(NamedTuple):
    """A search as asked."""

    artist: str
    title: str
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None

    def check(self) -> None:
        """InvalidQueryError naming the value at fault."""
        for name in ("artist", "title"):
            value: str = getattr(self, name)
            if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
                raise InvalidQueryError(f"{name} holds half a surrogate pair: send it as UTF-8")
            if not value.strip():
                raise InvalidQueryError(f"{name} is blank: both artist and title are needed")
            if len(value) > MAX_NAME_CHARACTERS:
                raise InvalidQueryError(f"{name} has {len(value)} characters: at most {MAX_NAME_CHARACTERS} are compared")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidQueryError(f"limit is {self.limit}: from 1 to {MAX_LIMIT}")


class _Found(NamedTuple):
    place: Place
    match: Match


def search(index: SearchIndex, cursors: CursorCodec, request: Request, *, deadline: float) -> SearchPage:
    """One page of recordings that fit the names; `deadline` in seconds."""
    request.check()
    query = ("search", request.artist, request.title)
    after = cursors.decode(query, request.cursor) if request.cursor is not None else None
    until = time.monotonic() + deadline
    found = sorted(_ranked(index, request, until), key=lambda one: one.place.order)
    if after is not None:
        found = [one for one in found if one.place.order > after.order]
    page = found[: request.limit]
    rest = len(found) > request.limit
    return SearchPage(
        [Hit(one.place.id, one.match.score, one.match.match_class, one.match.reasons) for one in page],
        cursors.encode(query, page[-1].place) if rest else None,
    )


def _ranked(index: SearchIndex, request: Request, until: float) -> list[_Found]:
    asked = wanted(request.artist, request.title)
    look = by_words(index, asked)
    found = _compared(index, asked, look.documents, until)
    if max((one.place.score for one in found), default=0.0) < GOOD_SCORE:
        _check(until)
        found += _compared(index, asked, by_other_readings(index, asked, look), until)
    return list({one.place.id: one for one in found}.values())


def _compared(index: SearchIndex, asked: Wanted, candidates: NDArray[np.uint32], until: float) -> list[_Found]:
    found = _good(index, asked, candidates[:FEW])
    if len(found) == FEW and len(candidates) > FEW:
        _check(until)
        found += _good(index, asked, candidates[FEW:])
    return found


def _good(index: SearchIndex, asked: Wanted, documents: NDArray[np.uint32]) -> list[_Found]:
    ids, popularity = index.ids[documents].tolist(), index.popularity[documents].tolist()
    matches = (match(asked, names) for names in index.names(documents))
    return [_Found(Place(m.score, p, i), m) for m, p, i in zip(matches, popularity, ids, strict=True) if m]


def _check(until: float) -> None:
    if time.monotonic() > until:
        raise DeadlineExceededError("a search took longer than the catalog allows")
