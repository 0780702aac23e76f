"""Tracks by id and by ISRC (specification 4.2, 4.3)."""

from __future__ import annotations

from litestar import Response, get

from catalog_api.answers import documented, track_answer
from catalog_api.live_catalog import LiveCatalog
from catalog_api.parameters import Parameters
from catalog_api.problems import ApiError
from catalog_api.wire import Track


@get("/v1/tracks/{track_id:str}", tags=["Tracks"], summary="A track by id", responses=documented(Track, 400, 404), sync_to_thread=False)
def track_by_id(track_id: str, catalog: LiveCatalog) -> Response[bytes]:
    """The full track. An id that was merged answers with its survivor and Content-Location."""
    parameters = Parameters()
    number = parameters.track_id(track_id, place="path")
    parameters.check()
    return track_answer(catalog.get(), number)


@get("/v1/tracks/isrc/{isrc:str}", tags=["Tracks"], summary="A track by ISRC", responses=documented(Track, 400, 404), sync_to_thread=False)
def track_by_isrc(isrc: str, catalog: LiveCatalog) -> Response[bytes]:
    """The track that carries the code, whichever of its codes it is."""
    parameters = Parameters()
    code = parameters.isrc(isrc, place="path")
    parameters.check()
    live = catalog.get()
    found = live.id_for_isrc(code)
    if found is None:
        raise ApiError("not_found", f"No track carries the ISRC {code}.")
    return track_answer(live, found)
