"""A monitor worker: claims streams, listens to each, renews its leases, gives everything back when it is told to stop.

Another worker takes over what this one held when it dies, as soon as its leases have ended. What must not live here: options and signals
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
from account_store.streams.airings import latest
from account_store.streams.leases import LEASE_SECONDS, Lease, Leases
from account_store.streams.registry import RUNTIME_STATUSES
from account_store.streams.traces import left
from stream_monitor.listener import Listener
from stream_monitor.scribe import FLUSH_SECONDS, Scribe
from stream_monitor.trace import Trace

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from pathlib import Path

    from sqlalchemy import Engine

    from stream_monitor.listener import Surroundings
    from stream_monitor.scribe import StreamNotes

log = structlog.get_logger("stream_monitor")

STOP_SECONDS = 5.0
"""For listeners to end; those that hang in a connection attempt end with the process."""
_RENEWALS = 5
"""In the time of one lease."""


def worker_id() -> str:
    """A name that no other worker has, on any machine: leases are told apart by it."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@dataclass
class _Held:
    """A stream that is monitored here."""

    lease: Lease
    notes: StreamNotes
    listener: Listener


class Worker:
    """`run` it in one thread; it ends when `stopping` is set."""

    def __init__(self, engine: Engine, around: Surroundings, capacity: int, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """`capacity`: how many streams it takes at most."""
        self._engine = engine
        self._around = around
        self._leases = Leases(engine, worker_id(), capacity, lease_seconds)
        self._renew_seconds = lease_seconds / _RENEWALS
        self._scribe = Scribe(engine, around.meters)
        self._held: dict[str, _Held] = {}
        around.meters.capacity.set(capacity)

    def run(self, stopping: threading.Event, metrics_file: Path | None = None) -> None:
        """Monitor until told to stop. A database that is away is waited for: listening goes on, and is written down later."""
        log.info("monitoring")
        renew_at = time.monotonic()
        is_away = False
        while not stopping.is_set():
            began = time.monotonic()
            try:
                self._scribe.flush()
                if began >= renew_at:
                    renew_at = began + self._renew_seconds
                    self._share()
                is_away = False
            except UnavailableError as error:
                if not is_away:
                    log.warning("the account store is away; listening goes on", reason=str(error))
                is_away = True
            self._measure(metrics_file)
            stopping.wait(max(0.05, min(FLUSH_SECONDS, self._renew_seconds) - (time.monotonic() - began)))
        self._stop()
        log.info("monitoring no longer")

    def _share(self) -> None:
        """Renew what is held, drop what is another's by now, give up what is too much, take what is free."""
        gone = self._leases.renew((one.lease for one in self._held.values()), self._listened())
        for lease in gone:
            log.info("a stream was stopped or taken over", stream_id=lease.stream_id)
            self._around.meters.lost_leases.inc()
        self._drop(gone)
        self._give_up([one.lease for one in list(self._held.values())[: self._leases.surplus(len(self._held))]])
        for lease in self._leases.claim(len(self._held)):
            self._take(lease)

    def _take(self, lease: Lease) -> None:
        with self._engine.connect() as connection:
            last = latest(connection, lease.stream_id)
            earlier = Trace.found(left(connection, lease.stream_id))
        notes = self._scribe.follow(lease)
        listener = Listener(lease, last, earlier, notes, self._around)
        self._held[lease.stream_id] = _Held(lease, notes, listener)
        listener.start()
        log.info("monitoring a stream", stream_id=lease.stream_id, lease=lease.token)

    def _drop(self, leases: Iterable[Lease]) -> list[_Held]:
        """Listen to them no longer; what was found so far still waits to be written."""
        dropped = [self._held.pop(lease.stream_id) for lease in leases]
        for one in dropped:
            one.listener.stop()
        return dropped

    def _give_up(self, leases: list[Lease]) -> None:
        """Listen to them no longer, write what was found, let others have them."""
        if not leases:
            return
        listened = self._listened()
        dropped = self._drop(leases)
        until = time.monotonic() + STOP_SECONDS
        for one in dropped:
            one.listener.join(max(0.0, until - time.monotonic()))
        listened |= {one.lease.stream_id: at for one in dropped if (at := one.listener.listened_ms) is not None}
        self._scribe.flush()
        self._leases.renew((one.lease for one in dropped), listened)
        self._leases.release(leases)
        for one in dropped:
            self._scribe.forget(one.notes)

    def _stop(self) -> None:
        try:
            self._give_up([one.lease for one in self._held.values()])
            self._leases.leave()
        except UnavailableError as error:
            log.warning("stopped while the account store is away: others take over when the leases end", reason=str(error))

    def _listened(self) -> dict[str, int]:
        return {name: at for name, one in self._held.items() if (at := one.listener.listened_ms) is not None}

    def _measure(self, file: Path | None) -> None:
        meters = self._around.meters
        states = Counter(one.listener.runtime_status for one in self._held.values())
        for status in RUNTIME_STATUSES:
            meters.streams.labels(status).set(states[status])
        meters.late_seconds.set(max((one.listener.late_seconds for one in self._held.values()), default=0.0))
        if file is not None:
            try:
                meters.write(file)
            except OSError as error:
                log.warning("metrics cannot be written", reason=str(error))
