"""A monitor worker: claims streams, listens to each, renews its leases, and releases them when it stops.

When it dies, other workers take its streams over as soon as its leases have ended. Out of scope: options and signals
(__main__.py), one stream (listener.py).
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from account_store.errors import UnavailableError
from account_store.streams.airings import find_latest
from account_store.streams.leases import LEASE_SECONDS, Lease, Leases
from account_store.streams.registry import RUNTIME_STATUSES
from account_store.streams.traces import load_trace
from stream_monitor.listener import Listener
from stream_monitor.trace import Trace
from stream_monitor.write_queue import FLUSH_SECONDS, BatchWriter

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from pathlib import Path

    from sqlalchemy import Engine

    from stream_monitor.listener import SharedResources
    from stream_monitor.write_queue import WriteQueue

log = structlog.get_logger("stream_monitor")

STOP_SECONDS = 5.0
"""Wait for listeners to end; those that hang in a connection attempt end with the process."""
_RENEWALS = 5
"""Renewals within the time of one lease."""


def build_worker_id() -> str:
    """Return a name that no other worker has, on any machine."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@dataclass
class _Held:
    """A stream that this worker monitors."""

    lease: Lease
    queue: WriteQueue
    listener: Listener


class Worker:
    """Monitors streams. `run` it in one thread; it ends when `stopping` is set."""

    def __init__(self, engine: Engine, shared: SharedResources, capacity: int, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """Take at most `capacity` streams."""
        self._engine = engine
        self._shared = shared
        self._leases = Leases(engine, build_worker_id(), capacity, lease_seconds)
        self._renew_seconds = lease_seconds / _RENEWALS
        self._writer = BatchWriter(engine, shared.meters)
        self._held: dict[str, _Held] = {}
        shared.meters.capacity.set(capacity)

    def run(self, stopping: threading.Event, metrics_file: Path | None = None) -> None:
        """Monitor until `stopping` is set. While the database is away, listening goes on and its findings are written later."""
        log.info("the monitor worker has started")
        renew_at = time.monotonic()
        is_away = False
        while not stopping.is_set():
            began = time.monotonic()
            try:
                self._writer.flush()
                if began >= renew_at:
                    renew_at = began + self._renew_seconds
                    self._rebalance()
                is_away = False
            except UnavailableError as error:
                if not is_away:
                    log.warning("the account store is away; listening goes on", reason=str(error))
                is_away = True
            self._measure(metrics_file)
            # At least 0.05 s: a database slower than the period must not make this a busy loop.
            stopping.wait(max(0.05, min(FLUSH_SECONDS, self._renew_seconds) - (time.monotonic() - began)))
        self._stop()
        log.info("the monitor worker has stopped")

    def _rebalance(self) -> None:
        """Renew the leases, follow changed streams, drop lost ones, release those above this worker's share, and claim free streams."""
        # Renewed before anything else: everything below may take a while, and the leases run on.
        renewed = self._leases.renew((one.lease for one in self._held.values()), self._collect_listened())
        for lease in renewed.changed:
            held = self._held[lease.stream_id]
            log.info("a stream was changed", stream_id=lease.stream_id, has_moved=lease.url != held.lease.url)
            held.lease = lease
            held.listener.change(lease)
        for lease in renewed.lost:
            log.info("a stream was stopped or taken over", stream_id=lease.stream_id)
            self._shared.meters.lost_leases.inc()
        self._drop(renewed.lost)
        self._release([one.lease for one in list(self._held.values())[: self._leases.count_surplus(len(self._held))]])
        for lease in self._leases.claim(len(self._held)):
            self._take(lease)

    def _take(self, lease: Lease) -> None:
        with self._engine.connect() as connection:
            # Read under the lease: the worker before can write no more, so both are final.
            last = find_latest(connection, lease.stream_id)
            earlier = Trace.load(load_trace(connection, lease.stream_id))
        queue = self._writer.open_queue(lease)
        listener = Listener(lease, last, earlier, queue, self._shared)
        self._held[lease.stream_id] = _Held(lease, queue, listener)
        listener.start()
        log.info("monitoring a stream", stream_id=lease.stream_id, lease=lease.token)

    def _drop(self, leases: Iterable[Lease]) -> list[_Held]:
        """Stop listening to these streams; their findings stay queued."""
        dropped = [self._held.pop(lease.stream_id) for lease in leases]
        for one in dropped:
            one.listener.stop()
        return dropped

    def _release(self, leases: list[Lease]) -> None:
        """Stop listening to these streams, write their findings, and release the leases."""
        if not leases:
            return
        listened = self._collect_listened()
        dropped = self._drop(leases)
        # One deadline for all, not STOP_SECONDS each: a stopped worker is expected to end soon.
        until = time.monotonic() + STOP_SECONDS
        for one in dropped:
            one.listener.join(max(0.0, until - time.monotonic()))
        # Read again after the listeners have ended: their last seconds count, too.
        listened |= {one.lease.stream_id: at for one in dropped if (at := one.listener.listened_ms) is not None}
        self._writer.flush()
        # Renewing once more stores the end of listening, from which the next worker continues.
        self._leases.renew((one.lease for one in dropped), listened)
        self._leases.release(leases)
        for one in dropped:
            self._writer.close_queue(one.queue)

    def _stop(self) -> None:
        try:
            self._release([one.lease for one in self._held.values()])
            self._leases.leave()
        except UnavailableError as error:
            log.warning("stopped while the account store is away: others take over when the leases end", reason=str(error))

    def _collect_listened(self) -> dict[str, int]:
        return {name: at for name, one in self._held.items() if (at := one.listener.listened_ms) is not None}

    def _measure(self, file: Path | None) -> None:
        meters = self._shared.meters
        states = Counter(one.listener.runtime_status for one in self._held.values())
        for status in RUNTIME_STATUSES:
            meters.streams.labels(status).set(states[status])
        meters.late_seconds.set(max((one.listener.late_seconds for one in self._held.values()), default=0.0))
        if file is not None:
            try:
                meters.write(file)
            except OSError as error:
                log.warning("metrics cannot be written", reason=str(error))
