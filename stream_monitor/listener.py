"""Listens to one stream in a thread of its own: connects, hears, looks every few seconds, connects again when the connection is gone.

    starting -> running -> reconnecting -> running ...      -> failed when it has not run for FAILED_AFTER_SECONDS, or cannot
What must not live here: what plays (tracker.py), who listens to what (worker.py).
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from account_store.clock import month_of
from account_store.streams.gaps import MONITOR, SOURCE, close_gap, open_gap, record_gap
from account_store.streams.heard import note_heard
from account_store.streams.registry import FAILED, RECONNECTING, RUNNING, STARTING
from account_store.streams.runtime import State, tell
from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.matcher_process.errors import MatcherFailedError, MatcherUnavailableError
from catalog_store.errors import NoSnapshotError
from stream_monitor.capture.errors import CaptureError, DecoderError
from stream_monitor.capture.source import Source, open_source
from stream_monitor.clock import AirClock
from stream_monitor.ear import Ear
from stream_monitor.tracker import TICK_SECONDS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from account_store.streams.airings import Airing
    from account_store.streams.leases import Lease
    from audio_recognition.matching import Answer
    from outbound_http import Outbound
    from stream_monitor.capture.decoders import Decoders
    from stream_monitor.catalog import LiveCatalog
    from stream_monitor.meters import Meters
    from stream_monitor.scribe import StreamNotes
    from stream_monitor.trace import Trace

log = structlog.get_logger("stream_monitor")

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
"""Before a connection is tried anew: the first time, doubled to the longest, each a half less at random."""
LASTING_WAIT_SECONDS = 300.0
"""After an error that time alone does not mend."""
STEADY_SECONDS = 30.0
"""A connection that ran so long is tried anew as if for the first time."""
FAILED_AFTER_SECONDS = 300.0
SHORTEST_GAP_MS = 3000
"""Servers send some seconds again to who connects anew: shorter gaps are none."""
MOST_AHEAD_SECONDS = 60.0
"""A server that sends faster than time (a file, not a stream) is read at the pace of time, so far ahead."""


@dataclass(frozen=True)
class Surroundings:
    """What all listeners of a worker share."""

    outbound: Outbound
    catalog: LiveCatalog
    match: Callable[[Sequence[NDArray[np.uint32]]], Answer]
    meters: Meters
    decoders: Decoders
    new_clock: Callable[[], AirClock] = AirClock
    most_ahead_seconds: float = MOST_AHEAD_SECONDS


class Listener:
    """One stream. `start` it; `stop` it, then `join`."""

    def __init__(self, lease: Lease, last: Airing | None, earlier: Trace | None, notes: StreamNotes, around: Surroundings) -> None:
        """`last`: the airing that was written last of this stream; `earlier`: what was heard last by another worker."""
        self._lease = lease
        self._last = last
        self._notes = notes
        self._around = around
        listened_ms = lease.listened_ms or round(lease.created_at.timestamp() * 1000)
        self._tracker = Tracker(around.catalog, self._ask, notes, listened_ms, earlier)
        self._stopping = threading.Event()
        self._source: Source | None = None
        self._thread = threading.Thread(target=self._run, name=f"stream-{lease.stream_id}", daemon=True)
        self._has_heard = False
        self._heard_month = ""
        """Which one `_heard_samples` are of; a second of them makes a month that is billed."""
        self._heard_samples = 0
        self._unmatched_ms: int | None = None
        """Since when the matcher has not answered."""
        self.late_seconds = 0.0
        """How far behind its time the sound is heard."""
        self.runtime_status = STARTING

    @property
    def listened_ms(self) -> int | None:
        """Until when the stream was listened to, by this worker or one before; None while it never was."""
        return self._tracker.listened_ms if self._has_heard or self._lease.listened_ms is not None else None

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Listen no longer; from any thread. It ends soon, at once when it reads."""
        self._stopping.set()
        source = self._source
        if source is not None:
            source.close()

    def join(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        attempts, running_at, resumed = 0, time.monotonic(), False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if not resumed and self._last is not None:
                    self._tracker.resume(self._last)
                resumed = True
                self._listen()
                failure = CaptureError("the stream ended; its source may have disconnected")
            except CaptureError as error:
                failure = error
            except NoSnapshotError as error:
                failure = CaptureError(f"not monitored: {error}")
            except Exception:
                log.exception("listening to a stream failed", stream_id=self._lease.stream_id)
                failure = CaptureError("monitoring failed inside; the log of the monitor tells why")
            finally:
                self._source = None
            if self._stopping.is_set():
                break
            if self.runtime_status == RUNNING:
                running_at = time.monotonic()
                attempts = 0 if running_at - began > STEADY_SECONDS else attempts
            has_failed = failure.is_lasting or time.monotonic() - running_at > FAILED_AFTER_SECONDS
            self._failed(failure, FAILED if has_failed else RECONNECTING)
            wait = min(FIRST_WAIT_SECONDS * 2**attempts, LONGEST_WAIT_SECONDS)
            attempts += 1
            self._rest(LASTING_WAIT_SECONDS if failure.is_lasting else wait * random.uniform(0.5, 1))  # noqa: S311 -- not to come all at once

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopping.wait(min(left, TICK_SECONDS)):
            self._tracker.disconnected(_now_ms())

    def _listen(self) -> None:
        """One connection, to its end."""
        ear, clock = Ear(), self._around.new_clock()
        connected_at = time.monotonic()
        next_look = next_note = TICK_SECONDS * SAMPLE_RATE
        self._source = source = open_source(self._around.outbound, self._lease.url)
        self._tracker.connected()
        before_ms = self._tracker.listened_ms
        try:
            for samples in self._around.decoders.sound(source, self._tell_format):
                if self._stopping.is_set():
                    return
                ear.feed(samples)
                clock.arrived(ear.samples, now_ms := _now_ms())
                self._around.meters.heard_seconds.inc(len(samples) / SAMPLE_RATE)
                self._count(len(samples), now_ms)
                if self.runtime_status != RUNNING:
                    self._has_heard = True
                    self._around.meters.connections.inc()
                    self._tell(RUNNING)
                if ear.samples >= next_look:
                    if next_look == TICK_SECONDS * SAMPLE_RATE:
                        self._end_gap(before_ms, clock.at(0))
                    next_look = ear.samples + TICK_SECONDS * SAMPLE_RATE
                    next_note = ear.samples + TICK_SECONDS * SAMPLE_RATE / 2
                    self._look(ear, clock)
                elif ear.samples >= next_note:
                    next_note = next_look
                    self._tracker.note(ear, clock)
                    self._leave_trace()
                self.late_seconds = max(0.0, (now_ms - clock.at(ear.samples)) / 1000)
                ahead = ear.samples / SAMPLE_RATE - (time.monotonic() - connected_at)
                if ahead > self._around.most_ahead_seconds:
                    self._stopping.wait(ahead - self._around.most_ahead_seconds)
        finally:
            source.close()
            if ear.samples > next_look - TICK_SECONDS * SAMPLE_RATE:
                self._look(ear, clock)  # what came since the last look

    def _count(self, samples: int, now_ms: int) -> None:
        """Note the month in which a second of sound has come, whatever is in it."""
        month = month_of(_moment(now_ms))
        if month != self._heard_month:
            self._heard_month, self._heard_samples = month, 0
        before = self._heard_samples
        self._heard_samples += samples
        if before < SAMPLE_RATE <= self._heard_samples:
            self._notes.post(lambda connection, stream_id: note_heard(connection, stream_id, month))

    def _look(self, ear: Ear, clock: AirClock) -> None:
        before = self._tracker.play
        try:
            self._tracker.look(ear, clock)
            if self._tracker.play is not before:
                self._around.meters.airings.inc()
        except (MatcherUnavailableError, MatcherFailedError, NoSnapshotError) as error:
            self._around.meters.questions.labels("failed").inc()
            if self._unmatched_ms is None:
                self._unmatched_ms = self._tracker.listened_ms
                self._notes.post(_gap_opener(MONITOR, self._unmatched_ms, "recognition did not answer"))
                log.warning("what plays is not recognised for now", stream_id=self._lease.stream_id, reason=str(error))
        self._leave_trace()

    def _leave_trace(self) -> None:
        if (trace := self._tracker.trace) is not None:
            self._notes.leave(trace)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        answer = self._around.match(fingerprints)
        self._around.meters.questions.labels(answer.reason or "matched").inc()
        if self._unmatched_ms is not None:
            self._unmatched_ms = None
            ended = _moment(self._tracker.listened_ms)
            self._notes.post(lambda connection, stream_id: close_gap(connection, stream_id, ended))
        return answer

    def _end_gap(self, before_ms: int, first_ms: int) -> None:
        """Sound has come back: what lies between is a gap, unless it is short."""
        was_listened_to = self._lease.listened_ms is not None
        started, ended = _moment(before_ms), _moment(max(before_ms, first_ms))
        is_long = first_ms - before_ms > SHORTEST_GAP_MS

        def write(connection: Connection, stream_id: str) -> None:
            close_gap(connection, stream_id, ended, drop=not is_long)
            if is_long and was_listened_to:
                record_gap(connection, stream_id, MONITOR, started, ended)

        self._notes.post(write)

    def _failed(self, failure: CaptureError, runtime_status: str) -> None:
        self._around.meters.failures.inc()
        if isinstance(failure, DecoderError):
            self._around.meters.decoder_failures.inc()
        log.info("a stream is not heard", stream_id=self._lease.stream_id, runtime_status=runtime_status, reason=str(failure))
        self._notes.post(_gap_opener(SOURCE, self._tracker.listened_ms, str(failure)))
        self._tell(runtime_status, str(failure))

    def _tell(self, runtime_status: str, error: str | None = None) -> None:
        self.runtime_status = runtime_status
        state, now = State(runtime_status, error), datetime.now(UTC)
        self._notes.post(lambda connection, stream_id: tell(connection, stream_id, state, now))

    def _tell_format(self, audio_format: str) -> None:
        state, now = State(self.runtime_status, audio_format=audio_format), datetime.now(UTC)
        self._notes.post(lambda connection, stream_id: tell(connection, stream_id, state, now))


def _gap_opener(cause: str, started_ms: int, detail: str) -> Callable[[Connection, str], None]:
    return lambda connection, stream_id: open_gap(connection, stream_id, cause, _moment(started_ms), detail)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
