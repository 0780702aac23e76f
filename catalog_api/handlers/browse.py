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
from catalog_api.problems import ParameterProblem
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.tracks import TrackPage
from catalog_store.errors import UnknownGenreError
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


@reads(
    "/v1/tracks/browse",
    TrackPage,
    tag="Discovery",
    summary="Browse tracks",
    parameters=(*_FILTERS.values(), RANDOMIZE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
    feature="browse",
)
def browse(asked: Asked) -> Question:
    """Tracks that pass all filters, newest first by earliest release, undated last. A genre that nothing calls so is a 400."""
    filters = BrowseFilters(**{name: asked[parameter] for name, parameter in _FILTERS.items()})

    def work(catalog: Catalog, service: Service) -> Answer:
        meant = None if filters.genre is None or filters.genre_id is not None else service.genre_names.node_id(filters.genre)
        wanted = filters if meant is None else msgspec.structs.replace(filters, genre_id=meant)
        try:
            found = catalog.browse(wanted, limit=asked[LIMIT], cursor=asked[CURSOR], randomize=asked[RANDOMIZE])
        except UnknownGenreError as error:
            name = GENRE.name if filters.genre_id is None else GENRE_ID.name
            check([ParameterProblem("query", name, str(error))])
            raise
        return page(found.bodies, found.next_cursor)

    return Lookup(work, Pace.IN_TURN)
