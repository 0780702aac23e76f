"""Where a track is found on the platforms (specification 4.6)."""

from __future__ import annotations

from typing import Any

from catalog_api.answers import Answer, encoded
from catalog_api.handlers.found import body_of, ids_named, ids_of_external, moved, shown
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import OF_ID, OF_ISRC, OF_PLATFORM, OF_URL, Asked, Parameter
from catalog_api.platform_urls import read_url, written
from catalog_api.problems import ApiError
from catalog_api.routes import reads
from catalog_api.service import Service
from catalog_api.wire.links import TrackLinks
from catalog_store.reader import Catalog

_ONE_OF: tuple[Parameter[Any], ...] = (OF_ID, OF_ISRC, *OF_PLATFORM.values(), OF_URL)


@reads(
    "/v1/tracks/links",
    TrackLinks,
    tag="Tracks",
    summary="Links of a track",
    parameters=_ONE_OF,
    exactly_one=_ONE_OF,
    failures=("not_found",),
)
def links(asked: Asked) -> Question:
    """All links of the track that exactly one parameter names, in a fixed order of platforms.

    An id that stands on several tracks (a release of catalog_a) answers the most popular; `alternatives` names the others. `url` takes the
    address of a track on a platform.
    """
    by = asked.the_one(_ONE_OF)

    def work(catalog: Catalog, service: Service) -> Answer:
        if by is OF_URL:
            named = read_url(asked[OF_URL], service.settings.url_templates)
            if named is None:
                raise ApiError("not_found", "The address names no track of a platform that the catalog links to.")
            candidates = ids_of_external(catalog, named)
        else:
            candidates = ids_named(catalog, asked, by)
        track_id, body = body_of(catalog, candidates[0])
        track = shown(body)
        found = written(catalog.links(track_id), service.settings.url_templates)
        answer = encoded(TrackLinks(track_id, track.title, track.isrc, found, candidates[1:]))
        answer.headers |= moved("/v1/tracks/links?id=", candidates[0], track_id)
        return answer

    return Lookup(work)
