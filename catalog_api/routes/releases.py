"""Releases: new ones, one with its tracks, those of an artist and of a label (specification 4.11, 4.12, contract F4, F5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from catalog_api.answers import Answer, build_page, encode_answer
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import ARTIST_ID, CURSOR, LABEL_ID, LIMIT, RELEASE_ID, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Artist, Label, Release, ReleasePage
from catalog_store.queries.pages import BodyPage
from catalog_store.reader import Catalog

_UNKNOWN = ("not_found",)
_PAGED = (*_UNKNOWN, "invalid_cursor", "too_slow")


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


@get_route("/v1/releases/{id:str}", Release, tag="Releases", summary="A release by id", parameters=(RELEASE_ID,), failures=_UNKNOWN)
def release(values: ParameterValues) -> Question:
    """Return a release with its tracks. A merged id answers with its survivor, which Content-Location names."""
    release_id = values[RELEASE_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_release(release_id)
        if found is None:
            raise _build_unknown_error("release", release_id)
        return _add_location(Answer(found.body), "releases", release_id, found.id)

    return Lookup(work)


@get_route("/v1/artists/{id:str}", Artist, tag="Artists", summary="An artist by id", parameters=(ARTIST_ID,), failures=_UNKNOWN)
def artist(values: ParameterValues) -> Question:
    """Return an artist. A merged id answers with its survivor, which Content-Location names."""
    artist_id = values[ARTIST_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_artist(artist_id)
        if found is None:
            raise _build_unknown_error("artist", artist_id)
        return _add_location(encode_answer(Artist(found.id, found.name, found.release_count)), "artists", artist_id, found.id)

    return Lookup(work)


@get_route("/v1/labels/{id:str}", Label, tag="Labels", summary="A label by id", parameters=(LABEL_ID,), failures=_UNKNOWN)
def label(values: ParameterValues) -> Question:
    """Return a label. A merged id answers with its survivor, which Content-Location names."""
    label_id = values[LABEL_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_label(label_id)
        if found is None:
            raise _build_unknown_error("label", label_id)
        return _add_location(encode_answer(Label(found.id, found.name, found.release_count)), "labels", label_id, found.id)

    return Lookup(work)


@get_route(
    "/v1/artists/{id:str}/releases",
    ReleasePage,
    tag="Artists",
    summary="Releases of an artist",
    parameters=(ARTIST_ID, LIMIT, CURSOR),
    failures=_PAGED,
)
def artist_releases(values: ParameterValues) -> Question:
    """Return the releases of the artist, newest first, undated last."""
    return _list_releases(values, "artist", values[ARTIST_ID], lambda catalog: catalog.list_artist_releases)


@get_route(
    "/v1/labels/{id:str}/releases",
    ReleasePage,
    tag="Labels",
    summary="Releases of a label",
    parameters=(LABEL_ID, LIMIT, CURSOR),
    failures=_PAGED,
)
def label_releases(values: ParameterValues) -> Question:
    """Return the releases of the label, newest first, undated last."""
    return _list_releases(values, "label", values[LABEL_ID], lambda catalog: catalog.list_label_releases)


def _list_releases(
    values: ParameterValues, what: str, owner_id: int, lists: Callable[[Catalog], Callable[..., BodyPage | None]]
) -> Question:
    def work(catalog: Catalog, _service: Service) -> Answer:
        # The snapshot is held only while this runs, so its method is taken here.
        found = lists(catalog)(owner_id, limit=values[LIMIT], cursor=values[CURSOR])
        if found is None:
            raise _build_unknown_error(what, owner_id)
        return build_page(found.bodies, found.next_cursor)

    return Lookup(work)


def _add_location(answer: Answer, collection: str, asked_id: int, found_id: int) -> Answer:
    if found_id != asked_id:
        answer.headers["content-location"] = f"/v1/{collection}/{found_id}"
    return answer


def _build_unknown_error(what: str, number: int) -> ApiError:
    return ApiError("not_found", f"There is no {what} {number}.")
