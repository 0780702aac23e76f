"""The log of an endpoint's deliveries, and its owner's actions: replay and ping.

    accounts.deliveries.read_page(account_id, endpoint_id, status="failed")
    accounts.deliveries.replay_since(account_id, endpoint_id, moment)          # everything that did not arrive since then
    accounts.deliveries.ping(account_id, endpoint_id)

A replay starts the schedule again with the same event id, so that a receiver recognises the event. Out of scope: sending
(webhook_delivery).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from account_store.clock import format_rfc3339
from account_store.database import connect_for_reads
from account_store.errors import InvalidValueError, StateError, UnknownError
from account_store.webhooks.endpoints import find_endpoint_row
from account_store.webhooks.event_types import PING
from account_store.webhooks.outbox import DELIVERY_STATUSES, FAILED, HELD, PENDING, write_event
from account_store.webhooks.webhook_tables import webhook_attempt, webhook_delivery, webhook_event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, Engine, Row

    from account_store.clock import Clock


class DisabledError(StateError):
    """The endpoint is disabled and receives nothing."""

    code = "disabled"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one endpoint."""

    delivery_id: int
    endpoint_id: str
    event_id: str
    """The receiver's `webhook-id`."""
    event_type: str
    occurred_at: datetime
    status: str
    """One of DELIVERY_STATUSES."""
    due_at: datetime | None
    """Time of the next attempt while it is pending."""
    finished_at: datetime | None
    """Time of delivery, or of the last failure."""
    attempt_count: int
    """Number of all attempts, also those before a replay."""
    last_status_code: int | None
    """Status of the last attempt; None when there was no answer."""
    last_error: str | None
    """Reason of the last failure."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a delivery."""

    attempted_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    """Reason of the failure; None after a success."""
    response_excerpt: str | None
    """Beginning of the answer's body."""


@dataclass(frozen=True, slots=True)
class DeliveryDetail:
    """A delivery with its body and attempts."""

    delivery: Delivery
    body: str
    attempts: list[Attempt]
    """Oldest first."""


class Deliveries:
    """The deliveries of one database. Thread-safe; every method blocks. UnknownError: no such endpoint of the account, or delivery."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        """Use an open database."""
        self._engine = engine
        self._clock = clock

    def read_page(
        self, account_id: int, endpoint_id: str, *, status: str | None = None, limit: int = 100, before: int | None = None
    ) -> list[Delivery]:
        """Return at most `limit` deliveries, newest first, with ids below `before`, of one status when given."""
        if status is not None and status not in DELIVERY_STATUSES:
            raise InvalidValueError(f"no status {status!r}; there are {', '.join(DELIVERY_STATUSES)}")
        query = _DELIVERY.where(webhook_delivery.c.endpoint_id == endpoint_id).order_by(webhook_delivery.c.delivery_id.desc()).limit(limit)
        if status is not None:
            query = query.where(webhook_delivery.c.status == status)
        if before is not None:
            query = query.where(webhook_delivery.c.delivery_id < before)
        with connect_for_reads(self._engine) as connection:
            # For its UnknownError: deliveries of another account's endpoint must not be shown.
            find_endpoint_row(connection, account_id, endpoint_id)
            rows = connection.execute(query).all()
            return _add_attempts(connection, rows)

    def get(self, account_id: int, endpoint_id: str, delivery_id: int) -> DeliveryDetail:
        """Return one delivery with its body and attempts."""
        with connect_for_reads(self._engine) as connection:
            find_endpoint_row(connection, account_id, endpoint_id)
            [delivery] = _add_attempts(connection, [_find_delivery(connection, endpoint_id, delivery_id)])
            body = connection.scalars(select(webhook_event.c.body).where(webhook_event.c.event_id == delivery.event_id)).one()
            attempts = select(*_ATTEMPT).where(webhook_attempt.c.delivery_id == delivery_id).order_by(webhook_attempt.c.attempt_id)
            return DeliveryDetail(delivery, body, [Attempt(*row) for row in connection.execute(attempts)])

    def ping(self, account_id: int, endpoint_id: str) -> Delivery:
        """Queue a test event, whatever the endpoint asks for. DisabledError."""
        now = self._clock()
        with self._engine.begin() as connection:
            endpoint = _lock_enabled(connection, account_id, endpoint_id)
            payload = {"webhook_id": endpoint_id, "requested_at": format_rfc3339(now)}
            event_id = write_event(connection, account_id, PING, payload, now, [endpoint])
            [row] = connection.execute(_DELIVERY.where(webhook_delivery.c.event_id == event_id))
            return _build_delivery(row, None)

    def replay(self, account_id: int, endpoint_id: str, delivery_id: int) -> Delivery:
        """Queue a delivery of any status again for now. DisabledError."""
        with self._engine.begin() as connection:
            _lock_enabled(connection, account_id, endpoint_id)
            _find_delivery(connection, endpoint_id, delivery_id)
            connection.execute(webhook_delivery.update().where(webhook_delivery.c.delivery_id == delivery_id).values(self._restart()))
            [delivery] = _add_attempts(connection, [_find_delivery(connection, endpoint_id, delivery_id)])
            return delivery

    def replay_since(self, account_id: int, endpoint_id: str, since: datetime) -> int:
        """Queue all failed and held deliveries since `since` again; return their number. DisabledError."""
        with self._engine.begin() as connection:
            _lock_enabled(connection, account_id, endpoint_id)
            missed = webhook_delivery.c.status.in_((FAILED, HELD)) & (webhook_delivery.c.created_at >= since)
            update = webhook_delivery.update().where(webhook_delivery.c.endpoint_id == endpoint_id, missed).values(self._restart())
            return connection.execute(update).rowcount

    def _restart(self) -> dict[str, Any]:
        # `tries` begins again, so the whole schedule runs once more. Earlier attempts stay in the log.
        return {"status": PENDING, "due_at": self._clock(), "tries": 0, "finished_at": None}


_DELIVERY = select(webhook_delivery, webhook_event.c.event_type, webhook_event.c.occurred_at).join_from(webhook_delivery, webhook_event)
_ATTEMPT = [webhook_attempt.c[name] for name in ("attempted_at", "duration_ms", "status_code", "error", "response_excerpt")]


def _lock_enabled(connection: Connection, account_id: int, endpoint_id: str) -> Row[Any]:
    # Locked, so that no deliverer disables the endpoint between this check and the change that follows.
    row = find_endpoint_row(connection, account_id, endpoint_id, lock=True)
    if row.disabled_at is not None:
        raise DisabledError(f"webhook {endpoint_id} is disabled; enable it first")
    return row


def _find_delivery(connection: Connection, endpoint_id: str, delivery_id: int) -> Row[Any]:
    is_it = (webhook_delivery.c.delivery_id == delivery_id) & (webhook_delivery.c.endpoint_id == endpoint_id)
    row = connection.execute(_DELIVERY.where(is_it)).one_or_none()
    if row is None:
        raise UnknownError(f"there is no delivery {delivery_id}")
    return row


def _add_attempts(connection: Connection, rows: Sequence[Row[Any]]) -> list[Delivery]:
    ids = [row.delivery_id for row in rows]
    column = webhook_attempt.c
    # One query for the page: the count of attempts and the last one of each delivery.
    count = func.count().over(partition_by=column.delivery_id).label("attempt_count")
    rank = func.row_number().over(partition_by=column.delivery_id, order_by=column.attempt_id.desc()).label("rank")
    attempts = select(column.delivery_id, column.status_code, column.error, count, rank).where(column.delivery_id.in_(ids)).subquery()
    last = {row.delivery_id: row for row in connection.execute(select(attempts).where(attempts.c.rank == 1))} if ids else {}
    return [_build_delivery(row, last.get(row.delivery_id)) for row in rows]


def _build_delivery(row: Row[Any], last: Row[Any] | None) -> Delivery:
    facts = (row.delivery_id, row.endpoint_id, row.event_id, row.event_type, row.occurred_at, row.status, row.due_at, row.finished_at)
    return Delivery(*facts, 0, None, None) if last is None else Delivery(*facts, last.attempt_count, last.status_code, last.error)
