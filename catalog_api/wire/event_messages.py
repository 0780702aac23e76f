"""Messages of webhooks: the bodies that account_store puts into the outbox (Standard Webhooks 1.0)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from account_store.webhooks.event_types import (
    CATALOG_PUBLISHED,
    JOB_FINISHED,
    PING,
    STATUS_CHANGED,
    SUGGESTION_DECIDED,
    TRACK_ENDED,
    TRACK_STARTED,
)
from catalog_api.wire.values import Id, Isrc, Timestamp

_Count = Annotated[int, Meta(ge=0)]


class StreamName(msgspec.Struct):
    """A monitored stream by id and name."""

    id: str
    name: str


class EventTrack(msgspec.Struct):
    """The track of an airing, as the catalog described it when it aired. `artist` joins the lead artists; `duration` is in seconds."""

    id: str
    title: str
    isrc: Isrc | None
    artist: str
    duration: Annotated[int, Meta(ge=1)] | None


class AiringStarted(msgspec.Struct):
    """An airing that began."""

    stream: StreamName
    airing_id: str
    track: EventTrack
    started_at: Timestamp
    confidence: Annotated[float, Meta(ge=0, le=1)]


class AiringEnded(AiringStarted):
    """An airing that ended. A later event with the same `airing_id` replaces this one."""

    ended_at: Timestamp
    duration_seconds: _Count


class StreamStatus(msgspec.Struct):
    """The new state of a stream."""

    stream: StreamName
    runtime_status: str
    previous_runtime_status: str
    status: str
    last_error: str | None


class PublishedBuild(msgspec.Struct):
    """The build that is live now."""

    build: str
    created_at: str


class DecidedSuggestion(msgspec.Struct):
    """A suggestion that an operator approved or rejected."""

    id: Id
    status: Literal["approved", "rejected"]
    track_id: Id
    field: str
    value: str
    created_at: Timestamp


class FinishedJob(msgspec.Struct):
    """A bulk job that ended. `error` says why a job failed."""

    id: str
    status: Literal["succeeded", "failed", "cancelled"]
    rows: _Count | None
    rows_done: _Count
    rows_matched: _Count
    credits_charged: _Count
    error: str | None
    created_at: Timestamp


class RequestedPing(msgspec.Struct):
    """A test that the owner asked for."""

    webhook_id: str
    requested_at: Timestamp


EVENT_DATA: dict[str, tuple[type[msgspec.Struct], str]] = {
    TRACK_STARTED: (AiringStarted, "A track was recognised on a stream."),
    TRACK_ENDED: (AiringEnded, "The airing of a track ended."),
    STATUS_CHANGED: (StreamStatus, "The `runtime_status` of a stream changed."),
    CATALOG_PUBLISHED: (PublishedBuild, "A new build of the catalog is live. `/v1/changes?since=` lists the ids that changed."),
    SUGGESTION_DECIDED: (DecidedSuggestion, "An operator approved or rejected a suggestion of the account."),
    JOB_FINISHED: (FinishedJob, "A bulk job of the account succeeded, failed or was cancelled."),
    PING: (RequestedPing, "The owner of the webhook asked for a test. It needs no subscription."),
}
"""By event type, the `data` of its message, and when it is sent."""
