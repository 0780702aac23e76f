"""Tracks: the full payload, how it matched a search, pages of it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.artists import TrackArtist
from catalog_api.wire.links import PlatformLink
from catalog_api.wire.provenance import Provenance
from catalog_api.wire.releases import ReleaseSummary
from catalog_api.wire.values import Id, Isrc


class Match(msgspec.Struct):
    """How well a search result fits the query: 1 is exact."""

    score: Annotated[float, Meta(ge=0, le=1)]
    match_class: str = msgspec.field(name="class")
    reasons: list[str]


class Track(msgspec.Struct, omit_defaults=True):
    """The full track payload.

    `match` only inside search results, `matched_isrc` only in an answer by ISRC; `isrcs`, `links`, `provenance` only when included.
    """

    id: Id
    title: str
    releases: list[ReleaseSummary]
    artists: list[TrackArtist]
    isrc: Isrc | None
    duration: Annotated[int, Meta(ge=1)] | None
    genre: list[str]
    subgenre: list[str]
    match: Match | msgspec.UnsetType = msgspec.UNSET
    matched_isrc: Isrc | msgspec.UnsetType = msgspec.UNSET
    isrcs: list[Isrc] | msgspec.UnsetType = msgspec.UNSET
    links: list[PlatformLink] | msgspec.UnsetType = msgspec.UNSET
    provenance: Provenance | msgspec.UnsetType = msgspec.UNSET


class TrackPage(msgspec.Struct):
    """A page of tracks; `next_cursor` is null exactly at the end."""

    results: list[Track]
    next_cursor: str | None
