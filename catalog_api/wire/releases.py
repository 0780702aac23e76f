"""Releases: inside a track, in lists, and whole."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.artists import ArtistRef, TrackArtist
from catalog_api.wire.labels import LabelRef
from catalog_api.wire.values import Date, Id, Isrc, Precision


class ReleaseSummary(msgspec.Struct):
    """A release inside a track. `release_date` is padded to a full date; `release_date_precision` says how much of it is known."""

    id: Id
    title: str
    artist: ArtistRef
    label: LabelRef | None
    release_date: Date | None
    release_date_precision: Precision | None


class ReleaseEntry(ReleaseSummary):
    """A release in a list."""

    track_count: Annotated[int, Meta(ge=1)]


class ReleasePage(msgspec.Struct):
    """A page of releases; `next_cursor` is null exactly at the end."""

    results: list[ReleaseEntry]
    next_cursor: str | None


class ReleaseTrack(msgspec.Struct):
    """A track on a release, without the releases it is on."""

    id: Id
    title: str
    artists: list[TrackArtist]
    isrc: Isrc | None
    duration: Annotated[int, Meta(ge=1)] | None
    genre: list[str]
    subgenre: list[str]
    disc_number: int | None
    track_number: int | None


class Release(ReleaseSummary):
    """A release with its tracks, in their order."""

    release_type: str | None
    catalog_number: str | None
    gtin: str | None
    track_count: Annotated[int, Meta(ge=1)]
    tracks: list[ReleaseTrack]
