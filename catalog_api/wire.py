"""The wire types of `/v1`, field for field as the specification names them (part 2). Changed only additively.

Stored JSON goes out as it is; these types say what it looks like, encode what is put together here, and make the schemas of the
description. A member with a default is additive: it is left out where it does not apply.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from account_store.webhooks.endpoints import DISABLED_REASONS
from account_store.webhooks.events import EVENT_TYPES
from account_store.webhooks.outbox import DELIVERY_STATUSES
from catalog_store.platforms import LINK_SOURCES

Id = Annotated[int, Meta(ge=1)]
Date = Annotated[str, Meta(extra_json_schema={"format": "date"})]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, UTC, with `Z` (contract A14)."""
WebhookEvent = Annotated[str, Meta(extra_json_schema={"enum": list(EVENT_TYPES)})]
Precision = Literal["year", "month", "day"]
Isrc = Annotated[str, Meta(pattern="^[A-Z]{2}[A-Z0-9]{3}[0-9]{7}$")]
Iswc = Annotated[str, Meta(pattern="^T[0-9]{10}$")]


class ArtistRef(msgspec.Struct):
    """An artist by id and name."""

    id: Id
    name: str


class LabelRef(msgspec.Struct):
    """A label by id and name."""

    id: Id
    name: str


class ReleaseSummary(msgspec.Struct):
    """A release inside a track. `release_date` is padded to a full date; `release_date_precision` says how much of it is known."""

    id: Id
    title: str
    artist: ArtistRef
    label: LabelRef | None
    release_date: Date | None
    release_date_precision: Precision | None


class TrackArtist(msgspec.Struct):
    """An artist of a track."""

    id: Id
    name: str
    is_primary: bool
    is_remixer: bool


class PlatformLink(msgspec.Struct):
    """A track on a platform."""

    source: Annotated[str, Meta(extra_json_schema={"enum": list(LINK_SOURCES)})]
    external_id: str
    url: Annotated[str, Meta(extra_json_schema={"format": "uri"})]


class Match(msgspec.Struct):
    """How well a search result fits the query: 1 is exact."""

    score: Annotated[float, Meta(ge=0, le=1)]
    match_class: str = msgspec.field(name="class")
    reasons: list[str]


class FieldProvenance(msgspec.Struct):
    """Who gave a field of a track, and why that source; `agreed` sources said the same (null where nothing is counted)."""

    field: str
    value: str | int | float | None
    source: str | None
    external_id: str | None
    reason: str | None
    agreed: int | None


class SourceRecord(msgspec.Struct):
    """A platform's record that was merged into the track."""

    source: str
    external_id: str


class GenreProvenance(msgspec.Struct):
    """Why a track has a genre: what `source` said of the `entity_kind`, and the rule that read it."""

    name: str
    source: str
    entity_kind: str
    said: str
    rule: str


class Provenance(msgspec.Struct):
    """Where a track comes from: its fields, its genres, and the records that were merged into it."""

    fields: list[FieldProvenance]
    genres: list[GenreProvenance]
    records: list[SourceRecord]


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


class TrackLinks(msgspec.Struct, omit_defaults=True):
    """The links of a track; `alternatives` are the other tracks that the id asked for stands on, most popular first."""

    track_id: Id
    title: str
    isrc: Isrc | None
    links: list[PlatformLink]
    alternatives: list[Id] = msgspec.field(default_factory=list)


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


class SlimLabel(msgspec.Struct):
    """A label by name."""

    name: str


class SlimRelease(msgspec.Struct):
    """A release of a slim track."""

    title: str
    label: SlimLabel | None
    release_date: Date | None


class SlimTrack(msgspec.Struct):
    """A track as bulk resolve answers it."""

    id: Id
    title: str
    isrc: Isrc | None
    releases: list[SlimRelease]
    genre: list[str]


class TrackName(msgspec.Struct):
    """A row of bulk resolve by name."""

    artist: str
    title: str


class ResolvedRow(msgspec.Struct, omit_defaults=True):
    """What became of one item; `track` when it was matched, `match` when it was matched by name."""

    input: str | TrackName
    status: Literal["matched", "not_found", "skipped_no_credits"]
    links: list[PlatformLink]
    track: SlimTrack | msgspec.UnsetType = msgspec.UNSET
    match: Match | msgspec.UnsetType = msgspec.UNSET


class Resolved(msgspec.Struct):
    """`results[j]` answers `items[j]`. `partial`: the credits did not last, and the last rows were skipped."""

    results: list[ResolvedRow]
    partial: bool
    processed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    message: str | None


class RecognitionResult(msgspec.Struct):
    """A recording that was recognised. `offset_seconds`: where in the recording begins what was sent."""

    id: Annotated[str, Meta(pattern="^[1-9][0-9]*$")]
    title: str
    artists: list[TrackArtist]
    confidence: Annotated[float, Meta(ge=0.5, le=1)]
    offset_seconds: float


class Identified(msgspec.Struct, omit_defaults=True):
    """What was recognised, best first. `reason` when nothing was; `window_offset_seconds`: where in an upload begins what was."""

    matched: bool
    results: list[RecognitionResult]
    credits_charged: Annotated[int, Meta(ge=10)]
    reason: Literal["too_short", "silence", "low_diversity", "not_found"] | msgspec.UnsetType = msgspec.UNSET
    window_offset_seconds: Annotated[float, Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET


class Genre(msgspec.Struct):
    """A node of the canonical tree; `parent` is the name of its main genre, null for mains."""

    id: Id
    name: str
    type: Annotated[str, Meta(extra_json_schema={"enum": ["main", "subgenre"]})]
    parent: str | None


class GenreTree(msgspec.Struct):
    """The whole tree as a flat list."""

    genres: list[Genre]


class ReleaseEntry(msgspec.Struct):
    """A release in a list."""

    id: Id
    title: str
    artist: ArtistRef
    label: LabelRef | None
    release_date: Date | None
    release_date_precision: Precision | None
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


class Release(msgspec.Struct):
    """A release with its tracks, in their order."""

    id: Id
    title: str
    artist: ArtistRef
    label: LabelRef | None
    release_date: Date | None
    release_date_precision: Precision | None
    release_type: str | None
    catalog_number: str | None
    gtin: str | None
    track_count: Annotated[int, Meta(ge=1)]
    tracks: list[ReleaseTrack]


class Artist(msgspec.Struct):
    """An artist; `release_count` counts the releases whose artist it is."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]


class Label(msgspec.Struct):
    """A label."""

    id: Id
    name: str
    release_count: Annotated[int, Meta(ge=0)]


class Change(msgspec.Struct):
    """What became of an id in a build: merged into `new_id`, split (`new_id` took a part of it), removed, or restored."""

    build: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["track", "artist", "release", "label"]})]
    change: Annotated[str, Meta(extra_json_schema={"enum": ["merged", "split", "removed", "restored"]})]
    id: Id
    new_id: Id | None


class Changes(msgspec.Struct):
    """Changes after the build asked about, oldest first; `build` is the one that answered: ask with it next time."""

    since: str | None
    build: str
    results: list[Change]
    next_cursor: str | None


class Suggestion(msgspec.Struct):
    """A proposed correction of a track."""

    id: Id
    status: Annotated[str, Meta(extra_json_schema={"enum": ["pending", "approved", "rejected"]})]
    track_id: Id
    field: str
    value: str
    note: str | None
    source_url: str | None
    created_at: Timestamp


class SuggestionPage(msgspec.Struct):
    """The caller's suggestions, oldest first."""

    results: list[Suggestion]
    next_cursor: str | None


class AiredTrack(msgspec.Struct):
    """A track on a stream, as the catalog describes it now; one that left the catalog as it did then. `artist` are those who lead."""

    id: str
    title: str
    isrc: Isrc | None
    artist: str
    artists: list[TrackArtist]
    duration: Annotated[int, Meta(ge=1)] | None
    genre: list[str]
    subgenre: list[str]


class NowPlaying(msgspec.Struct):
    """What is heard on a stream at this moment."""

    track: AiredTrack
    started_at: Timestamp


class Stream(msgspec.Struct, omit_defaults=True):
    """A monitored stream.

    `now_playing` is null during ads, talk, silence and what the catalog does not hold (`now_playing_state` unrecognized), and while
    nobody listens (not_listening: the stream starts, is reconnected, has failed or was stopped). `last_error` stays readable when all is
    well again; `unresolved`, only in the answer to the registration: why the name of the address does not resolve at the moment.
    """

    id: str
    url: str
    name: str
    status: Annotated[str, Meta(extra_json_schema={"enum": ["active", "stopped"]})]
    runtime_status: Annotated[str, Meta(extra_json_schema={"enum": ["starting", "running", "reconnecting", "failed", "stopped"]})]
    detection_mode: Annotated[str, Meta(extra_json_schema={"enum": ["balanced"]})]
    created_at: Timestamp
    stopped_at: Timestamp | None
    now_playing: NowPlaying | None
    now_playing_state: Annotated[str, Meta(extra_json_schema={"enum": ["playing", "unrecognized", "not_listening"]})]
    last_recognized_at: Timestamp | None
    last_error: str | None
    last_error_at: Timestamp | None
    audio_format: str | None
    unresolved: str | msgspec.UnsetType = msgspec.UNSET


class StreamPage(msgspec.Struct):
    """The account's streams, newest first, stopped ones included."""

    results: list[Stream]
    next_cursor: str | None


class AiringEntry(msgspec.Struct):
    """One airing; `ended_at` is null while it goes on, `duration_seconds` its length so far."""

    track: AiredTrack
    started_at: Timestamp
    ended_at: Timestamp | None
    duration_seconds: Annotated[int, Meta(ge=0)]
    confidence: Annotated[float, Meta(ge=0, le=1)]


class AiringPage(msgspec.Struct):
    """A stream's airings, newest first."""

    results: list[AiringEntry]
    next_cursor: str | None


class ReportSummaryRow(msgspec.Struct):
    """A track and how often it was played."""

    track_id: Id
    isrc: Isrc | None
    title: str
    artist: str
    play_count: Annotated[int, Meta(ge=1)]


class ReportDetailRow(msgspec.Struct):
    """One airing."""

    track_id: Id
    isrc: Isrc | None
    played_at: Timestamp
    duration_seconds: Annotated[int, Meta(ge=0)]


class ReportGap(msgspec.Struct):
    """Time of the report that nobody listened to: the stream was away (`source`), or we were (`monitor`). Open while `ended_at` is null."""

    started_at: Timestamp
    ended_at: Timestamp | None
    cause: str
    detail: str | None


class ReportedStream(msgspec.Struct):
    """A stream's part of a report: tracks, most played first; airings, oldest first."""

    id: str
    name: str
    summary: list[ReportSummaryRow]
    detail: list[ReportDetailRow]
    gaps: list[ReportGap]


class Report(msgspec.Struct):
    """Airings that began within whole days of `timezone`, the last one included, on the account's streams, oldest stream first."""

    since: Date = msgspec.field(name="from")
    until: Date
    timezone: str
    scope: Annotated[str, Meta(extra_json_schema={"enum": ["account"]})]
    streams: list[ReportedStream]


class AirplayReport(msgspec.Struct):
    """The airplay report of an account."""

    report: Report


class DayUse(msgspec.Struct):
    """Credits and requests of one key on one UTC day; keys are told apart by their beginning."""

    day: Date
    key: str
    credits: Annotated[int, Meta(ge=0)]
    requests: Annotated[int, Meta(ge=0)]


class Usage(msgspec.Struct):
    """An account's calendar month (UTC). Each stream that was active at any moment of it is a stream-month."""

    month: str
    plan: str
    credits_allowed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    resets_at: Timestamp
    requests_per_second: Annotated[int, Meta(ge=1)]
    burst: Annotated[int, Meta(ge=1)]
    days: list[DayUse]
    stream_months: Annotated[int, Meta(ge=0)]
    stream_month_price_eur: float
    stream_price_eur: float


class Webhook(msgspec.Struct):
    """An address that is told of events. `event_types` is empty for all; `failing_since`: no 2xx since then."""

    id: str
    url: str
    description: str
    event_types: list[WebhookEvent]
    status: Annotated[str, Meta(extra_json_schema={"enum": ["enabled", "disabled"]})]
    disabled_reason: Annotated[str | None, Meta(extra_json_schema={"enum": [*DISABLED_REASONS, None]})]
    disabled_at: Timestamp | None
    failing_since: Timestamp | None
    created_at: Timestamp
    previous_secret_until: Timestamp | None


class NewWebhook(Webhook):
    """A webhook whose secret was just made: the only time that it is told."""

    secret: str


class WebhookList(msgspec.Struct):
    """The account's webhooks, oldest first."""

    results: list[Webhook]


class WebhookDelivery(msgspec.Struct):
    """One event for one webhook. `event_id` is the receiver's `webhook-id`; `next_attempt_at` is null when there will be none."""

    id: Id
    event_id: str
    event_type: str
    occurred_at: Timestamp
    status: Annotated[str, Meta(extra_json_schema={"enum": list(DELIVERY_STATUSES)})]
    next_attempt_at: Timestamp | None
    finished_at: Timestamp | None
    attempt_count: Annotated[int, Meta(ge=0)]
    last_status_code: int | None
    last_error: str | None


class WebhookDeliveryPage(msgspec.Struct):
    """A webhook's deliveries, newest first."""

    results: list[WebhookDelivery]
    next_cursor: str | None


class WebhookAttempt(msgspec.Struct):
    """One time that a delivery was sent. `error` is null when it was answered 2xx; `response_excerpt` is the beginning of the answer."""

    attempted_at: Timestamp
    duration_ms: Annotated[int, Meta(ge=0)]
    status_code: int | None
    error: str | None
    response_excerpt: str | None


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with what was sent, to the letter, and all its attempts, oldest first."""

    body: str
    attempts: list[WebhookAttempt]


class WebhookReplay(msgspec.Struct):
    """How many deliveries are sent again."""

    replayed: Annotated[int, Meta(ge=0)]


class ErrorCode(msgspec.Struct):
    """One row of the error table."""

    code: str
    status: int
    title: str
    advice: str


class ErrorCodes(msgspec.Struct):
    """Every code an answer can carry."""

    errors: list[ErrorCode]


class InterfaceChange(msgspec.Struct, omit_defaults=True):
    """A change of the interface; `sunset` and `link` of what is deprecated."""

    date: Date
    kind: Literal["added", "deprecated", "removed"]
    path: str
    note: str
    sunset: Date | None = None
    link: str | None = None


class Changelog(msgspec.Struct):
    """The changes of the interface, newest first."""

    changes: list[InterfaceChange]


class ParameterProblem(msgspec.Struct):
    """What is wrong with one parameter."""

    place: Literal["path", "query", "header", "body"] = msgspec.field(name="in")
    name: str
    message: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error, after RFC 9457; `errors` name all bad parameters at once."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    errors: list[ParameterProblem] = msgspec.field(default_factory=list)


class QuotaProblem(Problem, omit_defaults=True):
    """Too few credits are left this month."""

    credits_required: int | msgspec.UnsetType = msgspec.UNSET
    credits_remaining: int | msgspec.UnsetType = msgspec.UNSET
    resets_at: Timestamp | msgspec.UnsetType = msgspec.UNSET
