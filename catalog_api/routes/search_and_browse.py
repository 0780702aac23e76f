"""Search, browsing, and the genre tree (specification 4.1, 4.9, 4.10, contract F2, F3)."""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.answers import KEEP_ONE_DAY, Answer, build_page, encode_answer
from catalog_api.metering import Execution, Lookup, Question
from catalog_api.parameters import (
    ARTIST,
    BROWSE_ARTIST,
    BROWSE_ARTIST_ID,
    BROWSE_LABEL,
    BROWSE_LABEL_ID,
    CURSOR,
    GENRE,
    GENRE_ID,
    LIMIT,
    MIN_CLASS,
    RANDOMIZE,
    TITLE,
    YEAR,
    Parameter,
    ParameterValues,
    raise_problems,
)
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Genre, GenreTree, Match, TrackPage
from catalog_store.errors import CatalogError, UnknownGenreError
from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import Catalog


@get_route(
    "/v1/tracks/search",
    TrackPage,
    tag="Tracks",
    summary="Search by artist and title",
    parameters=(ARTIST, TITLE, MIN_CLASS, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
)
def search(values: ParameterValues) -> Question:
    """Return the tracks that match, best first. Edit tags, credits, case, accents and small typing errors are tolerated.

    When no names fit well, both fields are read freely: half a name, swapped fields, a whole line such as a video title. Such answers have
    the class `possible`, and stand behind all others; `min_class` leaves them out.
    """

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.search(
            artist=values[ARTIST], title=values[TITLE], limit=values[LIMIT], cursor=values[CURSOR], min_class=values[MIN_CLASS]
        )
        bodies = catalog.read_track_bodies([hit.id for hit in found.hits])
        results = []
        for hit in found.hits:
            match = msgspec.json.encode(Match(score=hit.score, match_class=hit.match_class, reasons=list(hit.reasons)))
            # Bytes are spliced before the closing brace: the stored body is never decoded.
            results.append(b'%b,"match":%b}' % (bodies[hit.id][:-1], match))
        return build_page(results, found.next_cursor)

    # A search takes some .2 ms of the event loop, an absent one more: many that arrive together must take turns.
    return Lookup(work, Execution.TIME_SLICED)


_FILTERS: dict[str, Parameter[Any]] = {
    "genre_id": GENRE_ID,
    "genre": GENRE,
    "year": YEAR,
    "label_id": BROWSE_LABEL_ID,
    "label": BROWSE_LABEL,
    "artist_id": BROWSE_ARTIST_ID,
    "artist": BROWSE_ARTIST,
}


def _find_genre_problems(values: ParameterValues, service: Service) -> list[ParameterProblem]:
    """Return the problem that browsing by the genre alone would have."""
    genre = BrowseFilters(genre_id=values[GENRE_ID], genre=values[GENRE])
    if genre.genre_id is None and genre.genre is None:
        return []
    try:
        with service.live.hold() as catalog:
            catalog.browse(_resolve_genre_name(genre, service), limit=1)
    except UnknownGenreError as error:
        return [ParameterProblem("query", GENRE.name if genre.genre_id is None else GENRE_ID.name, str(error))]
    # Other failures of this trial are not the caller's: the request is refused for its own problems.
    except (ApiError, CatalogError):
        return []
    return []


def _resolve_genre_name(filters: BrowseFilters, service: Service) -> BrowseFilters:
    """Replace the genre's name by the node that the genre rules find for it, if they find one."""
    meant = None if filters.genre is None or filters.genre_id is not None else service.genre_names.find_node_id(filters.genre)
    return filters if meant is None else msgspec.structs.replace(filters, genre_id=meant)


@get_route(
    "/v1/tracks/browse",
    TrackPage,
    tag="Discovery",
    summary="Browse tracks",
    parameters=(*_FILTERS.values(), RANDOMIZE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
    feature="browse",
    late_checks=(_find_genre_problems,),
)
def browse(values: ParameterValues) -> Question:
    """Return the tracks that pass all filters, newest first by earliest release, undated last. An unknown genre is a 400."""
    filters = BrowseFilters(**{name: values[parameter] for name, parameter in _FILTERS.items()})

    def work(catalog: Catalog, service: Service) -> Answer:
        try:
            found = catalog.browse(
                _resolve_genre_name(filters, service), limit=values[LIMIT], cursor=values[CURSOR], randomize=values[RANDOMIZE]
            )
        except UnknownGenreError as error:
            name = GENRE.name if filters.genre_id is None else GENRE_ID.name
            raise_problems([ParameterProblem("query", name, str(error))])
            raise
        return build_page(found.bodies, found.next_cursor)

    return Lookup(work, Execution.TIME_SLICED)


@get_route("/v1/genres", GenreTree, tag="Genres", summary="The canonical genre tree")
def genres(_values: ParameterValues) -> Question:
    """Return the full tree as a flat list: main genres first, each subgenre with the name of its main. Keep it for a day."""
    return Lookup(_read_tree)


def _read_tree(catalog: Catalog, _service: Service) -> Answer:
    answer = encode_answer(GenreTree([Genre(*node) for node in catalog.read_genres()]))
    answer.headers["cache-control"] = KEEP_ONE_DAY
    return answer
