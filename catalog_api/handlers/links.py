"""Where a track is found on the platforms (specification 4.6)."""

from __future__ import annotations

from typing import Annotated

from litestar import Response, get
from litestar.params import Parameter

from catalog_api.answers import answer, documented, find_track, stored_track
from catalog_api.live_catalog import LiveCatalog
from catalog_api.parameters import Parameters
from catalog_api.problems import ApiError
from catalog_api.settings import ApiSettings
from catalog_api.wire import PlatformLink, TrackLinks
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.reader import Catalog

_PLATFORM_PARAMETERS = {f"{platform}_id": platform for platform in CATALOG_PLATFORMS}


@get("/v1/tracks/links", tags=["Tracks"], summary="Links of a track", responses=documented(TrackLinks, 400, 404), sync_to_thread=False)
def links(  # noqa: PLR0917 - the contract has eight lookup parameters
    catalog: LiveCatalog,
    settings: ApiSettings,
    id: Annotated[str | None, Parameter(description="Track id.")] = None,  # noqa: A002 - the contract's name
    isrc: Annotated[str | None, Parameter(description="Any ISRC of the track.")] = None,
    streamsvc_a_id: Annotated[str | None, Parameter(description="Track id on streamsvc_a; case counts.")] = None,
    streamsvc_b_id: Annotated[str | None, Parameter(description="Track id on streamsvc_b.")] = None,
    streamsvc_c_id: Annotated[str | None, Parameter(description="Track id on streamsvc_c.")] = None,
    store_a_id: Annotated[str | None, Parameter(description="Track id on store_a.")] = None,
    catalog_a_id: Annotated[str | None, Parameter(description="Release id on catalog_a.")] = None,
    catalog_b_id: Annotated[str | None, Parameter(description="Recording id (UUID) on catalog_b.")] = None,
) -> Response[bytes]:
    """All links of the track that exactly one lookup parameter names."""
    given = {
        "id": id,
        "isrc": isrc,
        "streamsvc_a_id": streamsvc_a_id,
        "streamsvc_b_id": streamsvc_b_id,
        "streamsvc_c_id": streamsvc_c_id,
        "store_a_id": store_a_id,
        "catalog_a_id": catalog_a_id,
        "catalog_b_id": catalog_b_id,
    }
    parameters = Parameters()
    sent = parameters.exactly_one(given)
    candidates = _candidates(catalog, parameters, *sent) if sent else []
    parameters.check()
    if not candidates:
        raise ApiError("not_found", "No track is known under this id.")
    live = catalog.get()
    track_id, body = find_track(live, candidates[0])
    track = stored_track(body)
    return answer(TrackLinks(track_id, track["title"], track["isrc"], platform_links(live, track_id, settings), candidates[1:]))


def _candidates(catalog: LiveCatalog, parameters: Parameters, name: str, value: str) -> list[int]:
    """Track ids under which the lookup parameter is known, most popular first; its problem is noted when it is malformed."""
    if name == "id":
        number = parameters.track_id(value)
        return [number] if number else []
    if name == "isrc":
        code = parameters.isrc(value)
        found = catalog.get().id_for_isrc(code) if code else None
        return [] if found is None else [found]
    platform = _PLATFORM_PARAMETERS[name]
    external_id = parameters.external_id(platform, value)
    return catalog.get().ids_for_external(platform, external_id)


def platform_links(catalog: Catalog, track_id: int, settings: ApiSettings) -> list[PlatformLink]:
    """The links of a track in the fixed platform order, with URLs after the operator's templates."""
    return [
        PlatformLink(link.source, link.external_id, settings.url_templates[link.source].format(id=link.external_id, slug=link.slug or "-"))
        for link in catalog.links(track_id)
    ]
