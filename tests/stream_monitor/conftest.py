"""Shared fixtures of the monitor's tests: songs, an index of them, a store, and a stream without network."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.streams.airings import find_latest
from account_store.streams.leases import Leases
from account_store.streams.stream_tables import airing
from account_store.streams.traces import load_trace, save_traces
from audio_recognition.chromaprint import SAMPLE_RATE
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import Matcher
from stream_monitor.catalog import read_references
from stream_monitor.clock import AirClock, SampleClock
from stream_monitor.fingerprint_buffer import FingerprintBuffer
from stream_monitor.trace import Trace
from stream_monitor.tracker import TICK_SECONDS, Tracker
from tests.migrated_databases import make_migrated_file
from tests.stream_monitor.shows import index_of, track

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import Connection, Row

    from account_store.streams.airings import PlayedTrack
    from audio_recognition.matching import Answer
    from stream_monitor.references import Reference

LENGTHS = {1: 30.0, 2: 22.0, 3: 38.0, 4: 26.0, 5: 33.0, 6: 24.0}
"""Lengths of the songs in the index, in seconds."""
EPOCH_MS = 1_795_000_000_000
"""Beginning of the shows of these tests."""


@pytest.fixture(scope="session")
def songs(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.open(index_of(LENGTHS, tmp_path_factory.mktemp("songs") / "index"))


@pytest.fixture
def accounts(tmp_path: Path) -> Iterator[Accounts]:
    opened = Accounts.open(make_migrated_file(tmp_path))
    yield opened
    opened.close()


class Songs:
    """A catalog that holds only an index."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def find_references(self, recording_id: int) -> list[Reference]:
        return read_references(self.index, recording_id)

    def find_track(self, recording_id: int) -> PlayedTrack | None:
        return track(recording_id, LENGTHS.get(recording_id, 30.0))


class Heard:
    """A stream whose sound comes from the test. Seconds count from EPOCH_MS."""

    def __init__(self, accounts: Accounts, index: Index) -> None:
        self._engine = accounts.engine
        account_id = accounts.create("radio").account_id
        self.stream_id = accounts.streams.create(account_id, "https://radio.example/live", "Radio").stream_id
        self.catalog = Songs(index)
        self.match: Callable[[Sequence[NDArray[np.uint32]]], Answer] = Matcher(index).match
        self.asked = 0
        [self._lease] = Leases(self._engine, "heard", 1).claim()
        self.tracker = self._tracker(0.0)

    def _tracker(self, listened: float, earlier: Trace | None = None) -> Tracker:
        return Tracker(self.catalog, self._ask, self, EPOCH_MS + round(listened * 1000), earlier)

    def _ask(self, fingerprints: Sequence[NDArray[np.uint32]]) -> Answer:
        self.asked += 1
        return self.match(fingerprints)

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:  # noqa: ARG002 -- as WriteQueue
        with self._engine.begin() as connection:
            write(connection, self.stream_id)

    def hear(self, samples: NDArray[np.int16], at: float, *, is_killed: bool = False, set_back: tuple[float, float] | None = None) -> None:
        """Connect and send these samples (11025 Hz) from second `at` on, then end; `is_killed` ends its worker as well.

        `set_back`: after so many seconds of sound the machine's clock is set back by so many.
        """
        buffer, clock = FingerprintBuffer(), AirClock() if set_back else SampleClock()
        self.tracker.begin_connection()
        next_look = next_note = TICK_SECONDS * SAMPLE_RATE
        for start in range(0, len(samples), SAMPLE_RATE):
            buffer.feed(samples[start : start + SAMPLE_RATE])
            seconds = buffer.samples / SAMPLE_RATE
            lost = set_back[1] if set_back and seconds > set_back[0] else 0.0
            clock.note_arrival(buffer.samples, EPOCH_MS + round((at + seconds - lost) * 1000))
            if buffer.samples >= next_look:
                next_look, next_note = next_look + TICK_SECONDS * SAMPLE_RATE, next_look + TICK_SECONDS * SAMPLE_RATE / 2
                self.tracker.look(buffer, clock)
                self._leave_trace()
            elif buffer.samples >= next_note:
                next_note = next_look
                self.tracker.update_trace(buffer, clock)
                self._leave_trace()
        if not is_killed:
            self.tracker.look(buffer, clock)
            self._leave_trace()

    def _leave_trace(self) -> None:
        if self.tracker.trace is not None:
            with self._engine.begin() as connection:
                save_traces(connection, [(self._lease, self.tracker.trace.stored)])

    def other_worker(self) -> None:
        """Replace the dead worker.

        The new one knows the written rows, the rest that was left, and the time until which the stream was heard.
        """
        listened = (self.tracker.listened_ms - EPOCH_MS) / 1000
        with self._engine.begin() as connection:
            last = find_latest(connection, self.stream_id)
            self.tracker = self._tracker(listened, Trace.load(load_trace(connection, self.stream_id)))
        if last is not None:
            self.tracker.resume(last)

    def rows(self) -> list[Row[tuple[object, ...]]]:
        """Return all airings, oldest first."""
        with self._engine.connect() as connection:
            return list(connection.execute(airing.select().order_by(airing.c.started_ms)))

    def aired(self) -> list[tuple[int, float, int]]:
        """Return (song, second at which it began, how long it lasted), oldest first."""
        epoch = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)
        return [(row.recording_id, (row.started_at - epoch).total_seconds(), row.duration_seconds) for row in self.rows()]


@pytest.fixture
def heard(accounts: Accounts, songs: Index) -> Heard:
    return Heard(accounts, songs)
