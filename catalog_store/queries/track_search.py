"""Search by artist and title: name keys, word pairs, candidates, corrected words when pairs found nothing good, rerank, page.

The order is total: score descending, popularity descending, id ascending (contract C4). A page continues after the place in its cursor.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from catalog_store.cursors import CursorCodec, Place
from catalog_store.errors import DeadlineExceededError, InvalidQueryError
from catalog_store.name_keys import fold
from catalog_store.name_keys.folding import extract_words
from catalog_store.search.calibration import LEAST_SCORE, RARE, calibrate, cut_possible, doubt, score_possible
from catalog_store.search.candidates import COMPARED_AT_ONCE, find_by_other_readings, find_by_whole_names, find_by_words, find_in_any_field
from catalog_store.search.chance import Chance
from catalog_store.search.line_comparison import LineComparison
from catalog_store.search.line_query import read_line_query
from catalog_store.search.pasted_texts import decode_pasted
from catalog_store.search.query_names import read_query
from catalog_store.search.reranker import MATCH_CLASSES, POSSIBLE, Comparison, Match

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from catalog_store.search.line_comparison import LineFit
    from catalog_store.search.query_names import QueryNames
    from catalog_store.search.search_index import SearchIndex

MAX_NAME_CHARACTERS = 500
"""Contract C1."""
LOWEST_CLASS = MATCH_CLASSES[-1]
MAX_LIMIT = 100
DEFAULT_LIMIT = 20
GOOD_SCORE = calibrate(0.88)
"""Words are read in other ways when the best score is below this one."""
FAIR_SCORE = 0.8
"""Both fields are read as lists of words when the best score is below this one: answers of that reading rank behind all others."""
SURE_FIT = 0.75
"""Whole names are looked up when no answer of the wide reading fits as well."""


class Hit(NamedTuple):
    """A recording found: score 0..1, class (one of MATCH_CLASSES) and reasons (stable codes)."""

    id: int
    score: float
    match_class: str
    reasons: tuple[str, ...]


class SearchPage(NamedTuple):
    """One page; `next_cursor` is None exactly at the end."""

    hits: list[Hit]
    next_cursor: str | None


class Request(NamedTuple):
    """One search: the two names, the page size, the place to continue, and the lowest class to return."""

    artist: str
    title: str
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    min_class: str = LOWEST_CLASS

    def check(self) -> None:
        """Raise InvalidQueryError that names the wrong value."""
        for name in ("artist", "title"):
            value: str = getattr(self, name)
            # A lone surrogate has no UTF-8 form, so neither hashing nor the cursor could encode it. `isprintable` is the quick test of
            # nearly all names.
            if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
                raise InvalidQueryError(f"{name} holds half a surrogate pair: send it as UTF-8")
            if not value.strip():
                raise InvalidQueryError(f"{name} is blank: both artist and title are needed")
            if len(value) > MAX_NAME_CHARACTERS:
                raise InvalidQueryError(f"{name} has {len(value)} characters: at most {MAX_NAME_CHARACTERS} are compared")
        if self.min_class not in MATCH_CLASSES:
            raise InvalidQueryError(f"min_class is {self.min_class!r}: one of {', '.join(MATCH_CLASSES)}")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidQueryError(f"limit is {self.limit}: from 1 to {MAX_LIMIT}")


def search(index: SearchIndex, cursors: CursorCodec, request: Request, *, deadline: float) -> SearchPage:
    """Return one page of recordings that fit the names; `deadline` in seconds."""
    request.check()
    # A cursor belongs to its query: pages of two classes are two queries.
    query = ("search", request.artist, request.title, *([] if request.min_class == LOWEST_CLASS else [request.min_class]))
    after = cursors.decode(query, request.cursor) if request.cursor is not None else None
    found = _find_matches(index, request, time.monotonic() + deadline)
    if request.min_class != LOWEST_CLASS:
        allowed = MATCH_CLASSES[: MATCH_CLASSES.index(request.min_class) + 1]
        found = {one: match for one, match in found.items() if match.match_class in allowed}

    def place(document: int) -> Place:
        return Place(found[document].score, index.popularity[document], index.ids[document])

    # Document numbers follow popularity, then id, so sorting them first gives the total order.
    ordered = sorted(sorted(found), key=lambda document: -found[document].score)
    # By value and not by position, so the page continues correctly after another snapshot went live.
    start = bisect_right(ordered, after.order, key=lambda document: place(document).order) if after else 0
    end = start + request.limit
    return SearchPage(
        [Hit(index.ids[document], *found[document]) for document in ordered[start:end]],
        cursors.encode(query, place(ordered[end - 1])) if len(ordered) > end else None,
    )


def _find_matches(index: SearchIndex, request: Request, until: float) -> dict[int, Match]:
    """Return all documents that fit."""
    query = read_query(request.artist, request.title)
    found = find_by_fields(index, query, until)
    # Nothing below is read for a query with a good answer, as most are.
    if _has_fair(found):
        return _rank_possible_last(found)
    decoded = request._replace(artist=decode_pasted(request.artist), title=decode_pasted(request.title))
    if decoded != request:
        request, query = decoded, read_query(decoded.artist, decoded.title)
        found = find_by_fields(index, query, until)
        if _has_fair(found):
            return _rank_possible_last(found)
    doubted = _doubt_common(index, request, found)
    found = {document: match for document, match in found.items() if document not in doubted}
    if request.min_class == POSSIBLE:
        _check_deadline(until)
        fits = find_in_line(index, request, query, found)
        scores = {document: score_possible(fit.evidence, index.popularity[document]) for document, fit in fits.items()}
        possible = {document: Match(score, POSSIBLE, fits[document].reasons) for document, score in scores.items()}
        for document, match in doubted.items():
            possible[document] = max(match, possible.get(document, match), key=lambda one: one.score)
        found = {document: match for document, match in possible.items() if match.score >= LEAST_SCORE} | found
    return _rank_possible_last(found)


def _has_fair(found: Mapping[int, Match]) -> bool:
    return max((match.score for match in found.values()), default=0.0) >= FAIR_SCORE


def _doubt_common(index: SearchIndex, request: Request, found: Mapping[int, Match]) -> dict[int, Match]:
    """Return the answers, all of low score, that frequent words made, as `possible` ones."""
    if not found:
        return {}
    chance = Chance(index, (extract_words(fold(request.artist)), extract_words(fold(request.title))))
    bits = {document: chance.measure_document(index, document) for document in found}
    return {
        document: match._replace(score=doubt(match.score, bits[document]), match_class=POSSIBLE)
        for document, match in found.items()
        if bits[document] > RARE
    }


def find_by_fields(index: SearchIndex, query: QueryNames, until: float) -> dict[int, Match]:
    """Return documents whose artist and title fit those of the query."""
    comparison = Comparison(index, query)
    lookup = find_by_words(index, query)
    found = _compare_candidates(comparison, lookup.documents, until)
    # Correcting words costs several lookups more, so it runs only when the words as typed found nothing good.
    if max((match.score for match in found.values()), default=0.0) < GOOD_SCORE:
        _check_deadline(until)
        found |= _compare_candidates(comparison, find_by_other_readings(index, query, lookup), until)
    return found


def _rank_possible_last(found: dict[int, Match]) -> dict[int, Match]:
    """Return `found` with each `possible` score below all others."""
    classes = {match.match_class for match in found.values()}
    if POSSIBLE not in classes or len(classes) == 1:
        return found
    limit = min(match.score for match in found.values() if match.match_class != POSSIBLE)
    return {
        document: match._replace(score=cut_possible(match.score, limit)) if match.match_class == POSSIBLE else match
        for document, match in found.items()
    }


def find_in_line(index: SearchIndex, request: Request, query: QueryNames, found: Mapping[int, Match]) -> dict[int, LineFit]:
    """Return documents that may be meant, besides those of `found`, by the wide reading of both fields."""
    line = read_line_query(request.artist, request.title, query)
    documents, by_sound = find_in_any_field(index, query, line)
    comparison = LineComparison(index, line, by_sound)
    fits = comparison.find_fits([one for one in documents if one not in found])
    if not found and max((fit.likeness for fit in fits.values()), default=0.0) < SURE_FIT:
        fits |= comparison.find_fits([one for one in find_by_whole_names(index, line) if one not in found and one not in fits])
    return fits


def _compare_candidates(comparison: Comparison, candidates: Sequence[int], until: float) -> dict[int, Match]:
    found = comparison.find_matches(candidates[:COMPARED_AT_ONCE])
    # Only when all of the best candidates fit may more of them fit too.
    if len(found) == COMPARED_AT_ONCE and len(candidates) > COMPARED_AT_ONCE:
        _check_deadline(until)
        found |= comparison.find_matches(candidates[COMPARED_AT_ONCE:])
    return found


def _check_deadline(until: float) -> None:
    if time.monotonic() > until:
        raise DeadlineExceededError("a search took longer than the catalog allows")
