"""Fuzzy search by artist and title (specification 4.1)."""

from __future__ import annotations

import msgspec

from catalog_api.answers import Answer
from catalog_api.handlers.pages import page
from catalog_api.metering import Lookup, Pace, Question
from catalog_api.parameters import ARTIST, CURSOR, LIMIT, TITLE, Asked
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.tracks import Match, TrackPage
from catalog_store.reader import Catalog


@reads(
    "/v1/tracks/search",
    TrackPage,
    tag="Tracks",
    summary="Search by artist and title",
    parameters=(ARTIST, TITLE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
)
def search(asked: Asked) -> Question:
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
