"""Where a track is found on platforms."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id, Isrc
from catalog_store.platforms import LINK_SOURCES


class PlatformLink(msgspec.Struct):
    """A track on a platform."""

    source: Annotated[str, Meta(extra_json_schema={"enum": list(LINK_SOURCES)})]
    external_id: str
    url: Annotated[str, Meta(extra_json_schema={"format": "uri"})]


class TrackLinks(msgspec.Struct, omit_defaults=True):
    """The links of a track; `alternatives` are the other tracks that the id asked for stands on, most popular first."""

    track_id: Id
    title: str
    isrc: Isrc | None
    links: list[PlatformLink]
    alternatives: list[Id] = msgspec.field(default_factory=list)
