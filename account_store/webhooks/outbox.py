"""The outbox: an event is written in the transaction of its cause, so that none is lost and none reports a change that was rolled back.

    with engine.begin() as connection:
        ...                                                             # the cause
        emit(connection, account_id, TRACK_STARTED, {...}, occurred_at=moment)

An event is written once, with one delivery for each endpoint of the account that asks for its type; without such an endpoint it is not
written. Deliveries to a disabled endpoint are held, so that a replay finds them. Sending is the work of `webhook_delivery`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from account_store.webhooks.event_types import EVENT_TYPES, encode_event
from account_store.webhooks.webhook_tables import webhook_announcement, webhook_delivery, webhook_endpoint, webhook_event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Row

PENDING, DELIVERED, FAILED, HELD = DELIVERY_STATUSES = ("pending", "delivered", "failed", "held")
"""Waiting for an attempt; answered 2xx; given up after the last attempt; not sent because the endpoint was disabled."""
_MESSAGE_LABEL = "msg_"


def emit(connection: Connection, account_id: int, event_type: str, payload: Mapping[str, Any], *, occurred_at: datetime) -> str | None:
    """Write an event for the account's endpoints that ask for its type, in the caller's transaction; return its id, None when none asks.

    `payload` is JSON. ValueError: `event_type` is none of EVENT_TYPES.
    """
    if event_type not in EVENT_TYPES:
        raise ValueError(f"there is no event {event_type!r}; there are {', '.join(EVENT_TYPES)}")
    found = select(webhook_endpoint).where(webhook_endpoint.c.account_id == account_id, webhook_endpoint.c.deleted_at.is_(None))
    endpoints = [row for row in connection.execute(found) if _is_subscribed(row, event_type)]
    return write_event(connection, account_id, event_type, payload, occurred_at, endpoints) if endpoints else None


def announce(connection: Connection, occasion: str, event_type: str, payload: Mapping[str, Any], *, occurred_at: datetime) -> bool:
    """Emit an event to all accounts, once for the occasion (<= 200 characters) over all processes; return whether this call did."""
    try:
        # The primary key decides between processes. A savepoint, because PostgreSQL refuses all further statements of a
        # transaction in which one failed.
        with connection.begin_nested():
            connection.execute(webhook_announcement.insert().values(occasion=occasion, announced_at=occurred_at))
    except IntegrityError:
        return False
    account_ids = select(webhook_endpoint.c.account_id).where(webhook_endpoint.c.deleted_at.is_(None)).distinct()
    for account_id in connection.scalars(account_ids.order_by(webhook_endpoint.c.account_id)).all():
        emit(connection, account_id, event_type, payload, occurred_at=occurred_at)
    return True


def write_event(
    connection: Connection,
    account_id: int,
    event_type: str,
    payload: Mapping[str, Any],
    occurred_at: datetime,
    endpoints: Sequence[Row[Any]],
) -> str:
    """Write an event with a delivery for each of `endpoints`, subscribed or not; return its id."""
    event_id = _MESSAGE_LABEL + uuid.uuid4().hex
    facts = {"event_id": event_id, "account_id": account_id, "event_type": event_type, "occurred_at": occurred_at}
    body = encode_event(event_type, occurred_at, payload)
    connection.execute(webhook_event.insert().values(**facts, body=body))
    rows = [_build_delivery(row, event_id, occurred_at) for row in endpoints]
    connection.execute(webhook_delivery.insert(), rows)
    return event_id


def _is_subscribed(endpoint: Row[Any], event_type: str) -> bool:
    return not endpoint.event_types or event_type in endpoint.event_types.split()


def _build_delivery(endpoint: Row[Any], event_id: str, at: datetime) -> dict[str, Any]:
    is_held = endpoint.disabled_at is not None
    status = {"status": HELD, "due_at": None} if is_held else {"status": PENDING, "due_at": at}
    return {"endpoint_id": endpoint.endpoint_id, "event_id": event_id, "created_at": at, **status}
