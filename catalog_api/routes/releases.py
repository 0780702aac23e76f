"""New releases, and a release with its tracks (specification 4.11, 4.12, contract F4, F5)."""

from __future__ import annotations

from datetime import UTC, datetime

from catalog_api.answers import Answer, build_location_header, build_page
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import BARCODE, CURSOR, LIMIT, RELEASE_ID, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Release, ReleasePage
from catalog_store.reader import Catalog


@get_route(
    "/v1/releases/new",
    ReleasePage,
    tag="Discovery",
    summary="New releases",
    parameters=(LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
    feature="new_releases",
)
def new_releases(values: ParameterValues) -> Question:
    """Return the releases dated today (UTC) or before, newest first, then by popularity of the artist, then by id."""

    def work(catalog: Catalog, _service: Service) -> Answer:
        # The day of the request: a release appears on its date without a new snapshot.
        found = catalog.list_new_releases(today=datetime.now(UTC).date(), limit=values[LIMIT], cursor=values[CURSOR])
        return build_page(found.bodies, found.next_cursor)

    return Lookup(work)


@get_route(
    "/v1/releases",
    ReleasePage,
    tag="Releases",
    summary="Releases by barcode",
    parameters=(BARCODE, LIMIT, CURSOR),
    failures=("invalid_cursor", "too_slow"),
)
def releases(values: ParameterValues) -> Question:
    """Return the releases with that barcode: most tracks first, then the earliest. A barcode that no release has gives an empty page."""

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.list_releases_by_barcode(values[BARCODE], limit=values[LIMIT], cursor=values[CURSOR])
        return build_page(found.bodies, found.next_cursor)

    return Lookup(work)


@get_route("/v1/releases/{id:str}", Release, tag="Releases", summary="A release by id", parameters=(RELEASE_ID,), failures=("not_found",))
def release(values: ParameterValues) -> Question:
    """Return a release with its tracks. A merged id answers with its survivor, which Content-Location names."""
    release_id = values[RELEASE_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_release(release_id)
        if found is None:
            raise ApiError("not_found", f"There is no release {release_id}.")
        return Answer(found.body, build_location_header("/v1/releases/", release_id, found.id))

    return Lookup(work)
