"""Search, browsing, and the genre tree (specification 4.1, 4.9, 4.10, contract F2, F3)."""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.answers import ONE_DAY, Answer, encoded, page
from catalog_api.metering import Lookup, Pace, Question
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
    RANDOMIZE,
    TITLE,
    YEAR,
    Parameter,
    ParameterValues,
    check,
)
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.route_declaration import reads
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Genre, GenreTree, Match, TrackPage
from catalog_store.errors import CatalogError, UnknownGenreError
from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import Catalog


@reads(
    "/v1/tracks/search",
    TrackPage,
    tag="Tracks",
    summary="Search by artist and title",
    parameters=(ARTIST, TITLE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
)
def search(asked: ParameterValues) -> Question:
    """Tracks that fit, best first; edit tags, credits, case, accents and small typing errors are absorbed."""

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.search(artist=asked[ARTIST], title=asked[TITLE], limit=asked[LIMIT], cursor=asked[CURSOR])
        bodies = catalog.track_bodies([hit.id for hit in found.hits])
        results = []
        for hit in found.hits:
            match = msgspec.json.encode(Match(score=hit.score, match_class=hit.match_class, reasons=list(hit.reasons)))
            results.append(b'%b,"match":%b}' % (bodies[hit.id][:-1], match))
        return page(results, found.next_cursor)

    return Lookup(work, Pace.IN_TURN)


_FILTERS: dict[str, Parameter[Any]] = {
    "genre_id": GENRE_ID,
    "genre": GENRE,
    "year": YEAR,
    "label_id": BROWSE_LABEL_ID,
    "label": BROWSE_LABEL,
    "artist_id": BROWSE_ARTIST_ID,
    "artist": BROWSE_ARTIST,
}


def _genre_problem(asked: ParameterValues, service: Service) -> list[ParameterProblem]:
    """Return the problem that browsing by the genre alone would have."""
    genre = BrowseFilters(genre_id=asked[GENRE_ID], genre=asked[GENRE])
    if genre.genre_id is None and genre.genre is None:
        return []
    try:
        with service.live.hold() as catalog:
            catalog.browse(_meant(genre, service), limit=1)
    except UnknownGenreError as error:
        return [ParameterProblem("query", GENRE.name if genre.genre_id is None else GENRE_ID.name, str(error))]
    except (ApiError, CatalogError):
        return []
    return []


def _meant(filters: BrowseFilters, service: Service) -> BrowseFilters:
    """With the node that the genre's name means to the genre rules, if it means one."""
    meant = None if filters.genre is None or filters.genre_id is not None else service.genre_names.node_id(filters.genre)
    return filters if meant is None else msgspec.structs.replace(filters, genre_id=meant)


@reads(
    "/v1/tracks/browse",
    TrackPage,
    tag="Discovery",
    summary="Browse tracks",
    parameters=(*_FILTERS.values(), RANDOMIZE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
    feature="browse",
    late_checks=(_genre_problem,),
)
def browse(asked: ParameterValues) -> Question:
    """Tracks that pass all filters, newest first by earliest release, undated last. A genre that nothing calls so is a 400."""
    filters = BrowseFilters(**{name: asked[parameter] for name, parameter in _FILTERS.items()})

    def work(catalog: Catalog, service: Service) -> Answer:
        try:
            found = catalog.browse(_meant(filters, service), limit=asked[LIMIT], cursor=asked[CURSOR], randomize=asked[RANDOMIZE])
        except UnknownGenreError as error:
            name = GENRE.name if filters.genre_id is None else GENRE_ID.name
            check([ParameterProblem("query", name, str(error))])
            raise
        return page(found.bodies, found.next_cursor)

    return Lookup(work, Pace.IN_TURN)


@reads("/v1/genres", GenreTree, tag="Genres", summary="The canonical genre tree")
def genres(_asked: ParameterValues) -> Question:
    """The full tree as a flat list: mains first, each subgenre with the name of its main. Stable for weeks: keep it for a day."""
    return Lookup(_tree)


def _tree(catalog: Catalog, _service: Service) -> Answer:
    answer = encoded(GenreTree([Genre(*node) for node in catalog.genres()]))
    answer.headers["cache-control"] = ONE_DAY
    return answer
