"""Writes what listeners found into the account store: all streams of a worker in one transaction, each under its lease.

What waits is kept in memory while the database is away and written in order when it is back (but for traces: the next is as good). A stream
whose lease was lost is written no more: another worker has it. What must not live here: what is found.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from account_store.errors import UnavailableError
from account_store.streams.leases import LeaseLostError, hold
from account_store.streams.traces import leave

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

    from account_store.streams.leases import Lease
    from stream_monitor.meters import Meters
    from stream_monitor.trace import Trace

log = structlog.get_logger("stream_monitor")

FLUSH_SECONDS = 1.0
"""Between transactions: a worker with hundreds of streams writes no more often than one with few."""
Write = "Callable[[Connection, str], None]"


class StreamNotes:
    """What waits to be written of one stream."""

    def __init__(self, lease: Lease) -> None:
        """Nothing waits."""
        self.lease = lease
        self.is_lost = False
        """The lease is another worker's: nothing more is written."""
        self._lock = threading.Lock()
        self._waiting: list[tuple[Callable[[Connection, str], None], object]] = []
        self._trace: Trace | None = None

    def leave(self, trace: Trace) -> None:
        """What whoever takes the stream over shall know; the latest is enough."""
        self._trace = trace

    def take_trace(self) -> Trace | None:
        """The latest, once."""
        taken, self._trace = self._trace, None
        return None if self.is_lost else taken

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:
        """Write soon, in order; instead of what was posted last under the same `replaces`, if nothing has come in between."""
        with self._lock:
            if replaces is not None and self._waiting and self._waiting[-1][1] is replaces:
                self._waiting.pop()
            self._waiting.append((write, replaces))

    def take(self) -> list[tuple[Callable[[Connection, str], None], object]]:
        """All that waits; it waits no longer."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return [] if self.is_lost else taken

    def give_back(self, taken: list[tuple[Callable[[Connection, str], None], object]]) -> None:
        """It could not be written: it waits before all that came since."""
        with self._lock:
            self._waiting = taken + self._waiting


class Scribe:
    """Of one worker. `follow` and `forget` from one thread, `flush` from one at a time."""

    def __init__(self, engine: Engine, meters: Meters) -> None:
        """Over an open database."""
        self._engine = engine
        self._meters = meters
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._streams: dict[str, StreamNotes] = {}

    def follow(self, lease: Lease) -> StreamNotes:
        """Where to post what is found on that stream."""
        notes = StreamNotes(lease)
        with self._lock:
            self._streams[lease.stream_id] = notes
        return notes

    def forget(self, notes: StreamNotes) -> None:
        """Write no more of it."""
        with self._lock:
            if self._streams.get(notes.lease.stream_id) is notes:
                del self._streams[notes.lease.stream_id]

    def flush(self) -> None:
        """Write all that waits. UnavailableError: it goes on waiting."""
        with self._flushing:
            with self._lock:
                taken = [(notes, writes) for _, notes in sorted(self._streams.items()) if (writes := notes.take())]
                traces = [(notes, trace) for _, notes in sorted(self._streams.items()) if (trace := notes.take_trace())]
            if not taken and not traces:
                return
            try:
                with self._engine.begin() as connection:
                    for notes, writes in taken:
                        self._write(connection, notes, writes)
                    leave(connection, [(notes.lease, trace.left) for notes, trace in traces])
            except UnavailableError:
                for notes, writes in taken:
                    notes.give_back(writes)
                raise

    def _write(self, connection: Connection, notes: StreamNotes, writes: list[tuple[Callable[[Connection, str], None], object]]) -> None:
        stream_id = notes.lease.stream_id
        try:
            with connection.begin_nested():
                hold(connection, notes.lease)
                for write, _ in writes:
                    write(connection, stream_id)
        except LeaseLostError:
            notes.is_lost = True
        except UnavailableError:
            raise
        except Exception:
            # One stream's trouble must not keep the others' airings from the database for ever.
            self._meters.dropped_writes.inc(len(writes))
            log.exception("what was found on a stream could not be written and is lost", stream_id=stream_id, writes=len(writes))
