"""Tracks by id and by ISRC (specification 4.2, 4.3)."""

from __future__ import annotations

from catalog_api.answers import Answer
from catalog_api.handlers.found import body_of, moved, unknown_isrc
from catalog_api.handlers.included import PROVENANCE, included
from catalog_api.metering import Lookup, Pace, Question
from catalog_api.parameters import INCLUDE, ISRC, TRACK_ID, Asked
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.tracks import Track
from catalog_store.reader import Catalog


@reads("/v1/tracks/{id:str}", Track, tag="Tracks", summary="A track by id", parameters=(TRACK_ID, INCLUDE), failures=("not_found",))
def track_by_id(asked: Asked) -> Question:
    """The full track. An id that was merged answers with its survivor, which Content-Location names."""
    track_id, wanted = asked[TRACK_ID], asked[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        survivor, body = body_of(catalog, track_id)
        if wanted:
            body = included(service, catalog, survivor, body, wanted)
        return Answer(body, moved("/v1/tracks/", track_id, survivor))

    return Lookup(work, Pace.ASIDE if PROVENANCE in wanted else Pace.AT_ONCE)


@reads("/v1/tracks/isrc/{isrc:str}", Track, tag="Tracks", summary="A track by ISRC", parameters=(ISRC, INCLUDE), failures=("not_found",))
def track_by_isrc(asked: Asked) -> Question:
    """The track that carries the code, whichever of its codes it is; `matched_isrc` is the code that was asked for."""
    code, wanted = asked[ISRC], asked[INCLUDE]

    def work(catalog: Catalog, service: Service) -> Answer:
        found = catalog.track_by_isrc(code)
        if found is None:
            raise unknown_isrc(code)
        track_id, body = found
        if wanted:
            body = included(service, catalog, track_id, body, wanted)
        return Answer(b'%s,"matched_isrc":"%s"}' % (body[:-1], code.encode()))

    return Lookup(work, Pace.ASIDE if PROVENANCE in wanted else Pace.AT_ONCE)
