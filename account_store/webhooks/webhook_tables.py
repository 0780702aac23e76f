"""The tables of webhooks, beside the rest of the store's in `account_store/schema.py`: endpoints, events, deliveries, attempts.

A change here needs a revision in `migrations/versions`. Out of scope: tables of streams.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text, text

from account_store.schema import UtcDateTime, metadata

_ROW_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database generates. SQLite does so for INTEGER only, which holds 64 bits there."""
_IS_DUE = text("due_at IS NOT NULL")

webhook_endpoint = Table(
    "webhook_endpoint",
    metadata,
    Column("endpoint_id", String(36), primary_key=True),
    Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("description", String(500), nullable=False, server_default=""),
    Column("event_types", Text, nullable=False, server_default=""),
    Column("created_at", UtcDateTime, nullable=False),
    Column("disabled_at", UtcDateTime),
    Column("disabled_reason", String(20)),
    Column("deleted_at", UtcDateTime),
    Column("secret", Text, nullable=False),
    Column("previous_secret", Text),
    Column("previous_secret_until", UtcDateTime),
    Column("failing_since", UtcDateTime),
    Column("failure_count", Integer, nullable=False, server_default="0"),
    Column("rests_until", UtcDateTime),
    Column("lease_owner", String(64)),
    Column("lease_until", UtcDateTime),
)
"""`event_types`: separated by blanks; empty for all. `failing_since` and `failure_count` count failures since the last success. The lease
names the deliverer that sends to it, and its end."""

webhook_event = Table(
    "webhook_event",
    metadata,
    Column("event_id", String(40), primary_key=True),
    Column("account_id", Integer, ForeignKey("account.account_id"), nullable=False),
    Column("event_type", String(60), nullable=False),
    Column("body", Text, nullable=False),
    Column("occurred_at", UtcDateTime, nullable=False, index=True),
)
"""`event_id` is the `webhook-id` that receivers see; exactly `body` is signed and sent."""

webhook_delivery = Table(
    "webhook_delivery",
    metadata,
    Column("delivery_id", _ROW_NUMBER, primary_key=True),
    Column("endpoint_id", String(36), ForeignKey("webhook_endpoint.endpoint_id"), nullable=False),
    Column("event_id", String(40), ForeignKey("webhook_event.event_id"), nullable=False, index=True),
    Column("status", String(10), nullable=False),
    Column("due_at", UtcDateTime),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("created_at", UtcDateTime, nullable=False, index=True),
    Column("finished_at", UtcDateTime),
    # Partial: deliverers search it twice a second, and few deliveries are pending beside two weeks of finished ones.
    Index("webhook_delivery_due", "endpoint_id", "due_at", sqlite_where=_IS_DUE, postgresql_where=_IS_DUE),
    Index("webhook_delivery_log", "endpoint_id", "delivery_id"),
)
"""One event for one endpoint. `due_at` is set while it is pending; `tries` counts the attempts of the present schedule."""

webhook_attempt = Table(
    "webhook_attempt",
    metadata,
    Column("attempt_id", _ROW_NUMBER, primary_key=True),
    Column("delivery_id", _ROW_NUMBER, ForeignKey("webhook_delivery.delivery_id"), nullable=False, index=True),
    Column("attempted_at", UtcDateTime, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status_code", Integer),
    Column("error", String(300)),
    Column("response_excerpt", Text),
)

secret_key = Table(
    "secret_key",
    metadata,
    Column("purpose", String(20), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("noted_at", UtcDateTime, nullable=False),
)
"""A hash of the key that seals, to notice a lost or replaced key."""

webhook_announcement = Table(
    "webhook_announcement",
    metadata,
    Column("occasion", String(200), primary_key=True),
    Column("announced_at", UtcDateTime, nullable=False),
)
"""Occasions that all accounts hear of once, although several processes notice: `catalog.published <snapshot>`."""
