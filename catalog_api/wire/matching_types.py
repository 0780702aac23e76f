"""Answers of bulk resolve and of identify."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from catalog_api.wire.catalog_types import Artist, Match, PlatformLink, ReleaseEntry, TrackArtist
from catalog_api.wire.values import Date, Id, Isrc


class SlimLabel(msgspec.Struct):
    """A label by name."""

    name: str


class SlimRelease(msgspec.Struct):
    """A release of a slim track."""

    title: str
    label: SlimLabel | None
    release_date: Date | None


class SlimTrack(msgspec.Struct):
    """A track in bulk resolve and in conflicts."""

    id: Id
    title: str
    isrc: Isrc | None
    releases: list[SlimRelease]
    genre: list[str]


class IsrcConflict(msgspec.Struct):
    """A code that `kept_by` carries and source records of `claimed_by` claim, too."""

    isrc: Isrc
    reason: Literal["variant", "duration", "artist", "title", "outvoted"]
    platforms: list[str]
    record_count: Annotated[int, Meta(ge=1)]
    kept_by: SlimTrack
    claimed_by: SlimTrack


class IsrcConflictPage(msgspec.Struct):
    """A page of conflicts; `next_cursor` is null exactly at the end."""

    results: list[IsrcConflict]
    next_cursor: str | None


class TrackName(msgspec.Struct):
    """A row of bulk resolve by name."""

    artist: str
    title: str


class ResolvedRow(msgspec.Struct, omit_defaults=True):
    """The result of one item; `track` when it was matched, `match` when it was matched by name."""

    input: str | TrackName
    status: Literal["matched", "not_found", "skipped_no_credits"]
    links: list[PlatformLink]
    track: SlimTrack | msgspec.UnsetType = msgspec.UNSET
    match: Match | msgspec.UnsetType = msgspec.UNSET


class Resolved(msgspec.Struct):
    """`results[j]` answers `items[j]`. `partial`: the credits ran out, and the last rows were skipped."""

    results: list[ResolvedRow]
    partial: bool
    processed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    message: str | None


class ResolvedArtistRow(msgspec.Struct, omit_defaults=True):
    """The result of one item; `artist` when it was matched, `alternatives`: other artists of the name, most tracks first."""

    input: str | int
    status: Literal["matched", "not_found", "skipped_no_credits"]
    artist: Artist | msgspec.UnsetType = msgspec.UNSET
    alternatives: list[Id] = msgspec.field(default_factory=list)


class ResolvedArtists(msgspec.Struct):
    """`results[j]` answers `items[j]`. `partial`: the credits ran out, and the last rows were skipped."""

    results: list[ResolvedArtistRow]
    partial: bool
    processed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    message: str | None


class ResolvedReleaseRow(msgspec.Struct, omit_defaults=True):
    """The result of one item; `release` when it was matched, `alternatives`: other releases of the barcode or name, best first."""

    input: str | int | TrackName
    status: Literal["matched", "not_found", "skipped_no_credits"]
    release: ReleaseEntry | msgspec.UnsetType = msgspec.UNSET
    alternatives: list[Id] = msgspec.field(default_factory=list)


class ResolvedReleases(msgspec.Struct):
    """`results[j]` answers `items[j]`. `partial`: the credits ran out, and the last rows were skipped."""

    results: list[ResolvedReleaseRow]
    partial: bool
    processed: Annotated[int, Meta(ge=0)]
    credits_used: Annotated[int, Meta(ge=0)]
    credits_remaining: Annotated[int, Meta(ge=0)]
    message: str | None


class RecognitionResult(msgspec.Struct):
    """A recognised recording. `offset_seconds`: the position in the recording at which the sent audio begins.

    `probability`: how likely it is this recording, or one that sounds alike. `method`: the evidence, the fingerprint, or landmarks of audio
    whose fingerprint alone is not close enough. `speed` and `pitch` when the sent audio is faster and higher
    (above 1) or slower and lower than the recording.
    """

    id: Annotated[str, Meta(pattern="^[1-9][0-9]*$")]
    title: str
    artists: list[TrackArtist]
    confidence: Annotated[float, Meta(ge=0.5, le=1)]
    probability: Annotated[float, Meta(ge=0, le=1)]
    offset_seconds: float
    method: Literal["fingerprint", "landmarks"]
    speed: Annotated[float, Meta(gt=0)] | msgspec.UnsetType = msgspec.UNSET
    pitch: Annotated[float, Meta(gt=0)] | msgspec.UnsetType = msgspec.UNSET


class TimelineEntry(msgspec.Struct):
    """A part of an upload and the recording that plays there; null in a gap. `offset_seconds` is of the beginning of the part."""

    start_seconds: Annotated[float, Meta(ge=0)]
    end_seconds: Annotated[float, Meta(ge=0)]
    track: RecognitionResult | None


class Identified(msgspec.Struct, omit_defaults=True):
    """The recognised recordings, best first. `reason` when there are none; `window_offset_seconds`: where in an upload the match begins.

    `timeline` with `mode=timeline`: all parts of the upload in order; then `results` has each track once, in the order of its first part.
    """

    matched: bool
    results: list[RecognitionResult]
    credits_charged: Annotated[int, Meta(ge=10)]
    reason: Literal["too_short", "silence", "low_diversity", "not_found"] | msgspec.UnsetType = msgspec.UNSET
    window_offset_seconds: Annotated[float, Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    timeline: list[TimelineEntry] | msgspec.UnsetType = msgspec.UNSET
