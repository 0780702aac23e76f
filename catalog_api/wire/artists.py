"""Artists as `/v1` tells them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id


class ArtistRef(msgspec.Struct):
    """An artist by id and name."""

    id: Id
    name: str


class TrackArtist(msgspec.Struct):
    """An artist of a track."""

    id: Id
    name: str
    is_primary: bool
    is_remixer: bool


class Artist(msgspec.Struct):
    """An artist; `release_count` counts the releases whose artist it is."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]
