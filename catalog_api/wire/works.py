"""Works and the recordings of them, both ways."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Id, Isrc, Iswc


class IswcEntry(msgspec.Struct):
    """A work by its code."""

    iswc: Iswc
    title: str


class TrackIswcs(msgspec.Struct):
    """The works that a track performs. `sonovault_id` is the track id; the name is part of the contract."""

    sonovault_id: Id
    isrc: Isrc | None
    iswcs: list[IswcEntry]


class RecordingEntry(msgspec.Struct):
    """A recording of a work."""

    sonovault_id: Id
    isrc: Isrc | None
    title: str
    artist: str


class WorkRecordings(msgspec.Struct):
    """The recordings of a work, most popular first; `total` counts all, whatever the page."""

    iswc: Iswc
    title: str
    total: Annotated[int, Meta(ge=0)]
    recordings: list[RecordingEntry]
    next_cursor: str | None
