"""Leases on streams: workers claim streams for a while, renew, and take over the streams of a dead worker.

    leases = Leases(engine, "host-4711", capacity=100)
    mine = leases.claim()                       # free streams, up to this worker's share
    renewed = leases.renew(mine)                # every few seconds; another worker has the lost ones
    with engine.begin() as connection:
        hold(connection, lease)                 # LeaseLostError: write nothing
        airings.extend(connection, ...)

Each claim increments the stream's `lease_token`, and `hold` compares it under the row's lock: a worker that comes back from a suspension or
a network fault can write nothing. Time is the database's, so that the clocks of machines need not agree. Workers share by capacity: none
takes more than its part of the active streams, so that one that starts later gets some, too.
Out of scope: sound (`stream_monitor`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, func, or_, select, text

from account_store.database import SQLITE
from account_store.errors import AccountError
from account_store.streams.registry import ACTIVE, Settings
from account_store.streams.stream_tables import monitor_worker, stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection, Engine, Row

LEASE_SECONDS = 10.0
"""Time after which the streams of a dead worker are free. Renew leases at a fifth of it."""


class LeaseLostError(AccountError):
    """The stream was stopped, or another worker has it. The former holder must not write."""

    code = "lease_lost"


@dataclass(frozen=True, slots=True)
class Lease:
    """A stream that this worker monitors."""

    stream_id: str
    account_id: int
    url: str
    name: str
    token: int
    created_at: datetime
    listened_ms: int | None
    """End of an earlier worker's listening, Unix milliseconds; None for a stream that was never heard."""
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Leases after a renewal."""

    lost: list[Lease]
    """Stopped, or another worker's."""
    changed: list[Lease]
    """Still held; the account changed the address or the settings, which these have."""


class Leases:
    """The leases of one worker. Calls come from one thread."""

    def __init__(self, engine: Engine, worker_id: str, capacity: int, seconds: float = LEASE_SECONDS) -> None:
        """Hold leases of `seconds` on at most `capacity` streams. No other process has this `worker_id`."""
        self._engine = engine
        self._worker_id = worker_id
        self._capacity = capacity
        self._milliseconds = round(seconds * 1000)

    def claim(self, held: int = 0) -> list[Lease]:
        """Claim free streams, longest waiting first, up to the share of a worker that has `held`. Marks the worker as alive."""
        with self._engine.begin() as connection:
            now = read_database_ms(connection)
            self._mark_alive(connection, now)
            count = self._compute_share(connection, now) - held
            if count <= 0:
                return []
            is_free = or_(stream.c.worker_id.is_(None), stream.c.lease_ends_ms < now)
            free = select(stream.c.stream_id).where(stream.c.status == ACTIVE, is_free)
            # Locked rows are skipped: workers that claim at the same moment get different streams.
            free = free.order_by(stream.c.lease_ends_ms, stream.c.stream_id).limit(count).with_for_update(skip_locked=True)
            ids = list(connection.scalars(free))
            values = {"worker_id": self._worker_id, "lease_ends_ms": now + self._milliseconds, "lease_token": stream.c.lease_token + 1}
            connection.execute(stream.update().where(stream.c.stream_id.in_(ids)).values(values))
            rows = connection.execute(select(stream).where(stream.c.stream_id.in_(ids))).all()
        return [
            Lease(one.stream_id, one.account_id, one.url, one.name, one.lease_token, one.created_at, one.listened_ms, _read_settings(one))
            for one in rows
        ]

    def count_surplus(self, held: int) -> int:
        """Return by how many `held` streams exceed this worker's share: other workers have room for them."""
        with self._engine.begin() as connection:
            return max(0, held - self._compute_share(connection, read_database_ms(connection)))

    def renew(self, leases: Iterable[Lease], listened_ms: Mapping[str, int] | None = None) -> Renewal:
        """Extend the leases. `listened_ms`: end of listening of each stream."""
        leases = list(leases)
        with self._engine.begin() as connection:
            now = read_database_ms(connection)
            self._mark_alive(connection, now)
            is_mine = stream.c.worker_id == self._worker_id
            rows = {row.stream_id: row for row in connection.execute(select(stream).where(is_mine))}
            # The token is compared, not the worker alone: a stream that was lost and claimed again has another lease.
            kept = [lease for lease in leases if lease.stream_id in rows and rows[lease.stream_id].lease_token == lease.token]
            for lease in kept:
                values = {"lease_ends_ms": now + self._milliseconds}
                if listened_ms and lease.stream_id in listened_ms:
                    values["listened_ms"] = listened_ms[lease.stream_id]
                connection.execute(stream.update().where(_is_held(lease)).values(values))
        now_held = [replace(one, url=rows[one.stream_id].url, settings=_read_settings(rows[one.stream_id])) for one in kept]
        changed = [new for old, new in zip(kept, now_held, strict=True) if new != old]
        return Renewal([lease for lease in leases if lease not in kept], changed)

    def release(self, leases: Iterable[Lease]) -> None:
        """End the leases: other workers may take the streams at once."""
        with self._engine.begin() as connection:
            for lease in leases:
                connection.execute(stream.update().where(_is_held(lease)).values(worker_id=None, lease_ends_ms=None))

    def leave(self) -> None:
        """Remove this worker from the workers that share the streams."""
        with self._engine.begin() as connection:
            connection.execute(monitor_worker.delete().where(monitor_worker.c.worker_id == self._worker_id))

    def _mark_alive(self, connection: Connection, now: int) -> None:
        is_me = monitor_worker.c.worker_id == self._worker_id
        values = {"capacity": self._capacity, "alive_until_ms": now + self._milliseconds}
        if not connection.execute(monitor_worker.update().where(is_me).values(values)).rowcount:
            started_at = datetime.fromtimestamp(now // 1000, UTC)
            connection.execute(monitor_worker.insert().values(worker_id=self._worker_id, started_at=started_at, **values))
            # Only a worker that starts deletes dead ones: renewals come every few seconds and stay short.
            dead = monitor_worker.c.alive_until_ms < now - 10 * self._milliseconds
            connection.execute(monitor_worker.delete().where(dead))

    def _compute_share(self, connection: Connection, now: int) -> int:
        alive = monitor_worker.c.alive_until_ms >= now
        capacities = connection.scalar(select(func.sum(monitor_worker.c.capacity)).where(alive)) or self._capacity
        active = connection.scalar(select(func.count()).select_from(stream).where(stream.c.status == ACTIVE)) or 0
        # Rounded up, or the shares of all workers could leave a stream to nobody.
        return min(self._capacity, -(-active * self._capacity // capacities))


def hold(connection: Connection, lease: Lease) -> None:
    """Lock the stream's row for this transaction; LeaseLostError when the lease does not hold any more."""
    mine = select(stream.c.stream_id).where(_is_held(lease)).with_for_update()
    if connection.execute(mine).first() is None:
        raise LeaseLostError(f"stream {lease.stream_id} was stopped or is another worker's")


def read_database_ms(connection: Connection) -> int:
    """Return the database's time in Unix milliseconds."""
    if connection.dialect.name == SQLITE:
        # Julian day 2440587.5 is the beginning of 1970.
        return int(connection.scalar(text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")) or 0)
    # Not now(): it stands still from the beginning of the transaction.
    return int(connection.scalar(text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")) or 0)


def _read_settings(row: Row[Any]) -> Settings:
    return Settings(row.detection_mode, row.linger_seconds)


def _is_held(lease: Lease) -> ColumnElement[bool]:
    return (stream.c.stream_id == lease.stream_id) & (stream.c.lease_token == lease.token) & (stream.c.status == ACTIVE)
