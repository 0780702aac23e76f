"""The wire types of `/v1`, field for field as the specification names them (part 2). Changed only additively."""

from __future__ import annotations

import msgspec


class ArtistRef(msgspec.Struct):
    """An artist by id and name."""

    id: int
    name: str


class LabelRef(msgspec.Struct):
    """A label by id and name."""

    id: int
    name: str


class ReleaseSummary(msgspec.Struct):
    """A release inside a track."""

    id: int
    title: str
    artist: ArtistRef
    label: LabelRef | None
    release_date: str | None
    release_date_precision: str | None


class TrackArtist(msgspec.Struct):
    """An artist of a track."""

    id: int
    name: str
    is_primary: bool
    is_remixer: bool


class Match(msgspec.Struct):
    """How well a search result fits the query."""

    score: float
    match_class: str = msgspec.field(name="class")
    reasons: list[str]


class Track(msgspec.Struct, omit_defaults=True):
    """The full track payload; `match` only inside search results."""

    id: int
    title: str
    releases: list[ReleaseSummary]
    artists: list[TrackArtist]
    isrc: str | None
    duration: int | None
    genre: list[str]
    subgenre: list[str]
    match: Match | None = None


class SearchPage(msgspec.Struct):
    """A page of search results."""

    results: list[Track]
    next_cursor: str | None


class PlatformLink(msgspec.Struct):
    """A track on a platform."""

    source: str
    external_id: str
    url: str


class TrackLinks(msgspec.Struct, omit_defaults=True):
    """The links of a track; `alternatives` when the id that was asked for stands on several tracks."""

    track_id: int
    title: str
    isrc: str | None
    links: list[PlatformLink]
    alternatives: list[int] = msgspec.field(default_factory=list)


class IswcEntry(msgspec.Struct):
    """A work by its code."""

    iswc: str
    title: str


class TrackIswcs(msgspec.Struct):
    """The works that a track performs. `sonovault_id` is the track id; the name is part of the contract."""

    sonovault_id: int
    isrc: str | None
    iswcs: list[IswcEntry]


class RecordingEntry(msgspec.Struct):
    """A recording of a work."""

    sonovault_id: int
    isrc: str | None
    title: str
    artist: str


class WorkRecordings(msgspec.Struct):
    """The recordings of a work, most popular first; `total` counts all, whatever the page."""

    iswc: str
    title: str
    total: int
    recordings: list[RecordingEntry]


class Genre(msgspec.Struct):
    """A node of the canonical tree; `parent` is the name of its main genre."""

    id: int
    name: str
    type: str
    parent: str | None


class GenreTree(msgspec.Struct):
    """The whole tree as a flat list."""

    genres: list[Genre]


class ErrorCode(msgspec.Struct):
    """One row of the error table."""

    code: str
    status: int
    title: str
    advice: str


class ErrorCodes(msgspec.Struct):
    """Every code an answer can carry."""

    errors: list[ErrorCode]


class ParameterProblem(msgspec.Struct):
    """What is wrong with one parameter."""

    place: str = msgspec.field(name="in")
    name: str
    message: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    errors: list[ParameterProblem] = msgspec.field(default_factory=list)
