"""Monitored streams, what aired on them, and the airplay report."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from account_store.streams.registry import LONGEST_LINGER, SHORTEST_LINGER
from catalog_api.wire.catalog_types import TrackArtist
from catalog_api.wire.values import Date, Id, Isrc, Timestamp


class AiredTrack(msgspec.Struct):
    """A track on a stream, as the catalog describes it now, or as it did when the track aired. `artist` joins the lead artists."""

    id: str
    title: str
    isrc: Isrc | None
    artist: str
    artists: list[TrackArtist]
    duration: Annotated[int, Meta(ge=1)] | None
    genre: list[str]
    subgenre: list[str]


class NowPlaying(msgspec.Struct):
    """The track that is on at this moment."""

    track: AiredTrack
    started_at: Timestamp


class Stream(msgspec.Struct, omit_defaults=True):
    """A monitored stream.

    `now_playing` is null during ads, talk, silence and unknown music (`now_playing_state` unrecognized), and while nothing is recorded
    (not_listening: the stream starts, reconnects, has failed or was stopped). `last_error` stays after a recovery. `linger_seconds`: time
    that other sound may cover a track until its airing ends. `unresolved`, only in
    the answer to the registration: why the name of the address does not resolve at the moment.
    """

    id: str
    url: str
    name: str
    status: Annotated[str, Meta(extra_json_schema={"enum": ["active", "stopped"]})]
    runtime_status: Annotated[str, Meta(extra_json_schema={"enum": ["starting", "running", "reconnecting", "failed", "stopped"]})]
    detection_mode: Annotated[str, Meta(extra_json_schema={"enum": ["strict", "balanced", "sensitive"]})]
    linger_seconds: Annotated[int, Meta(ge=SHORTEST_LINGER, le=LONGEST_LINGER)]
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
    """One airing. While it is still on, `ended_at` is null and `duration_seconds` is its length so far."""

    track: AiredTrack
    started_at: Timestamp
    ended_at: Timestamp | None
    duration_seconds: Annotated[int, Meta(ge=0)]
    confidence: Annotated[float, Meta(ge=0, le=1)]


class AiringSegment(msgspec.Struct):
    """Time without a known track: `talk`, `music_unknown` or `silence`."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": ["talk", "music_unknown", "silence"]})]
    started_at: Timestamp
    ended_at: Timestamp
    duration_seconds: Annotated[int, Meta(ge=0)]


class AiringPage(msgspec.Struct, omit_defaults=True):
    """A stream's airings, newest first. `segments` (with `include=segments`): the time between them, newest first."""

    results: list[AiringEntry]
    next_cursor: str | None
    segments: list[AiringSegment] | msgspec.UnsetType = msgspec.UNSET


class ReportSummaryRow(msgspec.Struct):
    """A track and its number of plays."""

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
    """Time that was not monitored, because of the stream (`source`) or of our monitor (`monitor`). `ended_at` is null while it lasts."""

    started_at: Timestamp
    ended_at: Timestamp | None
    cause: str
    detail: str | None


class ReportedStream(msgspec.Struct):
    """A stream's part of a report: tracks by number of plays, airings by time."""

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
