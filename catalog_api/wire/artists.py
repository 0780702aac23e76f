"""Artists as `/v1` tells them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id


class ArtistRef(msgspec.Struct, omit_defaults=True):
    """An artist by id and name; `credited_as` only where the release credits it by another name."""

    id: Id
    name: str
    credited_as: str | msgspec.UnsetType = msgspec.UNSET


class TrackArtist(msgspec.Struct, omit_defaults=True):
    """An artist of a track; `credited_as` only where the track credits it by another name."""

    id: Id
    name: str
    is_primary: bool
    is_remixer: bool
    credited_as: str | msgspec.UnsetType = msgspec.UNSET


class Artist(msgspec.Struct):
    """An artist; `release_count` counts the releases whose artist it is."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]
