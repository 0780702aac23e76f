"""Tests of streams of a real Icecast, by real sources, in real time: all at once, so that they take the time of one show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from account_store import Accounts
from account_store.streams.registry import RUNNING, STOPPED
from account_store.streams.stream_tables import airing, monitor_worker, stream, stream_gap
from account_store.webhooks.webhook_tables import webhook_event
from outbound_http import ALLOW_VARIABLE
from tests.audio_recognition.matcher_process.indexes import matcher
from tests.conftest import ROOT
from tests.stream_monitor.icecast import MISSING, Icecast, Source
from tests.stream_monitor.servers import publish_songs
from tests.stream_monitor.shows import Part, agrees, sound
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LENGTHS = {1: 21.0, 2: 20.0, 3: 44.0, 4: 32.0, 5: 40.0, 6: 24.0}
SHOWS = {
    "mp3": [Part(1, 21), Part(1, 21), Part(None, 14)],
    "aac": [Part(None, 6), Part(2, 20), Part(0, 4), Part(6, 24)],
    "ogg": [Part(None, 8), Part(4, 32), Part(90, 16)],
    "opus": [Part(3, 44), Part(None, 12)],
    "changing": [Part(5, 40), Part(0, 16)],
}
"""56 seconds each; a mount's name is its first codec, but that of `changing`, which begins as mp3."""
SECONDS = 56
DROP, CHANGE, KILL, RESTART = 19.0, 22.0, 28.0, 38.0
"""Seconds of the shows at which a source drops out, another changes its codec, a worker is killed, the server starts anew."""


@pytest.fixture
def server() -> Iterator[Icecast]:
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)} (scripts/system_packages)")
    icecast = Icecast()
    icecast.start()
    yield icecast
    icecast.close()


def worker(url: str, catalog: Path, socket: Path, server: Icecast) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "stream_monitor", "--accounts", url, "--catalog", str(catalog), "--matcher-socket", str(socket)]
    environment = {**os.environ, ALLOW_VARIABLE: f"127.0.0.1:{server.port}"}
    return subprocess.Popen([*command, "--lease-seconds", "2", "--log-level", "warning"], cwd=ROOT, env=environment)


@pytest.mark.long  # it plays in real time, and judges by the clock: a machine that stands still for a second fails it
def test_every_airing_is_one_row_through_all_that_can_happen(server: Icecast, tmp_path: Path) -> None:
    catalog, url, socket = publish_songs(LENGTHS, tmp_path), f"sqlite:///{tmp_path}/accounts.db", tmp_path / "m.sock"
    shows = {name: sound(parts, LENGTHS | {90: 60.0}) for name, parts in SHOWS.items()}
    accounts = Accounts.open(url)
    account_id = accounts.create("radio").account_id
    accounts.webhooks.create(account_id, "https://receiver.example/hook", is_vetted=True)
    with matcher(catalog, socket):
        workers = [worker(url, catalog, socket, server) for _ in range(2)]
        _await_workers(accounts, 2)
        began = time.time() + 0.5
        sources = {name: Source(server, name, samples, began) for name, samples in shows.items()}
        try:
            time.sleep(max(0.0, began - time.time()))
            for name, source in sources.items():
                source.start("mp3" if name == "changing" else name)
            for name in sources:
                while not server.has(name):
                    assert time.time() < began + 15, f"no source on {name}"
                    time.sleep(0.1)
            ids = {name: accounts.streams.create(account_id, server.url(name), name).stream_id for name in sources}
            _misfortunes(server, sources, began, workers[0])
            time.sleep(max(0.0, began + SECONDS + 4 - time.time()))
            running = {name: accounts.streams.get(account_id, stream_id).audio_format for name, stream_id in ids.items()}
        finally:
            for source in sources.values():
                source.kill()
            for process in workers:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(PATIENCE_SECONDS) for process in workers]
    assert codes == [-signal.SIGKILL, 0]
    assert {name: (text or "").partition(",")[0] for name, text in running.items()} == {
        "mp3": "mp3float", "aac": "aac", "ogg": "vorbis", "opus": "opus", "changing": "aac",
    }  # fmt: skip
    _check(accounts, account_id, ids, began)
    accounts.close()


def _await_workers(accounts: Accounts, count: int) -> None:
    """Wait until the workers run. A busy machine needs long to start them, and the shows must not begin before."""

    def begun() -> bool:
        with accounts.engine.connect() as connection:
            return len(connection.execute(monitor_worker.select()).all()) == count

    until(begun, "the workers")


def _misfortunes(server: Icecast, sources: dict[str, Source], began: float, victim: subprocess.Popen[bytes]) -> None:
    def wait(until: float) -> None:
        time.sleep(max(0.0, began + until - time.time()))

    wait(DROP)
    sources["opus"].kill()
    wait(DROP + 2.5)
    sources["opus"].start("opus")
    wait(CHANGE)
    sources["changing"].kill()
    sources["changing"].start("aac")
    wait(KILL)
    victim.kill()
    wait(RESTART)
    server.kill()
    for source in sources.values():
        source.kill()
    server.start()
    for name, source in sources.items():
        source.start("aac" if name == "changing" else name)


def _check(accounts: Accounts, account_id: int, ids: dict[str, str], began: float) -> None:
    for stream_id in ids.values():
        accounts.streams.stop(account_id, stream_id)  # ends what is still open
    with accounts.engine.connect() as connection:
        rows = connection.execute(airing.select().order_by(airing.c.started_ms)).all()
        gaps = Counter(row.stream_id for row in connection.execute(stream_gap.select()))
        announced = Counter(row.event_type for row in connection.execute(webhook_event.select()))
        states = [row.runtime_status for row in connection.execute(stream.select())]
    for name, stream_id in ids.items():
        aired = [(row.recording_id, row.started_ms / 1000 - began, row.duration_seconds) for row in rows if row.stream_id == stream_id]
        assert agrees(aired, SHOWS[name]), (name, aired)
        assert gaps[stream_id] <= 5
    assert all(row.ended_at is not None for row in rows)
    assert announced["stream.track_started"] == len(rows)
    assert announced["stream.track_ended"] >= len(rows)
    assert set(states) == {STOPPED}
    assert RUNNING not in states
