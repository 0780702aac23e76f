"""Webhooks: endpoints, the outbox of events, deliveries and their attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the five tables."""
    _create_endpoints()
    _create_events()
    _create_deliveries()
    op.create_table(
        "webhook_announcement",
        sa.Column("occasion", sa.String(200), primary_key=True),
        sa.Column("announced_at", sa.DateTime, nullable=False),
    )


def _create_endpoints() -> None:
    op.create_table(
        "webhook_endpoint",
        sa.Column("endpoint_id", sa.String(36), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False, index=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("description", sa.String(500), nullable=False, server_default=""),
        sa.Column("event_types", sa.Text, nullable=False, server_default=""),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("disabled_at", sa.DateTime),
        sa.Column("disabled_reason", sa.String(20)),
        sa.Column("deleted_at", sa.DateTime),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("previous_secret", sa.Text),
        sa.Column("previous_secret_until", sa.DateTime),
        sa.Column("failing_since", sa.DateTime),
        sa.Column("failure_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("rests_until", sa.DateTime),
        sa.Column("lease_owner", sa.String(64)),
        sa.Column("lease_until", sa.DateTime),
    )


def _create_events() -> None:
    op.create_table(
        "webhook_event",
        sa.Column("event_id", sa.String(40), primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.account_id"), nullable=False),
        sa.Column("event_type", sa.String(60), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("occurred_at", sa.DateTime, nullable=False, index=True),
    )


def _create_deliveries() -> None:
    op.create_table(
        "webhook_delivery",
        sa.Column("delivery_id", _ROW_NUMBER, primary_key=True),
        sa.Column("endpoint_id", sa.String(36), sa.ForeignKey("webhook_endpoint.endpoint_id"), nullable=False),
        sa.Column("event_id", sa.String(40), sa.ForeignKey("webhook_event.event_id"), nullable=False, index=True),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("due_at", sa.DateTime),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", sa.DateTime, nullable=False, index=True),
        sa.Column("finished_at", sa.DateTime),
    )
    is_due = sa.text("due_at IS NOT NULL")
    columns = ["endpoint_id", "due_at"]
    op.create_index("webhook_delivery_due", "webhook_delivery", columns, sqlite_where=is_due, postgresql_where=is_due)
    op.create_index("webhook_delivery_log", "webhook_delivery", ["endpoint_id", "delivery_id"])
    op.create_table(
        "webhook_attempt",
        sa.Column("attempt_id", _ROW_NUMBER, primary_key=True),
        sa.Column("delivery_id", _ROW_NUMBER, sa.ForeignKey("webhook_delivery.delivery_id"), nullable=False, index=True),
        sa.Column("attempted_at", sa.DateTime, nullable=False),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.String(300)),
        sa.Column("response_excerpt", sa.Text),
    )
