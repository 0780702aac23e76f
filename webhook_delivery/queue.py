"""The queue of due deliveries: deliverers lease endpoints and send the deliveries of each in order, one at a time.

    for endpoint_id in queue.claim(owner, 8):
        while (message := queue.find_next(owner, endpoint_id)) and queue.record(owner, message, send(message)).may_go_on:
            ...
        queue.release(owner, endpoint_id)

A lease covers an endpoint. Any number of deliverers on any number of machines send to it one after the other, and an endpoint that hangs
delays no other. A deliverer that dies leaves a lease that expires and a delivery that is still due: another sends it again with the same id
(at least once). The clocks of machines may differ by a few seconds, not by a lease. Out of scope: HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, func, select

from account_store.database import connect_for_reads
from account_store.webhooks.endpoints import FAILING, GONE, disable
from account_store.webhooks.outbox import DELIVERED, FAILED, HELD, PENDING
from account_store.webhooks.webhook_tables import webhook_attempt, webhook_delivery, webhook_endpoint, webhook_event
from webhook_delivery import schedule

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row

    from account_store.accounts import Accounts

LEASE = timedelta(seconds=60)
"""Time that an endpoint of a dead deliverer waits for another; far longer than an attempt may take."""
RETENTION = timedelta(days=14)
"""Time for which deliveries are kept and can be replayed."""
SWEEP_ROWS = 5000
"""Rows deleted in one transaction, so that it is short. One each half minute makes fourteen million a day."""


@dataclass(frozen=True, slots=True)
class Message:
    """A delivery that is due."""

    delivery_id: int
    endpoint_id: str
    url: str
    event_id: str
    body: str
    secrets: tuple[str, ...] = field(repr=False)
    """Each of them signs it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt."""

    duration_ms: int
    status_code: int | None = None
    """None when there was no answer."""
    error: str | None = None
    """Why it failed; None when it was delivered."""
    response_excerpt: str | None = None
    is_gone: bool = False
    """The receiver answered 410: it wants no more deliveries."""
    requested_rest: timedelta = timedelta(0)
    """The pause that the receiver asked for (`Retry-After`)."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The consequences of an outcome."""

    may_go_on: bool
    """The deliverer still holds the endpoint, and the endpoint needs no rest."""
    disabled: str | None = None
    """The reason why the endpoint is disabled from now on, if it is."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The state of the queue, for the metrics."""

    pending: int
    oldest_due_seconds: float
    """Age of the oldest due delivery; 0 when none is due."""
    disabled_endpoints: int
    failing_endpoints: int


class DeliveryQueue:
    """The due deliveries of one database. Thread-safe; every method blocks."""

    def __init__(self, accounts: Accounts) -> None:
        """Read and write the database that `accounts` has open."""
        self._engine = accounts.engine
        self._seal = accounts.seal
        self._clock = accounts.clock

    def claim(self, owner: str, most: int) -> list[str]:
        """Lease at most `most` free endpoints with due deliveries, longest waiting first, to `owner`; return their ids."""
        now = self._clock()
        column = webhook_delivery.c
        due = select(func.min(column.due_at)).where(column.endpoint_id == webhook_endpoint.c.endpoint_id, column.due_at <= now)
        waits_since = due.scalar_subquery()
        found = select(webhook_endpoint.c.endpoint_id).where(_is_free(now), waits_since.is_not(None)).order_by(waits_since).limit(most)
        with connect_for_reads(self._engine) as connection:
            # Read without locks, because several deliverers look at once. `_lease` decides about each candidate separately.
            candidates = connection.scalars(found).all()
        return [endpoint_id for endpoint_id in candidates if self._lease(owner, endpoint_id, now)]

    def find_next(self, owner: str, endpoint_id: str) -> Message | None:
        """Return the oldest due delivery of an endpoint; None when there is none, or `owner` lost the lease. SealedError."""
        now = self._clock()
        query = (
            select(webhook_delivery.c.delivery_id, webhook_endpoint, webhook_event.c.event_id, webhook_event.c.body)
            .join_from(webhook_delivery, webhook_endpoint)
            .join(webhook_event)
            .where(webhook_delivery.c.endpoint_id == endpoint_id, webhook_delivery.c.due_at <= now)
            .where(webhook_endpoint.c.lease_owner == owner, webhook_endpoint.c.lease_until > now, webhook_endpoint.c.disabled_at.is_(None))
            # By id, not by due time: a receiver gets events in the order in which they happened, as far as retries allow.
            .order_by(webhook_delivery.c.delivery_id)
            .limit(1)
        )
        with connect_for_reads(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Message(row.delivery_id, endpoint_id, row.url, row.event_id, row.body, self._open_secrets(row, now))

    def record(self, owner: str, message: Message, outcome: Outcome) -> Recorded:
        """Write an attempt's outcome and the time of the next one; extend the lease."""
        now = self._clock()
        with self._engine.begin() as connection:
            # The endpoint first, then its delivery, as `disable` and `replay` do: two transactions never wait for each other.
            endpoint = _lock_row(connection, webhook_endpoint, webhook_endpoint.c.endpoint_id == message.endpoint_id)
            delivery = _lock_row(connection, webhook_delivery, webhook_delivery.c.delivery_id == message.delivery_id)
            if endpoint is None or delivery is None:
                return Recorded(may_go_on=False)
            _write_attempt(connection, message.delivery_id, outcome, now)
            changes = _change_delivery(delivery, outcome, now)
            connection.execute(webhook_delivery.update().where(webhook_delivery.c.delivery_id == message.delivery_id).values(changes))
            # The attempt happened even if the lease is lost by now: it is recorded, but the turn ends.
            is_ours = endpoint.lease_owner == owner
            lease = {"lease_until": now + LEASE} if is_ours else {}
            update = webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == message.endpoint_id)
            connection.execute(update.values({**_change_endpoint(endpoint, outcome, now), **lease}))
            reason = _find_disable_reason(endpoint, outcome, now)
            if reason is not None:
                disable(connection, message.endpoint_id, reason, now)
        return Recorded(is_ours and outcome.error is None, reason)

    def release(self, owner: str, endpoint_id: str, *, rest: timedelta = timedelta(0)) -> None:
        """End the lease; other deliverers may claim the endpoint after `rest`."""
        is_ours = (webhook_endpoint.c.endpoint_id == endpoint_id) & (webhook_endpoint.c.lease_owner == owner)
        values: dict[str, Any] = {"lease_owner": None, "lease_until": None}
        if rest:
            values["rests_until"] = self._clock() + rest
        with self._engine.begin() as connection:
            connection.execute(webhook_endpoint.update().where(is_ours).values(values))

    def measure_backlog(self) -> Backlog:
        """Return the present state of the queue."""
        column, now = webhook_delivery.c, self._clock()
        live = webhook_endpoint.c.deleted_at.is_(None)
        is_disabled, is_failing = webhook_endpoint.c.disabled_at.is_not(None), webhook_endpoint.c.failing_since.is_not(None)
        with connect_for_reads(self._engine) as connection:
            pending, oldest = connection.execute(select(func.count(), func.min(column.due_at)).where(column.due_at.is_not(None))).one()
            endpoints = select(func.count()).select_from(webhook_endpoint).where(live)
            disabled = connection.scalars(endpoints.where(is_disabled)).one()
            failing = connection.scalars(endpoints.where(is_failing, ~is_disabled)).one()
        return Backlog(pending, max(0.0, (now - oldest).total_seconds()) if oldest else 0.0, disabled, failing)

    def sweep(self) -> int:
        """Delete expired deliveries and those of deleted endpoints, with their attempts and events; return their number."""
        column, endpoints = webhook_delivery.c, select(webhook_endpoint.c.endpoint_id)
        with self._engine.begin() as connection:
            # An event may be written while its endpoint is being disabled.
            disabled = endpoints.where(webhook_endpoint.c.disabled_at.is_not(None))
            stray = webhook_delivery.update().where(column.due_at.is_not(None), column.endpoint_id.in_(disabled))
            connection.execute(stray.values(status=HELD, due_at=None))
        deleted = endpoints.where(webhook_endpoint.c.deleted_at.is_not(None))
        is_old = (column.created_at < self._clock() - RETENTION) & column.due_at.is_(None)
        # `is_old` leaves pending deliveries alone, however long they wait.
        count = self._delete(is_old) + self._delete(column.endpoint_id.in_(deleted))
        with self._engine.begin() as connection:
            has_deliveries = exists().where(column.endpoint_id == webhook_endpoint.c.endpoint_id)
            connection.execute(delete(webhook_endpoint).where(webhook_endpoint.c.deleted_at.is_not(None), ~has_deliveries))
        return count

    def _delete(self, condition: ColumnElement[bool]) -> int:
        column = webhook_delivery.c
        # Rows that another transaction holds are left for the next sweep: a sweep must not delay a delivery.
        found = select(column.delivery_id, column.event_id).where(condition).limit(SWEEP_ROWS).with_for_update(skip_locked=True)
        with self._engine.begin() as connection:
            rows = connection.execute(found).all()
            ids = [row.delivery_id for row in rows]
            # Attempts first, events last: foreign keys point from attempts to deliveries, and from deliveries to events.
            connection.execute(delete(webhook_attempt).where(webhook_attempt.c.delivery_id.in_(ids)))
            connection.execute(delete(webhook_delivery).where(column.delivery_id.in_(ids)))
            is_delivered = exists().where(column.event_id == webhook_event.c.event_id)
            connection.execute(delete(webhook_event).where(webhook_event.c.event_id.in_({row.event_id for row in rows}), ~is_delivered))
        return len(rows)

    def _lease(self, owner: str, endpoint_id: str, now: datetime) -> bool:
        values = {"lease_owner": owner, "lease_until": now + LEASE}
        with self._engine.begin() as connection:
            # The condition is repeated in the UPDATE: another deliverer may have claimed the candidate meanwhile.
            free = webhook_endpoint.update().where(webhook_endpoint.c.endpoint_id == endpoint_id, _is_free(now))
            return connection.execute(free.values(values)).rowcount == 1

    def _open_secrets(self, row: Row[Any], now: datetime) -> tuple[str, ...]:
        # The new secret first: a receiver that already uses it matches the first signature.
        stored = [row.secret]
        if row.previous_secret and row.previous_secret_until > now:
            stored.append(row.previous_secret)
        return tuple(self._seal.open(text) for text in stored)


def _is_free(now: datetime) -> ColumnElement[bool]:
    column = webhook_endpoint.c
    is_unheld = column.lease_until.is_(None) | (column.lease_until <= now)
    is_rested = column.rests_until.is_(None) | (column.rests_until <= now)
    return column.disabled_at.is_(None) & is_unheld & is_rested


def _lock_row(connection: Connection, table: Any, condition: ColumnElement[bool]) -> Row[Any] | None:  # noqa: ANN401 -- a table
    row: Row[Any] | None = connection.execute(select(table).where(condition).with_for_update()).one_or_none()
    return row


def _write_attempt(connection: Connection, delivery_id: int, outcome: Outcome, now: datetime) -> None:
    values = {"attempted_at": now - timedelta(milliseconds=outcome.duration_ms), "duration_ms": outcome.duration_ms}
    facts = {"status_code": outcome.status_code, "error": outcome.error, "response_excerpt": outcome.response_excerpt}
    connection.execute(webhook_attempt.insert().values(delivery_id=delivery_id, **values, **facts))


def _change_delivery(delivery: Row[Any], outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return the changes of the delivery's row."""
    tries = delivery.tries + 1
    if outcome.error is None:
        return {"tries": tries, "status": DELIVERED, "due_at": None, "finished_at": now}
    # Held meanwhile, or delivered under a later lease: this failure must not queue it again.
    if delivery.status != PENDING:
        return {"tries": tries}
    wait = None if outcome.is_gone else schedule.compute_wait(tries)
    if wait is None:
        return {"tries": tries, "status": FAILED, "due_at": None, "finished_at": now}
    return {"tries": tries, "due_at": now + max(wait, outcome.requested_rest)}


def _change_endpoint(endpoint: Row[Any], outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return the changes of the endpoint's row."""
    if outcome.error is None:
        return {"failing_since": None, "failure_count": 0, "rests_until": None}
    failures = endpoint.failure_count + 1
    rest = max(schedule.compute_rest(failures), outcome.requested_rest)
    # The first failure stays: FAILING_FOR counts from it.
    return {"failing_since": endpoint.failing_since or now, "failure_count": failures, "rests_until": now + rest}


def _find_disable_reason(endpoint: Row[Any], outcome: Outcome, now: datetime) -> str | None:
    if endpoint.disabled_at is not None or outcome.error is None:
        return None
    if outcome.is_gone:
        return GONE
    is_hopeless = endpoint.failing_since is not None and now - endpoint.failing_since >= schedule.FAILING_FOR
    return FAILING if is_hopeless else None
