"""Artists and labels: by id, by name, and their releases (specification 4.11, contract F5)."""

from __future__ import annotations

from collections.abc import Callable

from catalog_api.answers import Answer, build_location_header, build_page, encode_answer
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import ARTIST_ID, CURSOR, LABEL_ID, LIMIT, NAME, ParameterValues
from catalog_api.problems import ApiError
from catalog_api.route_declaration import get_route
from catalog_api.service import Service
from catalog_api.wire.catalog_types import Artist, ArtistPage, Label, LabelPage, ReleasePage
from catalog_store.queries.pages import BodyPage
from catalog_store.reader import Catalog

_UNKNOWN = ("not_found",)
_NAMED = ("invalid_cursor", "too_slow")
_PAGED = (*_UNKNOWN, *_NAMED)


@get_route("/v1/artists", ArtistPage, tag="Artists", summary="Artists by name", parameters=(NAME, LIMIT, CURSOR), failures=_NAMED)
def artists(values: ParameterValues) -> Question:
    """Return the artists of that name, most tracks first. Case, accents, punctuation and usual romanisations do not matter.

    An artist is found by its own name and by every name under which a track or release credits it. A name that only a platform lists, as an
    alias, finds the artist if nobody with tracks or releases has that name otherwise. A name that nobody has gives an empty page.
    """

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.list_artists(values[NAME], limit=values[LIMIT], cursor=values[CURSOR])
        return encode_answer(ArtistPage([Artist(one.id, one.name, one.releases) for one in found.entities], found.next_cursor))

    return Lookup(work)


@get_route("/v1/labels", LabelPage, tag="Labels", summary="Labels by name", parameters=(NAME, LIMIT, CURSOR), failures=_NAMED)
def labels(values: ParameterValues) -> Question:
    """Return the labels of that name, most tracks first, as for artists."""

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.list_labels(values[NAME], limit=values[LIMIT], cursor=values[CURSOR])
        return encode_answer(LabelPage([Label(one.id, one.name, one.releases) for one in found.entities], found.next_cursor))

    return Lookup(work)


@get_route("/v1/artists/{id:str}", Artist, tag="Artists", summary="An artist by id", parameters=(ARTIST_ID,), failures=_UNKNOWN)
def artist(values: ParameterValues) -> Question:
    """Return an artist. A merged id answers with its survivor, which Content-Location names."""
    artist_id = values[ARTIST_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_artist(artist_id)
        if found is None:
            raise ApiError("not_found", f"There is no artist {artist_id}.")
        answer = encode_answer(Artist(found.id, found.name, found.release_count))
        answer.headers |= build_location_header("/v1/artists/", artist_id, found.id)
        return answer

    return Lookup(work)


@get_route("/v1/labels/{id:str}", Label, tag="Labels", summary="A label by id", parameters=(LABEL_ID,), failures=_UNKNOWN)
def label(values: ParameterValues) -> Question:
    """Return a label. A merged id answers with its survivor, which Content-Location names."""
    label_id = values[LABEL_ID]

    def work(catalog: Catalog, _service: Service) -> Answer:
        found = catalog.find_label(label_id)
        if found is None:
            raise ApiError("not_found", f"There is no label {label_id}.")
        answer = encode_answer(Label(found.id, found.name, found.release_count))
        answer.headers |= build_location_header("/v1/labels/", label_id, found.id)
        return answer

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
            raise ApiError("not_found", f"There is no {what} {owner_id}.")
        return build_page(found.bodies, found.next_cursor)

    return Lookup(work)
