"""Writes the findings of listeners into the account store: all streams of a worker in one transaction, each under its lease.

Pending writes stay in memory while the database is away and are written in order when it is back. Of a stream's traces only the latest
counts. A stream whose lease was lost is not written any more: another worker has it. Out of scope: deciding what plays.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from account_store.errors import UnavailableError
from account_store.streams.leases import LeaseLostError, hold
from account_store.streams.traces import save_traces

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

    from account_store.streams.leases import Lease
    from stream_monitor.meters import Meters
    from stream_monitor.trace import Trace

    Write = Callable[[Connection, str], None]
    PendingWrite = tuple[Write, object]
    """A write, and the object under which a later one replaces it (None: nothing does)."""

log = structlog.get_logger("stream_monitor")

FLUSH_SECONDS = 1.0
"""Between transactions: a worker with hundreds of streams writes no more often than one with few."""


class WriteQueue:
    """The pending writes of one stream. Thread-safe."""

    def __init__(self, lease: Lease) -> None:
        """Start empty."""
        self.lease = lease
        self.is_lost = False
        """The lease is another worker's: nothing more is written."""
        self._lock = threading.Lock()
        self._pending: list[PendingWrite] = []
        self._trace: Trace | None = None

    def keep_trace(self, trace: Trace) -> None:
        """Keep `trace` for the worker that takes the stream over, in place of the one before."""
        self._trace = trace

    def take_trace(self) -> Trace | None:
        """Remove and return the latest trace."""
        taken, self._trace = self._trace, None
        return None if self.is_lost else taken

    def post(self, write: Write, replaces: object = None) -> None:
        """Queue a write; it replaces the last one when that was posted under the same `replaces`."""
        with self._lock:
            if replaces is not None and self._pending and self._pending[-1][1] is replaces:
                self._pending.pop()
            self._pending.append((write, replaces))

    def take(self) -> list[PendingWrite]:
        """Remove and return all pending writes."""
        with self._lock:
            taken, self._pending = self._pending, []
        return [] if self.is_lost else taken

    def put_back(self, taken: list[PendingWrite]) -> None:
        """Put writes that failed back, before all that came since."""
        with self._lock:
            self._pending = taken + self._pending


class BatchWriter:
    """The writer of one worker. Open and close queues from one thread; `flush` from any, one at a time."""

    def __init__(self, engine: Engine, meters: Meters) -> None:
        """Write into an open database."""
        self._engine = engine
        self._meters = meters
        # Two locks: `_flushing` is held through a transaction, `_lock` for a look at the queues. Opening a queue never waits
        # for the database.
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._queues: dict[str, WriteQueue] = {}

    def open_queue(self, lease: Lease) -> WriteQueue:
        """Return a new queue for the stream of `lease`."""
        queue = WriteQueue(lease)
        with self._lock:
            self._queues[lease.stream_id] = queue
        return queue

    def close_queue(self, queue: WriteQueue) -> None:
        """Write no more of the queue."""
        with self._lock:
            if self._queues.get(queue.lease.stream_id) is queue:
                del self._queues[queue.lease.stream_id]

    def flush(self) -> None:
        """Write everything that is pending. UnavailableError: it stays pending."""
        with self._flushing:
            with self._lock:
                taken = [(queue, writes) for _, queue in sorted(self._queues.items()) if (writes := queue.take())]
                traces = [(queue, trace) for _, queue in sorted(self._queues.items()) if (trace := queue.take_trace())]
            if not taken and not traces:
                return
            try:
                with self._engine.begin() as connection:
                    for queue, writes in taken:
                        self._write(connection, queue, writes)
                    save_traces(connection, [(queue.lease, trace.stored) for queue, trace in traces])
            except UnavailableError:
                # Traces are not put back: a newer one follows within seconds (listener.py), and only the latest counts.
                for queue, writes in taken:
                    queue.put_back(writes)
                raise

    def _write(self, connection: Connection, queue: WriteQueue, writes: list[PendingWrite]) -> None:
        stream_id = queue.lease.stream_id
        try:
            # A savepoint for each stream: a lost lease or a fault undoes the writes of that stream only.
            with connection.begin_nested():
                # First: it locks the row of the stream, under which all writes below read and decide.
                hold(connection, queue.lease)
                for write, _ in writes:
                    write(connection, stream_id)
        except LeaseLostError:
            queue.is_lost = True
        except UnavailableError:
            raise
        except Exception:
            # A fault of one stream must not keep the airings of the others out of the database.
            self._meters.dropped_writes.inc(len(writes))
            log.exception("findings of a stream could not be written and are lost", stream_id=stream_id, writes=len(writes))
