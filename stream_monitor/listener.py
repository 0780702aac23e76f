"""Listens to one stream in a thread of its own: connects, decodes, has the tracker decide every few seconds, and reconnects.

    starting -> running -> reconnecting -> running ...      -> failed when it has not run for FAILED_AFTER_SECONDS, or cannot
Out of scope: the decision what plays (tracker.py), the share of streams (worker.py).
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from account_store.clock import format_month
from account_store.streams.gaps import MONITOR, SOURCE, close_gap, open_gap, record_gap
from account_store.streams.heard_months import record_heard_month
from account_store.streams.registry import FAILED, RECONNECTING, RUNNING, STARTING
from account_store.streams.runtime import State, update_runtime
from account_store.streams.segments import SegmentLog
from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.matcher_process.matcher_errors import MatcherFailedError, MatcherUnavailableError
from catalog_store.errors import NoSnapshotError
from stream_monitor.capture.errors import CaptureError, DecoderError
from stream_monitor.capture.source import Source, open_source
from stream_monitor.clock import AirClock
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.sound_kinds import SoundKinds
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
    from stream_monitor.capture.hls import HlsSource
    from stream_monitor.catalog import LiveCatalog
    from stream_monitor.meters import Meters
    from stream_monitor.trace import Trace
    from stream_monitor.write_queue import WriteQueue

log = structlog.get_logger("stream_monitor")

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
"""Waits before the next connection: doubled from the first to the longest, each shortened by up to a half at random."""
LASTING_WAIT_SECONDS = 300.0
"""Wait after an error that time alone does not fix."""
STEADY_SECONDS = 30.0
"""Length of a connection after which waits start from the first again."""
FAILED_AFTER_SECONDS = 300.0
SHORTEST_GAP_MS = 3000
"""Servers repeat some seconds after a reconnect: shorter gaps do not count."""
MOST_AHEAD_SECONDS = 60.0
"""A server that sends faster than real time (a file, not a stream) is read ahead by this time at most."""


@dataclass(frozen=True)
class SharedResources:
    """Everything that the listeners of a worker share."""

    outbound: Outbound
    catalog: LiveCatalog
    match: Callable[[Sequence[NDArray[np.uint32]]], Answer]
    meters: Meters
    decoders: Decoders
    new_clock: Callable[[], AirClock] = AirClock
    most_ahead_seconds: float = MOST_AHEAD_SECONDS


class Listener:
    """The listener of one stream. `start` it; `stop` it, then `join`."""

    def __init__(self, lease: Lease, last: Airing | None, earlier: Trace | None, queue: WriteQueue, shared: SharedResources) -> None:
        """Continue after `last`, the stream's last airing, and `earlier`, the trace of another worker."""
        self._lease = lease
        self._last = last
        self._queue = queue
        self._shared = shared
        listened_ms = lease.listened_ms or round(lease.created_at.timestamp() * 1000)
        self._tracker = Tracker(shared.catalog, self._ask, queue, listened_ms, earlier, lease.settings)
        self._segments = SegmentLog()
        self._stopping = threading.Event()
        self._awake = threading.Event()
        """Set to end a rest before its time."""
        self._is_moving = False
        """The address has changed: the present connection ends, and the next one begins at once."""
        self._source: Source | HlsSource | None = None
        self._thread = threading.Thread(target=self._run, name=f"stream-{lease.stream_id}", daemon=True)
        self._has_heard = False
        self._heard_month = ""
        """The month of `_heard_samples`; a second of sound makes it a billed month."""
        self._heard_samples = 0
        self._unmatched_ms: int | None = None
        """Beginning of the present outage of the matcher; None while it answers."""
        self.late_seconds = 0.0
        """Delay of the sound behind its air time."""
        self.runtime_status = STARTING

    @property
    def listened_ms(self) -> int | None:
        """End of listening so far, by this worker or one before; None while nobody has listened."""
        return self._tracker.listened_ms if self._has_heard or self._lease.listened_ms is not None else None

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, from any thread. The listener's thread ends soon; a read that waits ends at once."""
        self._stopping.set()
        self._wake()

    def change(self, lease: Lease) -> None:
        """Go on under `lease`, which has another address or other settings, from any thread."""
        moves = lease.url != self._lease.url
        self._lease = lease
        self._tracker.settings = lease.settings
        if moves:
            self._is_moving = True
            self._wake()

    def _wake(self) -> None:
        self._awake.set()
        source = self._source
        if source is not None:
            source.close()

    def join(self, seconds: float) -> bool:
        """Wait for the thread's end; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        attempts, running_at, resumed = 0, time.monotonic(), False
        while not self._stopping.is_set():
            began = time.monotonic()
            self._is_moving = False
            # Cleared before the address is read: a change from here on ends the connection or the rest.
            self._awake.clear()
            try:
                if not resumed and self._last is not None:
                    self._tracker.resume(self._last)
                resumed = True
                self._listen()
                failure = CaptureError("the stream ended; its source may have disconnected")
            except CaptureError as error:
                failure = error
            except NoSnapshotError as error:
                failure = CaptureError(f"the stream is not monitored: {error}")
            except Exception:
                # A bug must not end the thread: the stream would stay leased and silent.
                log.exception("listening to a stream failed", stream_id=self._lease.stream_id)
                failure = CaptureError("the monitor failed on this stream; its log has the reason")
            finally:
                self._source = None
            if self._stopping.is_set():
                break
            if self._is_moving:
                # The registry has set the state to `starting`, too.
                self.runtime_status, attempts, running_at = STARTING, 0, time.monotonic()
                continue
            if self.runtime_status == RUNNING:
                running_at = time.monotonic()
                # Only a steady run resets the waits: a source that drops every few seconds must not be asked every second.
                attempts = 0 if running_at - began > STEADY_SECONDS else attempts
            # Short interruptions are common: a stream is `failed` only after minutes without sound.
            has_failed = failure.is_lasting or time.monotonic() - running_at > FAILED_AFTER_SECONDS
            self._report_failure(failure, FAILED if has_failed else RECONNECTING)
            wait = min(FIRST_WAIT_SECONDS * 2**attempts, LONGEST_WAIT_SECONDS)
            attempts += 1
            self._rest(LASTING_WAIT_SECONDS if failure.is_lasting else wait * random.uniform(0.5, 1))  # noqa: S311 -- spreads reconnects

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._awake.wait(min(left, TICK_SECONDS)):
            self._tracker.end_overdue_play(_read_time_ms())

    def _listen(self) -> None:
        """Listen to one connection until it ends."""
        buffer, clock, kinds = FingerprintBuffer(), self._shared.new_clock(), SoundKinds()
        connected_at = time.monotonic()
        next_look = next_trace = TICK_SECONDS * SAMPLE_RATE
        # Known to `stop` from here on: it closes the source, which ends a read that waits.
        self._source = source = open_source(self._shared.outbound, self._lease.url)
        self._tracker.begin_connection()
        before_ms = self._tracker.listened_ms
        try:
            for samples in self._shared.decoders.decode(source, self._set_format):
                if self._stopping.is_set() or self._is_moving:
                    return
                buffer.feed(samples)
                kinds.feed(samples)
                # The time of arrival, read before any work on the sound: the clock would take work for a delay of the source.
                clock.note_arrival(buffer.samples, now_ms := _read_time_ms())
                self._shared.meters.heard_seconds.inc(len(samples) / SAMPLE_RATE)
                self._count(len(samples), now_ms)
                if self.runtime_status != RUNNING:
                    self._has_heard = True
                    self._shared.meters.connections.inc()
                    self._set_status(RUNNING)
                # Counted in sound, not in time: the burst at the beginning of a connection is examined in the same steps.
                if buffer.samples >= next_look:
                    if next_look == TICK_SECONDS * SAMPLE_RATE:
                        self._end_gap(before_ms, clock.convert_sample(0))
                    next_look = buffer.samples + TICK_SECONDS * SAMPLE_RATE
                    next_trace = buffer.samples + TICK_SECONDS * SAMPLE_RATE / 2
                    self._look(buffer, clock, kinds)
                elif buffer.samples >= next_trace:
                    next_trace = next_look
                    self._tracker.update_trace(buffer, clock)
                    self._keep_trace()
                self.late_seconds = max(0.0, (now_ms - clock.convert_sample(buffer.samples)) / 1000)
                ahead = buffer.samples / SAMPLE_RATE - (time.monotonic() - connected_at)
                # A server that sends a file gives hours at once. Waiting here fills the socket, so TCP slows the server down.
                if ahead > self._shared.most_ahead_seconds:
                    self._awake.wait(ahead - self._shared.most_ahead_seconds)
        finally:
            source.close()
            if buffer.samples > next_look - TICK_SECONDS * SAMPLE_RATE:
                # Up to TICK_SECONDS of sound came since the last decision. The connection has ended, but the play has not.
                self._look(buffer, clock, kinds)

    def _count(self, samples: int, now_ms: int) -> None:
        """Record the month once a second of its sound has come."""
        month = format_month(_convert_time(now_ms))
        if month != self._heard_month:
            self._heard_month, self._heard_samples = month, 0
        before = self._heard_samples
        self._heard_samples += samples
        if before < SAMPLE_RATE <= self._heard_samples:
            self._queue.post(lambda connection, stream_id: record_heard_month(connection, stream_id, month))

    def _look(self, buffer: FingerprintBuffer, clock: AirClock, kinds: SoundKinds) -> None:
        before = self._tracker.play
        try:
            self._tracker.look(buffer, clock)
            if self._tracker.play not in (before, None):
                self._shared.meters.airings.inc()
        except (MatcherUnavailableError, MatcherFailedError, NoSnapshotError) as error:
            self._shared.meters.questions.labels("failed").inc()
            # One gap covers the whole outage, with any number of failed questions.
            if self._unmatched_ms is None:
                self._unmatched_ms = self._tracker.listened_ms
                self._queue.post(_build_gap_write(MONITOR, self._unmatched_ms, "recognition did not answer"))
                log.warning("the recognition of a stream is interrupted", stream_id=self._lease.stream_id, reason=str(error))
        self._keep_trace()
        # Sound of a known play is not examined: most of the time this costs nothing.
        for one in kinds.take(is_wanted=not self._tracker.is_following):
            self._segments.note(one.kind, clock.convert_sample(one.start), clock.convert_sample(one.end), self._queue.post)

    def _keep_trace(self) -> None:
        if (trace := self._tracker.trace) is not None:
            self._queue.keep_trace(trace)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        answer = self._shared.match(fingerprints)
        self._shared.meters.questions.labels(answer.reason or "matched").inc()
        if self._unmatched_ms is not None:
            self._unmatched_ms = None
            ended = _convert_time(self._tracker.listened_ms)
            self._queue.post(lambda connection, stream_id: close_gap(connection, stream_id, ended))
        return answer

    def _end_gap(self, before_ms: int, first_ms: int) -> None:
        """End the gap that is before new sound; drop it when it is short."""
        was_listened_to = self._lease.listened_ms is not None
        started, ended = _convert_time(before_ms), _convert_time(max(before_ms, first_ms))
        is_long = first_ms - before_ms > SHORTEST_GAP_MS

        def write(connection: Connection, stream_id: str) -> None:
            close_gap(connection, stream_id, ended, drop=not is_long)
            # A stream that was never listened to has no gap: monitoring begins with its first sound. `record_gap` does nothing
            # where a gap is known, for example one that `open_gap` recorded for the source.
            if is_long and was_listened_to:
                record_gap(connection, stream_id, MONITOR, started, ended)

        self._queue.post(write)

    def _report_failure(self, failure: CaptureError, runtime_status: str) -> None:
        self._shared.meters.failures.inc()
        if isinstance(failure, DecoderError):
            self._shared.meters.decoder_failures.inc()
        log.info("a stream is not heard", stream_id=self._lease.stream_id, runtime_status=runtime_status, reason=str(failure))
        # A server's own words may be in it, and PostgreSQL's text cannot hold NUL.
        reason = str(failure).replace("\0", "\ufffd")
        self._queue.post(_build_gap_write(SOURCE, self._tracker.listened_ms, reason))
        self._set_status(runtime_status, reason)

    def _set_status(self, runtime_status: str, error: str | None = None) -> None:
        self.runtime_status = runtime_status
        state, now = State(runtime_status, error), datetime.now(UTC)
        self._queue.post(lambda connection, stream_id: update_runtime(connection, stream_id, state, now))

    def _set_format(self, audio_format: str) -> None:
        state, now = State(self.runtime_status, audio_format=audio_format), datetime.now(UTC)
        self._queue.post(lambda connection, stream_id: update_runtime(connection, stream_id, state, now))


def _build_gap_write(cause: str, started_ms: int, detail: str) -> Callable[[Connection, str], None]:
    return lambda connection, stream_id: open_gap(connection, stream_id, cause, _convert_time(started_ms), detail)


def _read_time_ms() -> int:
    return time.time_ns() // 1_000_000


def _convert_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
