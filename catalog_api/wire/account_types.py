"""Wire types of an account: usage, suggestions, webhooks."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from account_store.webhooks.endpoints import DISABLED_REASONS
from account_store.webhooks.event_types import EVENT_TYPES
from account_store.webhooks.outbox import DELIVERY_STATUSES
from catalog_api.wire.values import Date, Id, Timestamp


class DayUse(msgspec.Struct):
    """Credits and requests of one key on one UTC day; `key` is the beginning of the key."""

    day: Date
    key: str
    credits: Annotated[int, Meta(ge=0)]
    requests: Annotated[int, Meta(ge=0)]


class Usage(msgspec.Struct):
    """An account's calendar month (UTC). Each stream that was active at any moment of it counts as a stream-month."""

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


class AuditEntry(msgspec.Struct):
    """A change of the account. `actor` is `operator`, `key <id>` or `user <e-mail>`; `subject` is the changed thing."""

    id: Id
    at: Timestamp
    actor: str
    action: str
    subject: str
    detail: str


class AuditPage(msgspec.Struct):
    """A page of changes, newest first."""

    results: list[AuditEntry]
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


WebhookEvent = Annotated[str, Meta(extra_json_schema={"enum": list(EVENT_TYPES)})]


class Webhook(msgspec.Struct):
    """An address that receives events. An empty `event_types` means all. `failing_since`: the address has not answered 2xx since then."""

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
    """A webhook with a new secret, which only this answer shows."""

    secret: str


class WebhookList(msgspec.Struct):
    """The account's webhooks, oldest first."""

    results: list[Webhook]


class WebhookDelivery(msgspec.Struct):
    """One event for one webhook. `event_id` is the receiver's `webhook-id`; `next_attempt_at` is null when no attempt will follow."""

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
    """One attempt of a delivery. `error` is null after a 2xx; `response_excerpt` is the beginning of the receiver's response."""

    attempted_at: Timestamp
    duration_ms: Annotated[int, Meta(ge=0)]
    status_code: int | None
    error: str | None
    response_excerpt: str | None


class WebhookDeliveryDetail(WebhookDelivery):
    """A delivery with the exact body that was sent and all its attempts, oldest first."""

    body: str
    attempts: list[WebhookAttempt]


class WebhookReplay(msgspec.Struct):
    """The number of deliveries that are sent again."""

    replayed: Annotated[int, Meta(ge=0)]
