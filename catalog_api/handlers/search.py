"""Fuzzy search by artist and title (specification 4.1)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, get
from litestar.params import Parameter

from catalog_api.answers import answer, documented
from catalog_api.live_catalog import LiveCatalog
from catalog_api.parameters import SEARCH_LIMIT, Parameters
from catalog_api.problems import ApiError
from catalog_api.wire import Match, SearchPage
from catalog_store.errors import InvalidCursorError

_LIMIT = f"{SEARCH_LIMIT[0]} to {SEARCH_LIMIT[1]}, default {SEARCH_LIMIT[2]}."


@get(
    "/v1/tracks/search", tags=["Tracks"], summary="Search by artist and title", responses=documented(SearchPage, 400), sync_to_thread=False
)
def search(
    catalog: LiveCatalog,
    artist: Annotated[str | None, Parameter(description="Required.")] = None,
    title: Annotated[str | None, Parameter(description="Required.")] = None,
    limit: Annotated[str | None, Parameter(description=_LIMIT)] = None,
    cursor: Annotated[str | None, Parameter(description="next_cursor of the answer before, with the same artist and title.")] = None,
) -> Response[bytes]:
    """Tracks that fit, best first; edit tags, credits, case, accents and small typing errors are absorbed."""
    parameters = Parameters()
    wanted_artist = parameters.text("artist", artist)
    wanted_title = parameters.text("title", title)
    page_size = parameters.limit(limit, SEARCH_LIMIT)
    parameters.check()
    live = catalog.get()
    try:
        page = live.search(artist=wanted_artist, title=wanted_title, limit=page_size, cursor=cursor)
    except InvalidCursorError as error:
        raise ApiError("invalid_cursor", str(error)) from error
    results = []
    for hit in page.hits:
        body = live.track_body(hit.id)
        if body is not None:
            match = msgspec.json.encode(Match(score=hit.score, match_class=hit.match_class, reasons=list(hit.reasons)))
            results.append(body[:-1] + b',"match":' + match + b"}")
    cursor_json = msgspec.json.encode(page.next_cursor)
    return answer(b'{"results":[' + b",".join(results) + b'],"next_cursor":' + cursor_json + b"}")
