"""A scripted show that is heard through a codec faster than real time, without network or process: hours take minutes.

The source drops out and the monitor is killed meanwhile. Tracker, traces and rows are those of a worker: rows and traces go through a real
database, and after a kill the next tracker knows only what is in it. Out of scope: connections, leases (streams_on_air.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from account_store import Accounts
from account_store.streams.airings import find_latest
from account_store.streams.leases import Leases
from account_store.streams.stream_tables import airing
from account_store.streams.traces import load_trace, save_traces
from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.matching import Matcher
from benchmarks.recognition_damage import RATE, encode_audio
from benchmarks.streams_truth import Aired, compare
from stream_monitor.capture.sound import decode_sound
from stream_monitor.clock import SampleClock
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.trace import Trace
from stream_monitor.tracker import TICK_SECONDS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from audio_recognition.matching import Answer
    from benchmarks.streams_script import Show, World
    from benchmarks.streams_truth import Result

CODECS = {"mp3": ("mp3", 128), "opus": ("opus", 48)}
_EPOCH_MS = 1_795_000_000_000
_FAULTS = 3
"""Drops of each show, and kills."""
_DROP_SECONDS, _KILL_SECONDS = (2.0, 20.0), (10.0, 14.0)
"""Time without sound: a lease lasts ten seconds."""
_RENEWED_MS = 2000
"""A killed worker stored the end of its listening up to this time before."""


@dataclass(frozen=True, slots=True)
class _Fault:
    at: float
    away: float
    is_kill: bool


def rehearse(world: World, show: Show, form: str, database: Path, seed: int) -> tuple[Result, list[float], int]:
    """Return what was heard; seconds from the start of each airing until its row was written; the number of questions to the matcher."""
    heard = _Heard(world, database)
    begin = 0.0
    for fault in (*_draw_faults(show, seed), None):
        end = len(show.samples) / RATE if fault is None else fault.at
        heard.hear(
            _encode(show.samples[round(begin * RATE) : round(end * RATE)], form), begin, is_killed=fault is not None and fault.is_kill
        )
        begin = end if fault is None else end + fault.away
    rows = heard.read_rows()
    result = compare(show.truth, rows)
    seen = [(one.start, heard.written.get((row.recording_id, round(row.start)))) for one, row in result.pairs]
    return result, [at - start for start, at in seen if at is not None], heard.asked


def rehearse_fade(world: World, show: Show, database: Path) -> list[Aired]:
    """Return the rows of a show without faults."""
    heard = _Heard(world, database)
    heard.hear(_encode(show.samples, "mp3"), 0.0)
    return heard.read_rows()


def _encode(samples: NDArray[np.int16], form: str) -> bytes:
    mono = samples.astype(np.float32) / 32767
    return encode_audio(np.stack([mono, mono]), *CODECS[form])


def _draw_faults(show: Show, seed: int) -> list[_Fault]:
    """Draw faults at fair places: half a minute of each airing is heard before and after, unless it is short."""
    draw = np.random.default_rng([seed, 2])
    found: list[_Fault] = []
    length = len(show.samples) / RATE
    for number in range(2 * _FAULTS):
        is_kill = number % 2 == 1
        away = draw.uniform(*(_KILL_SECONDS if is_kill else _DROP_SECONDS))
        for _ in range(1000):
            at = draw.uniform(60, length - 60)
            is_free = all(abs(at - one.at) > 120 for one in found)
            if is_free and all(_is_fair(one, at, at + away) for one in show.truth):
                found.append(_Fault(at, away, is_kill))
                break
    return sorted(found, key=lambda one: one.at)


def _is_fair(one: Aired, start: float, end: float) -> bool:
    # Late beginnings and early ends in silence cannot be known (streams_on_air.py).
    cuts = {"begun late": [one.start], "cut short": [one.end]}.get(one.kind, [])
    if any(start - 10 < cut < end + 16 for cut in cuts):
        return False
    heard = max(min(start, one.end) - one.start, one.end - max(end, one.start))
    return heard >= min(30, one.seconds)


class _Heard:
    """Hears bytes at once, and writes rows into a database."""

    def __init__(self, world: World, database: Path) -> None:
        database.unlink(missing_ok=True)
        accounts = Accounts.open(f"sqlite:///{database}")
        self._engine = accounts.engine
        self._stream_id = accounts.streams.create(accounts.create("rehearsal").account_id, "https://radio.example/live", "Radio").stream_id
        [self._lease] = Leases(self._engine, "rehearsal", 1).claim()
        self._world = world
        self._match = Matcher(world.index).match
        self.asked = 0
        self.written: dict[tuple[int, int], float] = {}
        """When a row was seen first, by recording and second of its start."""
        self._tracker = self._build_tracker(0, None)

    def _build_tracker(self, listened_ms: int, trace: Trace | None) -> Tracker:
        return Tracker(self._world, self._ask, self, _EPOCH_MS + listened_ms, trace)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        self.asked += 1
        return self._match(fingerprints)

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:  # noqa: ARG002 -- as WriteQueue
        with self._engine.begin() as connection:
            write(connection, self._stream_id)

    def read_rows(self) -> list[Aired]:
        """Return the rows, in seconds of the show."""
        with self._engine.connect() as connection:
            rows = connection.execute(airing.select().order_by(airing.c.started_ms)).all()
        return [Aired(row.recording_id, (row.started_ms - _EPOCH_MS) / 1000, (row.heard_ms - row.started_ms) / 1000) for row in rows]

    def hear(self, data: bytes, at: float, *, is_killed: bool = False) -> None:
        """Hear a connection that begins at second `at`; `is_killed` ends its worker with it."""
        buffer, clock, next_look = FingerprintBuffer(), SampleClock(), TICK_SECONDS * SAMPLE_RATE
        next_note = next_look / 2
        self._tracker.begin_connection()
        for samples in decode_sound(_Bytes(data)):
            buffer.feed(samples)
            # Sound arrives at the time that it plays, so that the tracker meets the clock of a real stream.
            clock.note_arrival(buffer.samples, _EPOCH_MS + round((at + buffer.samples / SAMPLE_RATE) * 1000))
            if buffer.samples >= next_look:
                next_look, next_note = buffer.samples + TICK_SECONDS * SAMPLE_RATE, buffer.samples + TICK_SECONDS * SAMPLE_RATE / 2
                self._look(buffer, clock)
            elif buffer.samples >= next_note:
                next_note = next_look
                self._tracker.update_trace(buffer, clock)
                self._keep_trace()
        if is_killed:
            self._replace()
        else:
            self._look(buffer, clock)

    def _look(self, buffer: FingerprintBuffer, clock: SampleClock) -> None:
        before = self._tracker.play
        self._tracker.look(buffer, clock)
        play = self._tracker.play
        if play is not None and play is not before:
            key = (play.track.recording_id, round((play.started_ms - _EPOCH_MS) / 1000))
            self.written.setdefault(key, (self._tracker.listened_ms - _EPOCH_MS) / 1000)
        self._keep_trace()

    def _keep_trace(self) -> None:
        if self._tracker.trace is not None:
            with self._engine.begin() as connection:
                save_traces(connection, [(self._lease, self._tracker.trace.stored)])

    def _replace(self) -> None:
        """Go on with a tracker that knows the database alone."""
        with self._engine.connect() as connection:
            last, trace = find_latest(connection, self._stream_id), Trace.load(load_trace(connection, self._stream_id))
        self._tracker = self._build_tracker(self._tracker.listened_ms - _EPOCH_MS - _RENEWED_MS, trace)
        if last is not None:
            self._tracker.resume(last)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self) -> bytes:
        piece = self._data[self._at : self._at + 4096]
        self._at += len(piece)
        return piece
