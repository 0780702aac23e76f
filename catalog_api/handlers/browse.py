"""Browsing tracks (specification 4.10, contract F2, F3)."""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.answers import Answer
from catalog_api.handlers.pages import page
from catalog_api.metering import Lookup, Pace, Question
from catalog_api.parameters import (
    BROWSE_ARTIST,
    BROWSE_ARTIST_ID,
    BROWSE_LABEL,
    BROWSE_LABEL_ID,
    CURSOR,
    GENRE,
    GENRE_ID,
    LIMIT,
    RANDOMIZE,
    YEAR,
    Asked,
    Parameter,
    check,
)
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.tracks import TrackPage
from catalog_store.errors import CatalogError, UnknownGenreError
from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import Catalog

_FILTERS: dict[str, Parameter[Any]] = {
    "genre_id": GENRE_ID,
    "genre": GENRE,
    "year": YEAR,
    "label_id": BROWSE_LABEL_ID,
    "label": BROWSE_LABEL,
    "artist_id": BROWSE_ARTIST_ID,
    "artist": BROWSE_ARTIST,
}


def _genre_problem(asked: Asked, service: Service) -> list[ParameterProblem]:
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
def browse(asked: Asked) -> Question:
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
