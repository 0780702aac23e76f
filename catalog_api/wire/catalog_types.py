"""Tracks, artists, labels, releases, works, genres and changes of ids, as `/v1` answers them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from catalog_api.wire.values import Date, Id, Isrc, Iswc, Precision
from catalog_store.platforms import LINK_SOURCES


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


class ArtistPage(msgspec.Struct):
    """A page of artists; `next_cursor` is null exactly at the end."""

    results: list[Artist]
    next_cursor: str | None


class LabelRef(msgspec.Struct):
    """A label by id and name."""

    id: Id
    name: str


class Label(msgspec.Struct):
    """A label."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]


class LabelPage(msgspec.Struct):
    """A page of labels; `next_cursor` is null exactly at the end."""

    results: list[Label]
    next_cursor: str | None


class PlatformLink(msgspec.Struct):
    """The link of a track on a platform."""

    source: Annotated[str, Meta(extra_json_schema={"enum": list(LINK_SOURCES)})]
    external_id: str
    url: Annotated[str, Meta(extra_json_schema={"format": "uri"})]


class TrackLinks(msgspec.Struct, omit_defaults=True):
    """The links of a track. `alternatives`: other tracks with the requested id, most popular first."""

    track_id: Id
    title: str
    isrc: Isrc | None
    links: list[PlatformLink]
    alternatives: list[Id] = msgspec.field(default_factory=list)


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


class FieldProvenance(msgspec.Struct):
    """The source of a field and the reason for it; `agreed` counts sources with the same value (null where nothing is counted)."""

    field: str
    value: str | int | float | None
    source: str | None
    external_id: str | None
    reason: str | None
    agreed: int | None


class SourceValues(msgspec.Struct):
    """The values of a source record, as the platform delivered them. `release_date` has the known parts only."""

    title: str
    version: str | None
    artists: str | None
    isrcs: list[str]
    duration_ms: int | None
    release_date: str | None
    release: str | None
    label: str | None
    genres: list[str]


class SourceRecord(msgspec.Struct):
    """A record of a platform that was merged into the track. `url` leads to it, or to its release; null where the platform has no page.

    `values` is null in a build of an earlier release.
    """

    source: str
    external_id: str
    url: str | None
    values: SourceValues | None


class GenreProvenance(msgspec.Struct):
    """Why a track has a genre: the words of `source` about the `entity_kind`, and the rule that matched them."""

    name: str
    source: str
    entity_kind: str
    said: str
    rule: str


class Provenance(msgspec.Struct):
    """The sources of a track's fields and genres, and the records that were merged into it."""

    fields: list[FieldProvenance]
    genres: list[GenreProvenance]
    records: list[SourceRecord]


class Match(msgspec.Struct):
    """The fit of a search result to the query: 1 is exact."""

    score: Annotated[float, Meta(ge=0, le=1)]
    match_class: str = msgspec.field(name="class")
    reasons: list[str]


class Track(msgspec.Struct, omit_defaults=True):
    """The full track.

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


class Genre(msgspec.Struct):
    """A node of the canonical tree; `parent` is the name of its main genre, null for mains."""

    id: Id
    name: str
    type: Annotated[str, Meta(extra_json_schema={"enum": ["main", "subgenre"]})]
    parent: str | None


class GenreTree(msgspec.Struct):
    """The whole tree as a flat list."""

    genres: list[Genre]


class Change(msgspec.Struct):
    """The change of an id in a build: merged into `new_id`, split (`new_id` took a part of it), removed, or restored."""

    build: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["track", "artist", "release", "label"]})]
    change: Annotated[str, Meta(extra_json_schema={"enum": ["merged", "split", "removed", "restored"]})]
    id: Id
    new_id: Id | None


class Changes(msgspec.Struct):
    """Changes after the build `since`, oldest first. `build` is the last one: send it as `since` next time."""

    since: str | None
    build: str
    results: list[Change]
    next_cursor: str | None
