"""The track behind what a caller sent, or 404: shared by the routes that begin with one track."""

from __future__ import annotations

from typing import Any

import msgspec

from catalog_api.parameters import OF_ID, OF_ISRC, OF_PLATFORM, Asked, Parameter
from catalog_api.platform_urls import Named
from catalog_api.problems import ApiError
from catalog_store.reader import Catalog


class Shown(msgspec.Struct):
    """What other answers repeat of a track."""

    title: str
    isrc: str | None


_SHOWN = msgspec.json.Decoder(Shown)


def body_of(catalog: Catalog, track_id: int) -> tuple[int, bytes]:
    """The id that a track has now, merges followed, and its stored JSON; ApiError `not_found`."""
    body = catalog.track_body(track_id)
    if body is not None:
        return track_id, body
    survivor = catalog.resolve_id(track_id)
    body = None if survivor is None else catalog.track_body(survivor)
    if survivor is None or body is None:
        raise ApiError("not_found", f"There is no track {track_id}.")
    return survivor, body


def moved(path: str, asked_id: int, track_id: int) -> dict[str, str]:
    """Headers of an answer about `track_id` that was asked for as `asked_id`: where it stands, if the id was merged (contract B16)."""
    return {} if asked_id == track_id else {"content-location": f"{path}{track_id}"}


def unknown_isrc(isrc: str) -> ApiError:
    """What to raise when no track carries the code."""
    return ApiError("not_found", f"No track carries the ISRC {isrc}.")


def ids_of_external(catalog: Catalog, named: Named) -> list[int]:
    """The tracks that a platform's id stands on, most popular first; ApiError `not_found`."""
    found = catalog.ids_for_external(named.platform, named.external_id)
    if not found:
        raise ApiError("not_found", f"No track is known as {named.external_id} on {named.platform}.")
    return found


def ids_named(catalog: Catalog, asked: Asked, by: Parameter[Any]) -> list[int]:
    """The tracks that the lookup parameter names, most popular first; ApiError `not_found`."""
    if by is OF_ID:
        return [asked[OF_ID]]
    if by is OF_ISRC:
        found = catalog.id_for_isrc(asked[OF_ISRC])
        if found is None:
            raise unknown_isrc(asked[OF_ISRC])
        return [found]
    platform = next(name for name, parameter in OF_PLATFORM.items() if parameter is by)
    return ids_of_external(catalog, Named(platform, asked[OF_PLATFORM[platform]]))


def shown(body: bytes) -> Shown:
    """Title and ISRC of a stored track."""
    return _SHOWN.decode(body)
